/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "codec/heap_state/heap_states.h"
#include "codec/records.h"
#include "write/write_internal.h"

/** Like ttd_writer_begin_record(), and checks that one more id can be defined. */
static enum ttd_status records_begin_definition(struct ttd_writer *writer, enum ttd_kind kind,
                                                ttd_id count, const char *violation)
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
static enum ttd_status records_end_definition(struct ttd_writer *writer, enum ttd_kind kind,
                                              ttd_id id, ttd_id *defined, ttd_id *result)
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
    enum ttd_status status =
        records_begin_definition(writer, TTD_KIND_STRINGS, writer->strings, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_string(&writer->records[TTD_KIND_STRINGS].payload, (struct ttd_string){data, size});
    return records_end_definition(writer, TTD_KIND_STRINGS, writer->strings + 1, &writer->strings,
                                  id);
}

enum ttd_status ttd_writer_stack(struct ttd_writer *writer, ttd_id parent, ttd_id module,
                                 uint64_t offset, ttd_id *id)
{
    if (!id || parent > writer->stack_count || !ttd_writer_knows(writer, module, writer->modules))
        return ttd_writer_refuse(writer, "stack");
    enum ttd_status status =
        records_begin_definition(writer, TTD_KIND_STACKS, writer->stack_count, NULL);
    if (status != TTD_OK)
        return status;
    struct ttd_stack stack = {writer->stack_count + 1, parent, module, offset};
    if (!ttd_stacks_encoder_add(&writer->stacks, &stack))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    return records_end_definition(writer, TTD_KIND_STACKS, stack.id, &writer->stack_count, id);
}

static const char *records_check_module(const struct ttd_writer *writer,
                                        const struct ttd_module *module)
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
    const char *violation = records_check_module(writer, module);
    if (!violation && load && !id)
        violation = "id";
    enum ttd_status status =
        records_begin_definition(writer, TTD_KIND_MODULES, writer->modules, violation);
    if (status != TTD_OK)
        return status;
    /* The writer gives ids; the caller's struct stays as it is. */
    struct ttd_module copy = *module;
    if (load)
        copy.id = writer->modules + 1;
    ttd_encode_module(&writer->records[TTD_KIND_MODULES].payload, &copy);
    ttd_writer_touch(writer, TTD_KIND_MODULES, copy.position);
    return records_end_definition(writer, TTD_KIND_MODULES, copy.id, load ? &writer->modules : NULL,
                                  id);
}

static const char *records_check_thread(const struct ttd_writer *writer,
                                        const struct ttd_thread *thread)
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
    const char *violation = records_check_thread(writer, thread);
    if (!violation && begin && !id)
        violation = "id";
    enum ttd_status status =
        records_begin_definition(writer, TTD_KIND_THREADS, writer->threads, violation);
    if (status != TTD_OK)
        return status;
    /* The writer gives the id, like a module's. */
    struct ttd_thread copy = *thread;
    if (begin)
        copy.id = writer->threads + 1;
    ttd_encode_thread(&writer->records[TTD_KIND_THREADS].payload, &copy);
    ttd_writer_touch(writer, TTD_KIND_THREADS, copy.position);
    return records_end_definition(writer, TTD_KIND_THREADS, copy.id,
                                  begin ? &writer->threads : NULL, id);
}

enum ttd_status ttd_writer_heap(struct ttd_writer *writer, const struct ttd_heap *heap, ttd_id *id)
{
    bool is_right = id && ttd_writer_knows(writer, heap->name, writer->strings);
    enum ttd_status status =
        records_begin_definition(writer, TTD_KIND_HEAPS, writer->heaps, is_right ? NULL : "heap");
    if (status != TTD_OK)
        return status;
    ttd_encode_heap(&writer->records[TTD_KIND_HEAPS].payload, heap);
    return records_end_definition(writer, TTD_KIND_HEAPS, writer->heaps + 1, &writer->heaps, id);
}

static const char *records_check_heap_parent(const struct ttd_writer *writer,
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
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_HEAP_PARENTS,
                                                     records_check_heap_parent(writer, parent));
    if (status != TTD_OK)
        return status;
    ttd_encode_heap_parent(&writer->records[TTD_KIND_HEAP_PARENTS].payload, parent);
    return records_end_definition(writer, TTD_KIND_HEAP_PARENTS, parent->heap,
                                  &writer->settled_heap, NULL);
}

static const char *records_check_symbol(const struct ttd_writer *writer,
                                        const struct ttd_symbol *symbol)
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
        ttd_writer_begin_record(writer, TTD_KIND_SYMBOLS, records_check_symbol(writer, symbol));
    if (status != TTD_OK)
        return status;
    struct ttd_record_buffer *records = &writer->records[TTD_KIND_SYMBOLS];
    /* A chunk is decoded without any other, so differences begin anew. */
    if (records->count == 0)
        writer->symbol_offset = 0;
    ttd_encode_symbol(&records->payload, symbol, &writer->symbol_offset);
    return ttd_writer_end_record(writer, TTD_KIND_SYMBOLS);
}

/** Raw bytes of a chunk of pages at most, but for one page. */
#define PAGES_SIZE (UINT32_C(1) << 20)

enum ttd_status ttd_writer_loss(struct ttd_writer *writer, const struct ttd_loss *loss)
{
    bool is_known = loss->reason >= 0 && ttd_writer_knows(writer, loss->thread, writer->threads);
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_LOSSES, is_known ? ttd_check_loss(loss) : "loss");
    if (status != TTD_OK)
        return status;
    ttd_encode_loss(&writer->records[TTD_KIND_LOSSES].payload, loss);
    ttd_writer_touch(writer, TTD_KIND_LOSSES, loss->last_good);
    ttd_writer_touch(writer, TTD_KIND_LOSSES, loss->first_good);
    writer->lost_events = ttd_add_count(writer->lost_events, loss->count);
    return ttd_writer_end_record(writer, TTD_KIND_LOSSES);
}

enum ttd_status ttd_writer_user_event(struct ttd_writer *writer, const struct ttd_user_event *event)
{
    if (!ttd_position_is_valid(event->position) || (!event->data && event->size != 0) ||
        (event->flags & ~TTD_USER_EVENT_KEYFRAME) ||
        !ttd_writer_knows(writer, event->thread, writer->threads))
        return ttd_writer_refuse(writer, "user event");
    if (event->size > TTD_STRING_MAX)
        return ttd_writer_limit(writer, "size of a user event");
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_USER_EVENTS, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_user_event(&writer->records[TTD_KIND_USER_EVENTS].payload, event);
    ttd_writer_touch(writer, TTD_KIND_USER_EVENTS, event->position);
    return ttd_writer_end_record(writer, TTD_KIND_USER_EVENTS);
}

enum ttd_status ttd_writer_metadata(struct ttd_writer *writer, const struct ttd_metadata *metadata)
{
    if ((!metadata->key.data && metadata->key.size != 0) ||
        (!metadata->value.data && metadata->value.size != 0))
        return ttd_writer_refuse(writer, "metadata");
    if (metadata->key.size > TTD_STRING_MAX || metadata->value.size > TTD_STRING_MAX)
        return ttd_writer_limit(writer, "size of a string");
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_METADATA, NULL);
    if (status != TTD_OK)
        return status;
    ttd_encode_metadata(&writer->records[TTD_KIND_METADATA].payload, metadata);
    return ttd_writer_end_record(writer, TTD_KIND_METADATA);
}

enum ttd_status ttd_writer_state(struct ttd_writer *writer, const struct ttd_state *state)
{
    enum ttd_status status =
        ttd_writer_begin_record(writer, TTD_KIND_STATES, ttd_check_state(state));
    if (status != TTD_OK)
        return status;
    ttd_encode_state(&writer->records[TTD_KIND_STATES].payload, state);
    ttd_writer_touch(writer, TTD_KIND_STATES, state->position);
    return ttd_writer_end_record(writer, TTD_KIND_STATES);
}

enum ttd_status ttd_writer_sum(struct ttd_writer *writer, const struct ttd_sum *sum)
{
    enum ttd_status status = ttd_writer_begin_record(writer, TTD_KIND_SUMS, ttd_check_sum(sum));
    if (status != TTD_OK)
        return status;
    ttd_encode_sum(&writer->records[TTD_KIND_SUMS].payload, sum);
    return ttd_writer_end_record(writer, TTD_KIND_SUMS);
}

static const char *records_check_blocks(const struct ttd_writer *writer,
                                        const struct ttd_live_blocks *blocks)
{
    if (blocks->list < TTD_BLOCKS_KEYFRAME || blocks->list > TTD_BLOCKS_RUNTIME)
        return "list of blocks";
    if (blocks->list_id == 0)
        return "number of a list of blocks";
    if (!ttd_position_is_valid(blocks->position))
        return "position of a list of blocks";
    if ((!blocks->blocks && blocks->count != 0) || blocks->count > TTD_RECORDS_MAX)
        return "number of blocks";
    /* Address 0 is no block, so 0 stands before the first. */
    static const struct ttd_block no_block;
    const struct ttd_block *last = &no_block;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct ttd_block *block = &blocks->blocks[i];
        if (!ttd_block_follows(block, last->address, last->heap))
            return "order of blocks";
        last = block;
        if (!ttd_position_is_valid(block->allocated))
            return "position of a block";
        if (!ttd_writer_knows(writer, block->thread, writer->threads) ||
            !ttd_writer_knows(writer, block->heap, writer->heaps) ||
            !ttd_writer_knows(writer, block->stack, writer->stack_count))
            return "identifier in a block";
    }
    return NULL;
}

enum ttd_status ttd_writer_live_blocks(struct ttd_writer *writer,
                                       const struct ttd_live_blocks *blocks)
{
    struct ttd_list_state list = writer->list;
    const char *violation = records_check_blocks(writer, blocks);
    if (!violation)
        violation = ttd_list_take(&list, blocks);
    enum ttd_status status = ttd_writer_begin_chunk(writer, violation);
    if (status != TTD_OK)
        return status;
    /* Taken over once the chunk can be written: a refused one changes nothing. */
    writer->list = list;
    ttd_encode_live_blocks(&writer->payload, blocks, writer->columns);
    return ttd_writer_put_records(writer, TTD_KIND_LIVE_BLOCKS, blocks->count, blocks->position);
}

enum ttd_status ttd_writer_pages(struct ttd_writer *writer, const struct ttd_pages *pages,
                                 uint64_t *first_page)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (!ttd_page_size_is_valid(pages->page_size) || !first_page ||
        (!pages->data && pages->count != 0))
        return ttd_writer_refuse(writer, "pages");
    uint64_t first = writer->records[TTD_KIND_PAGES].next_record;
    /* Chunks of limited size: a reader that wants one page decompresses one chunk. */
    uint32_t max_count = PAGES_SIZE / pages->page_size;
    for (uint32_t i = 0; i < pages->count;) {
        uint32_t remaining = pages->count - i;
        struct ttd_pages part = *pages;
        part.count = remaining < max_count ? remaining : max_count;
        part.data = pages->data + (size_t)i * pages->page_size;
        ttd_encode_pages(&writer->payload, &part);
        enum ttd_status status =
            ttd_writer_put_records(writer, TTD_KIND_PAGES, part.count, writer->position);
        if (status != TTD_OK)
            return status;
        i += part.count;
    }
    *first_page = first;
    return TTD_OK;
}

static const char *records_check_map(const struct ttd_writer *writer,
                                     const struct ttd_memory_map *map)
{
    if (!ttd_page_size_is_valid(map->page_size))
        return "page size";
    if (map->snapshot == 0)
        return "number of a snapshot";
    if (!ttd_position_is_valid(map->position))
        return "position of a memory map";
    if ((!map->runs && map->count != 0) || map->count > TTD_RECORDS_MAX)
        return "number of runs";
    /* In pages, so that the end of the address space is a number. */
    uint64_t end = UINT64_MAX / map->page_size + 1;
    uint64_t next = 0;
    uint64_t pages = writer->records[TTD_KIND_PAGES].next_record;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        uint64_t page = run->address / map->page_size;
        if (run->address % map->page_size != 0 || page < next || run->page_count == 0 ||
            run->page_count > end - page)
            return "order of runs";
        if (run->protection & ~TTD_MEMORY_MASK)
            return "protection of a run";
        if (run->page >= TTD_PAGE_FIRST &&
            (run->page >= pages || run->page_count > pages - run->page))
            return "page of a run";
        next = page + run->page_count;
    }
    return NULL;
}

enum ttd_status ttd_writer_memory_map(struct ttd_writer *writer, const struct ttd_memory_map *map)
{
    struct ttd_snapshot_order order = writer->snapshots;
    const char *violation = records_check_map(writer, map);
    if (!violation)
        violation = ttd_snapshot_order_part(&order, map->snapshot);
    enum ttd_status status = ttd_writer_begin_chunk(writer, violation);
    if (status != TTD_OK)
        return status;
    writer->snapshots = order;
    ttd_encode_memory_map(&writer->payload, map);
    return ttd_writer_put_records(writer, TTD_KIND_MEMORY_MAP, map->count, map->position);
}

/* Validation of events. The encoder skips it for an event that is just as predicted. */

/** Validates the members that only some actions have. Returns the first violation, or NULL. */
static const char *write_events_check_action(const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    if (event->action < TTD_ACTION_ALLOC || event->action > TTD_ACTION_DESTROY)
        return "action";
    if (event->address != 0 && (!allocates || event->result == 0))
        return "address";
    if (event->base_address != 0 && !releases)
        return "base_address";
    /* It repeats the base address: a file has only one of them. */
    if (event->previous_address != (event->action == TTD_ACTION_REALLOC ? event->base_address : 0))
        return "previous_address";
    if (event->size != 0 && !allocates && !releases)
        return "size";
    if ((event->reserve_size != 0 || event->commit_size != 0) && event->action != TTD_ACTION_CREATE)
        return "reserve_size or commit_size";
    if (event->make_read_only != 0 && event->action != TTD_ACTION_PROTECT)
        return "make_read_only";
    if (event->parameter_count > (event->parameters ? TTD_PARAMETERS_MAX : 0))
        return "parameter_count";
    return NULL;
}

/** Validates the times. Returns the first violation, or NULL. */
static const char *write_events_check_times(const struct ttd_writer *writer,
                                            const struct ttd_event *event)
{
    if (!ttd_position_is_valid(event->time_start))
        return "time_start";
    if (ttd_event_returned(event)) {
        if (ttd_position_compare(event->time_start, event->time_end) > 0)
            return "time_end";
    } else if (event->result != 0 ||
               ttd_position_compare(event->time_end, ttd_position_invalid()) != 0) {
        return "result of a call that never returned";
    }
    if (ttd_position_compare(ttd_event_position(event), writer->position) < 0)
        return "order of events";
    /* The division is slow, and most events have the time of the one before. */
    if (event->wall_time != writer->wall_time &&
        (event->wall_time == UINT64_MAX ||
         (writer->time_unit != 1 && event->wall_time % writer->time_unit != 0)))
        return "wall_time";
    return NULL;
}

const char *ttd_writer_check_event(const struct ttd_writer *writer, const struct ttd_event *event)
{
    if (!ttd_writer_knows(writer, event->thread, writer->threads))
        return "thread";
    if (!ttd_writer_knows(writer, event->heap, writer->heaps))
        return "heap";
    if (!ttd_writer_knows(writer, event->stack, writer->stack_count))
        return "stack";
    const char *violation = write_events_check_action(event);
    return violation ? violation : write_events_check_times(writer, event);
}

/** Checks and adds an event. */
static enum ttd_status write_events_add(struct ttd_writer *writer, const struct ttd_event *event)
{
    const char *violation = ttd_writer_check_event(writer, event);
    if (violation)
        return ttd_writer_refuse(writer, violation);
    if (!ttd_events_encoder_add(&writer->events, event))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    if (event->heap > writer->settled_heap)
        writer->settled_heap = event->heap;
    return TTD_OK;
}

/** Counts events that were added; `last` is the wall time of the last of them. */
static enum ttd_status write_events_count(struct ttd_writer *writer, size_t count,
                                          uint64_t wall_time)
{
    writer->event_count += count;
    writer->position = writer->events.state.effect;
    writer->wall_time = wall_time;
    if (writer->events.count == writer->options.events_per_chunk)
        return ttd_writer_flush_events(writer);
    return TTD_OK;
}

enum ttd_status ttd_writer_event(struct ttd_writer *writer, const struct ttd_event *event)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (!ttd_events_encoder_add_usual(&writer->events, event)) {
        enum ttd_status status = write_events_add(writer, event);
        if (status != TTD_OK)
            return status;
    }
    return write_events_count(writer, 1, event->wall_time);
}

/** Appends the mispredicted event of call number `i`. */
static enum ttd_status write_events_add_call(struct ttd_writer *writer,
                                             const struct ttd_calls *calls, size_t i)
{
    const struct ttd_call *call = &calls->calls[i];
    bool frees = call->action == TTD_ACTION_FREE;
    const uint64_t parameters[] = {frees ? call->address : call->size, call->size};
    struct ttd_event event = {.action = call->action,
                              .api = call->api,
                              .heap = calls->heap,
                              .thread = calls->thread,
                              .stack = call->stack,
                              .address = frees ? 0 : call->address,
                              .base_address = frees ? call->address : 0,
                              .size = call->size,
                              .result = 1,
                              .wall_time = calls->wall_time,
                              .time_start = calls->start,
                              .parameters = parameters,
                              .parameter_count = call->parameter_count};
    event.time_start.steps += 2 * (uint64_t)i;
    event.time_end = event.time_start;
    event.time_end.steps++;
    if (call->address == 0 || call->parameter_count < 1 ||
        call->parameter_count > (frees ? 2 : 1) || (!frees && call->action != TTD_ACTION_ALLOC))
        return ttd_writer_refuse(writer, "call");
    enum ttd_status status = write_events_add(writer, &event);
    return status != TTD_OK ? status : write_events_count(writer, 1, calls->wall_time);
}

enum ttd_status ttd_writer_calls(struct ttd_writer *writer, const struct ttd_calls *calls,
                                 size_t *written)
{
    enum ttd_status status = writer->failed ? TTD_ERROR_MISUSE : TTD_OK;
    *written = 0;
    while (status == TTD_OK && *written < calls->count) {
        uint32_t room = writer->options.events_per_chunk - writer->events.count;
        struct ttd_calls fitting = *calls;
        if (fitting.count - *written > room)
            fitting.count = *written + room;
        size_t added_count = ttd_events_encoder_add_calls(&writer->events, &fitting, *written);
        if (added_count != 0) {
            status = write_events_count(writer, added_count, calls->wall_time);
        } else {
            status = write_events_add_call(writer, calls, *written);
            added_count = 1;
        }
        *written += added_count - (status != TTD_OK); /* it is the last one's status */
    }
    return status;
}
