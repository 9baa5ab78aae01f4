/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

#include "codec/records.h"

/** Does what ttd_writer_begin_record() does, and checks that one more id can be defined. */
static enum ttd_status begin_definition(struct ttd_writer *writer, enum ttd_kind kind, ttd_id count,
                                        const char *violation)
{
    if (!violation && !writer->failed && count == UINT32_MAX)
        return ttd_writer_limit(writer, "number of identifiers");
    return ttd_writer_begin_record(writer, kind, violation);
}

/**
 * Counts the record of `id`, whose payload was appended.
 *
 * @param defined  ids defined so far, to be `id` from now on; NULL if the record defines none
 * @param result   set to `id`, unless NULL
 */
static enum ttd_status end_definition(struct ttd_writer *writer, enum ttd_kind kind, ttd_id id,
                                      ttd_id *defined, ttd_id *result)
{
    enum ttd_status status = ttd_writer_end_record(writer, kind);
    if (status != TTD_OK)
        return status;
    if (defined)
        *defined = id;
    if (result)
        *result = id;
    return TTD_OK;
}

enum ttd_status ttd_writer_string(struct ttd_writer *writer, const char *data, size_t size,
                                  ttd_id *id)
{
    if ((!data && size != 0) || !id)
        return ttd_writer_refuse(writer, "string");
    if (size > TTD_STRING_MAX)
        return ttd_writer_limit(writer, "size of a string");
    enum ttd_status status = begin_definition(writer, TTD_KIND_STRINGS, writer->strings, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_string(&writer->records[TTD_KIND_STRINGS].payload, (struct ttd_string){data, size});
    return end_definition(writer, TTD_KIND_STRINGS, writer->strings + 1, &writer->strings, id);
}

enum ttd_status ttd_writer_stack(struct ttd_writer *writer, ttd_id parent, ttd_id module,
                                 uint64_t offset, ttd_id *id)
{
    if (!id || parent > writer->stack_count || !ttd_writer_knows(writer, module, writer->modules))
        return ttd_writer_refuse(writer, "stack");
    enum ttd_status status = begin_definition(writer, TTD_KIND_STACKS, writer->stack_count, NULL);
    if (status != TTD_OK)
        return status;
    struct ttd_stack stack = {writer->stack_count + 1, parent, module, offset};
    if (!ttd_stacks_encoder_add(&writer->stacks, &stack))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    return end_definition(writer, TTD_KIND_STACKS, stack.id, &writer->stack_count, id);
}

static const char *check_module(const struct ttd_writer *writer, const struct ttd_module *module)
{
    if (!ttd_position_is_valid(module->position))
        return "position of a module";
    if (module->action == TTD_MODULE_UNLOAD)
        return module->id == TTD_NONE || !ttd_writer_knows(writer, module->id, writer->modules)
                   ? "id of a module"
                   : NULL;
    if (module->action != TTD_MODULE_LOAD)
        return "action of a module";
    if (!ttd_writer_knows(writer, module->path, writer->strings))
        return "path of a module";
    if (module->end < module->begin)
        return "range of a module";
    return module->build_id_size > TTD_BUILD_ID_MAX ? "build_id_size" : NULL;
}

enum ttd_status ttd_writer_module(struct ttd_writer *writer, const struct ttd_module *module,
                                  ttd_id *id)
{
    bool load = module->action == TTD_MODULE_LOAD;
    const char *violation = check_module(writer, module);
    if (!violation && load && !id)
        violation = "id";
    enum ttd_status status = begin_definition(writer, TTD_KIND_MODULES, writer->modules, violation);
    if (status != TTD_OK)
        return status;
    /* The writer gives ids; the caller's struct stays as it is. */
    struct ttd_module copy = *module;
    if (load)
        copy.id = writer->modules + 1;
    ttd_encode_module(&writer->records[TTD_KIND_MODULES].payload, &copy);
    ttd_writer_touch(writer, TTD_KIND_MODULES, copy.position);
    return end_definition(writer, TTD_KIND_MODULES, copy.id, load ? &writer->modules : NULL, id);
}

static const char *check_thread(const struct ttd_writer *writer, const struct ttd_thread *thread)
{
    if (!ttd_position_is_valid(thread->position))
        return "position of a thread";
    if (!ttd_writer_knows(writer, thread->name, writer->strings))
        return "name of a thread";
    if (thread->action == TTD_THREAD_BEGIN)
        return NULL;
    if (thread->action != TTD_THREAD_END)
        return "action of a thread";
    return thread->id == TTD_NONE || !ttd_writer_knows(writer, thread->id, writer->threads)
               ? "id of a thread"
               : NULL;
}

enum ttd_status ttd_writer_thread(struct ttd_writer *writer, const struct ttd_thread *thread,
                                  ttd_id *id)
{
    bool begin = thread->action == TTD_THREAD_BEGIN;
    const char *violation = check_thread(writer, thread);
    if (!violation && begin && !id)
        violation = "id";
    enum ttd_status status = begin_definition(writer, TTD_KIND_THREADS, writer->threads, violation);
    if (status != TTD_OK)
        return status;
    /* The writer gives the id, like that of a module. */
    struct ttd_thread copy = *thread;
    if (begin)
        copy.id = writer->threads + 1;
    ttd_encode_thread(&writer->records[TTD_KIND_THREADS].payload, &copy);
    ttd_writer_touch(writer, TTD_KIND_THREADS, copy.position);
    return end_definition(writer, TTD_KIND_THREADS, copy.id, begin ? &writer->threads : NULL, id);
}

enum ttd_status ttd_writer_heap(struct ttd_writer *writer, const struct ttd_heap *heap, ttd_id *id)
{
    bool is_right = id && ttd_writer_knows(writer, heap->name, writer->strings);
    enum ttd_status status =
        begin_definition(writer, TTD_KIND_HEAPS, writer->heaps, is_right ? NULL : "heap");
    if (status != TTD_OK)
        return status;
    ttd_encode_heap(&writer->records[TTD_KIND_HEAPS].payload, heap);
    return end_definition(writer, TTD_KIND_HEAPS, writer->heaps + 1, &writer->heaps, id);
}

static const char *check_heap_parent(const struct ttd_writer *writer,
                                     const struct ttd_heap_parent *parent)
{
    if (!ttd_writer_knows(writer, parent->heap, writer->heaps))
        return "heap of a parent";
    return parent->heap <= writer->settled_heap ? "order of heap parents"
                                                : ttd_check_heap_parent(parent);
}

enum ttd_status ttd_writer_heap_parent(struct ttd_writer *writer,
                                       const struct ttd_heap_parent *parent)
{
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_HEAP_PARENTS, check_heap_parent(writer, parent));
    if (status != TTD_OK)
        return status;
    ttd_encode_heap_parent(&writer->records[TTD_KIND_HEAP_PARENTS].payload, parent);
    return end_definition(writer, TTD_KIND_HEAP_PARENTS, parent->heap, &writer->settled_heap, NULL);
}

static const char *check_symbol(const struct ttd_writer *writer, const struct ttd_symbol *symbol)
{
    if (!ttd_writer_knows(writer, symbol->module, writer->modules))
        return "module of a symbol";
    if (!symbol->frames && symbol->frame_count != 0)
        return "frames of a symbol";
    if (symbol->frame_count > TTD_SYMBOL_FRAME_MAX)
        return "number of frames of a symbol";
    for (uint32_t i = 0; i < symbol->frame_count; i++)
        if (!ttd_writer_knows(writer, symbol->frames[i].function, writer->strings) ||
            !ttd_writer_knows(writer, symbol->frames[i].file, writer->strings))
            return "name in a symbol";
    return NULL;
}

enum ttd_status ttd_writer_symbol(struct ttd_writer *writer, const struct ttd_symbol *symbol)
{
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_SYMBOLS, check_symbol(writer, symbol));
    if (status != TTD_OK)
        return status;
    struct ttd_record_buffer *records = &writer->records[TTD_KIND_SYMBOLS];
    /* A chunk is decoded without any other, so differences begin anew. */
    if (records->count == 0)
        writer->symbol_offset = 0;
    ttd_encode_symbol(&records->payload, symbol, &writer->symbol_offset);
    return ttd_writer_end_record(writer, TTD_KIND_SYMBOLS);
}
