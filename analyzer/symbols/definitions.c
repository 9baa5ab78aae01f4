/* SPDX-License-Identifier: MIT */
#include "symbols/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/canonical.h"
#include "symbols/demangle.h"

void definitions_init(struct definitions *all)
{
    memset(all, 0, sizeof *all);
    idtable_init(&all->strings, sizeof(struct definition_string));
    idtable_init(&all->modules, sizeof(struct definition_module));
    idtable_init(&all->threads, sizeof(struct definition_thread));
    idtable_init(&all->heaps, sizeof(struct definition_heap));
    map_init(&all->symbol_index);
}

void definitions_free(struct definitions *all)
{
    idtable_free(&all->strings);
    stack_table_free(&all->stacks);
    idtable_free(&all->modules);
    idtable_free(&all->threads);
    idtable_free(&all->heaps);
    map_free(&all->symbol_index);
    free(all->symbols);
    free(all->frames);
    arena_free(&all->text);
}

static enum ttd_status add_string(struct definitions *all,
                                  const struct ttd_string_definition *string)
{
    void *record;
    enum ttd_status status = idtable_add(&all->strings, string->id, &record);
    if (status != TTD_OK || !record)
        return status;
    struct definition_string *added = record;
    added->size = (uint32_t)string->text.size;
    added->text = arena_copy(&all->text, string->text.data, string->text.size);
    if (added->text)
        return TTD_OK;
    added->size = 0;
    return TTD_ERROR_NO_MEMORY;
}

static enum ttd_status add_module(struct definitions *all, const struct ttd_module *module)
{
    if (module->action == TTD_MODULE_UNLOAD) {
        struct definition_module *known = idtable_get(&all->modules, module->id);
        if (known)
            known->unloaded = module->position;
        return TTD_OK;
    }
    void *record;
    enum ttd_status status = idtable_add(&all->modules, module->id, &record);
    if (status != TTD_OK || !record)
        return status;
    struct definition_module *added = record;
    *added = (struct definition_module){.path = module->path,
                                        .bias = module->bias,
                                        .begin = module->begin,
                                        .end = module->end,
                                        .loaded = module->position,
                                        .unloaded = ttd_position_invalid()};
    added->build_id_size = module->build_id_size <= TTD_BUILD_ID_MAX ? module->build_id_size : 0;
    memcpy(added->build_id, module->build_id, added->build_id_size);
    return TTD_OK;
}

static enum ttd_status add_thread(struct definitions *all, const struct ttd_thread *thread)
{
    if (thread->action == TTD_THREAD_END) {
        struct definition_thread *known = idtable_get(&all->threads, thread->id);
        if (known) {
            known->ended = thread->position;
            if (thread->name != TTD_NONE)
                known->name = thread->name;
        }
        return TTD_OK;
    }
    void *record;
    enum ttd_status status = idtable_add(&all->threads, thread->id, &record);
    if (status != TTD_OK || !record)
        return status;
    *(struct definition_thread *)record = (struct definition_thread){
        thread->os_id, thread->name, thread->position, ttd_position_invalid()};
    return TTD_OK;
}

static enum ttd_status add_heap(struct definitions *all, const struct ttd_heap *heap)
{
    void *record;
    enum ttd_status status = idtable_add(&all->heaps, heap->id, &record);
    if (status == TTD_OK && record)
        *(struct definition_heap *)record = (struct definition_heap){heap->handle, heap->name};
    return status;
}

/* Later names for the same address replace earlier ones: they come from whoever knew more. */
static enum ttd_status add_symbol(struct definitions *all, const struct ttd_symbol *symbol)
{
    enum ttd_status status = grow_array((void **)&all->symbols, &all->symbol_capacity,
                                        all->symbol_count + 1, sizeof *all->symbols);
    if (status == TTD_OK)
        status = grow_array((void **)&all->frames, &all->frame_capacity,
                            all->frame_count + symbol->frame_count, sizeof *all->frames);
    if (status == TTD_OK)
        status = map_set(&all->symbol_index, symbol->module, symbol->offset,
                         (uint32_t)all->symbol_count);
    if (status != TTD_OK)
        return status;
    all->symbols[all->symbol_count++] =
        (struct definition_symbol){all->frame_count, symbol->frame_count};
    for (uint32_t i = 0; i < symbol->frame_count; i++)
        all->frames[all->frame_count++] = symbol->frames[i];
    return TTD_OK;
}

enum ttd_status definitions_add(struct definitions *all, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_STACKS)
        return stack_table_add(&all->stacks, batch);
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        switch (batch->kind) {
        case TTD_KIND_STRINGS:
            status = add_string(all, &batch->u.strings[i]);
            break;
        case TTD_KIND_MODULES:
            status = add_module(all, &batch->u.modules[i]);
            break;
        case TTD_KIND_SYMBOLS:
            status = add_symbol(all, &batch->u.symbols[i]);
            break;
        case TTD_KIND_THREADS:
            status = add_thread(all, &batch->u.threads[i]);
            break;
        case TTD_KIND_HEAPS:
            status = add_heap(all, &batch->u.heaps[i]);
            break;
        default:
            return TTD_OK;
        }
    }
    return status;
}

struct definition_string *definitions_string(const struct definitions *all, ttd_id id)
{
    return idtable_get(&all->strings, id);
}

enum ttd_status definitions_stack(const struct definitions *all, ttd_id id, struct ttd_stack *stack)
{
    return stack_table_get(&all->stacks, id, stack);
}

const struct definition_module *definitions_module(const struct definitions *all, ttd_id id)
{
    return idtable_get(&all->modules, id);
}

const struct definition_thread *definitions_thread(const struct definitions *all, ttd_id id)
{
    return idtable_get(&all->threads, id);
}

const struct definition_heap *definitions_heap(const struct definitions *all, ttd_id id)
{
    return idtable_get(&all->heaps, id);
}

const struct definition_symbol *definitions_symbol(const struct definitions *all, ttd_id module,
                                                   uint64_t offset)
{
    uint32_t index = map_get(&all->symbol_index, module, offset);
    return index == MAP_NONE ? NULL : &all->symbols[index];
}

struct ttd_string definitions_text(const struct definitions *all, ttd_id id)
{
    const struct definition_string *string = definitions_string(all, id);
    return string ? (struct ttd_string){string->text, string->size} : (struct ttd_string){"", 0};
}

struct ttd_string definitions_function(struct definitions *all, ttd_id id)
{
    struct definition_string *string = definitions_string(all, id);
    if (!string)
        return (struct ttd_string){"", 0};
    if (!string->display) {
        char text[DEMANGLE_MAX + 1];
        size_t size = memchr(string->text, 0, string->size) ? 0 : demangle(string->text, text);
        string->display = size ? arena_copy(&all->text, text, size) : NULL;
        string->display_size = (uint32_t)size;
        if (!string->display) {
            string->display = string->text;
            string->display_size = string->size;
        }
    }
    return (struct ttd_string){string->display, string->display_size};
}

struct ttd_string definitions_canonical(struct definitions *all, ttd_id id)
{
    struct ttd_string name = definitions_function(all, id);
    struct definition_string *string = definitions_string(all, id);
    if (!string || string->canonical)
        return string ? (struct ttd_string){string->canonical, string->canonical_size} : name;
    char *text = malloc(CANONICAL_ROOM(name.size));
    size_t size = text ? canonical_name(name, text) : 0;
    /* Most names of C are canonical. */
    bool is_same = text && size == name.size && memcmp(text, name.data, size) == 0;
    string->canonical = is_same || !text ? name.data : arena_copy(&all->text, text, size);
    string->canonical_size = (uint32_t)size;
    if (!string->canonical || !text) {
        string->canonical = name.data;
        string->canonical_size = (uint32_t)name.size;
    }
    free(text);
    return (struct ttd_string){string->canonical, string->canonical_size};
}
