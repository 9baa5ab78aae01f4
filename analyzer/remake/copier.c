/* SPDX-License-Identifier: MIT */
#include "remake/copier.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

#include "base/grow.h"

enum ttd_status copier_open(struct copier *copier, const struct ttd_trace *trace,
                            const struct ttd_output *output)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.level = REMAKE_LEVEL;
    return ttd_writer_open(output, trace, &options, NULL, &copier->writer, copier->error);
}

enum ttd_status copier_close_writer(struct copier *copier, enum ttd_status status,
                                    const struct ttd_end *end)
{
    if (status != TTD_OK) {
        struct ttd_error failure = ttd_writer_error(copier->writer);
        if (failure.status == status)
            *copier->error = failure;
        ttd_writer_close(copier->writer, NULL, NULL);
        return status;
    }
    return ttd_writer_close(copier->writer, end, copier->error);
}

void copier_free(struct copier *copier)
{
    for (int sort = 0; sort < COPIER_SORTS; sort++)
        free(copier->ids[sort].ids);
    free(copier->spare);
}

/* Ids. */

ttd_id copier_id(const struct copier *copier, enum copier_sort sort, ttd_id old)
{
    const struct copier_ids *ids = &copier->ids[sort];
    if (!copier->changes_ids)
        return old;
    return old < ids->count ? ids->ids[old] : TTD_NONE;
}

enum ttd_status copier_set_id(struct copier *copier, enum copier_sort sort, ttd_id old, ttd_id id)
{
    struct copier_ids *ids = &copier->ids[sort];
    enum ttd_status status =
        grow_array((void **)&ids->ids, &ids->capacity, (size_t)old + 1, sizeof *ids->ids);
    if (status != TTD_OK)
        return status;
    while (ids->count <= old)
        ids->ids[ids->count++] = TTD_NONE;
    ids->ids[old] = id;
    return TTD_OK;
}

/* Notes a definition that was written. An id that was left out cannot be left out again. */
static enum ttd_status copier_define(struct copier *copier, enum copier_sort sort, ttd_id old,
                                     ttd_id id, enum ttd_status status)
{
    if (status != TTD_OK)
        return status;
    if (copier->changes_ids)
        return copier_set_id(copier, sort, old, id);
    return id == old ? TTD_OK
                     : remake_refuse(copier->error, TTD_ERROR_UNSUPPORTED,
                                     "definitions were lost before the trace was recovered, and "
                                     "ids would change");
}

static ttd_id copier_string(const struct copier *copier, ttd_id old)
{
    return copier_id(copier, COPIER_STRINGS, old);
}

/* Makes room for `count` records that are changed. */
static void *copier_spare(struct copier *copier, size_t count, size_t size)
{
    return grow_array(&copier->spare, &copier->spare_capacity, count * size + 1, 1) == TTD_OK
               ? copier->spare
               : NULL;
}

/* Definitions. The functions have the names of the members of a batch. */

static enum ttd_status copier_strings(struct copier *copier,
                                      const struct ttd_string_definition *string)
{
    ttd_id id = TTD_NONE;
    enum ttd_status status =
        ttd_writer_string(copier->writer, string->text.data, string->text.size, &id);
    return copier_define(copier, COPIER_STRINGS, string->id, id, status);
}

static enum ttd_status copier_modules(struct copier *copier, const struct ttd_module *module)
{
    struct ttd_module copy = *module;
    ttd_id id = TTD_NONE;
    copy.path = copier_string(copier, module->path);
    copy.id = copier_id(copier, COPIER_MODULES, module->id);
    enum ttd_status status = ttd_writer_module(copier->writer, &copy, &id);
    return module->action == TTD_MODULE_LOAD
               ? copier_define(copier, COPIER_MODULES, module->id, id, status)
               : status;
}

static enum ttd_status copier_threads(struct copier *copier, const struct ttd_thread *thread)
{
    struct ttd_thread copy = *thread;
    ttd_id id = TTD_NONE;
    copy.name = copier_string(copier, thread->name);
    copy.id = copier_id(copier, COPIER_THREADS, thread->id);
    enum ttd_status status = ttd_writer_thread(copier->writer, &copy, &id);
    return thread->action == TTD_THREAD_BEGIN
               ? copier_define(copier, COPIER_THREADS, thread->id, id, status)
               : status;
}

static enum ttd_status copier_heaps(struct copier *copier, const struct ttd_heap *heap)
{
    struct ttd_heap copy = *heap;
    ttd_id id = TTD_NONE;
    copy.name = copier_string(copier, heap->name);
    enum ttd_status status = TTD_OK;
    if (copier->change_heap) {
        copy.name = heap->name;
        status = copier->change_heap(copier->context, &copy);
    }
    if (status == TTD_OK)
        status = ttd_writer_heap(copier->writer, &copy, &id);
    return copier_define(copier, COPIER_HEAPS, heap->id, id, status);
}

static enum ttd_status copier_heap_parents(struct copier *copier,
                                           const struct ttd_heap_parent *parent)
{
    struct ttd_heap_parent copy = {.heap = copier_id(copier, COPIER_HEAPS, parent->heap),
                                   .parent = copier_id(copier, COPIER_HEAPS, parent->parent)};
    return ttd_writer_heap_parent(copier->writer, &copy);
}

static enum ttd_status copier_stacks(struct copier *copier, const struct ttd_stack *stack)
{
    ttd_id id = TTD_NONE;
    enum ttd_status status =
        ttd_writer_stack(copier->writer, copier_id(copier, COPIER_STACKS, stack->parent),
                         copier_id(copier, COPIER_MODULES, stack->module), stack->offset, &id);
    return copier_define(copier, COPIER_STACKS, stack->id, id, status);
}

/* Copies the stacks of a chunk that its reader has left undecoded. */
static enum ttd_status copier_stored_stacks(struct copier *copier, const struct ttd_batch *batch)
{
    struct ttd_stacks *stacks;
    enum ttd_status status = ttd_stacks_open(batch, NULL, &stacks);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        struct ttd_stack stack;
        status =
            ttd_stacks_get(stacks, (ttd_id)(batch->chunk.first_record + i), &stack, copier->error);
        if (status == TTD_OK)
            status = copier_stacks(copier, &stack);
    }
    copier->result->records[TTD_KIND_STACKS] += batch->count;
    ttd_stacks_close(stacks);
    return status;
}

static enum ttd_status copier_symbols(struct copier *copier, const struct ttd_symbol *symbol)
{
    struct ttd_symbol copy = *symbol;
    struct ttd_symbol_frame *frames = copier_spare(copier, symbol->frame_count, sizeof *frames);
    if (!frames)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < symbol->frame_count; i++)
        frames[i] =
            (struct ttd_symbol_frame){.function = copier_string(copier, symbol->frames[i].function),
                                      .file = copier_string(copier, symbol->frames[i].file),
                                      .line = symbol->frames[i].line};
    copy.module = copier_id(copier, COPIER_MODULES, symbol->module);
    copy.frames = frames;
    return ttd_writer_symbol(copier->writer, &copy);
}

static enum ttd_status copier_variables(struct copier *copier, const struct ttd_variable *variable)
{
    struct ttd_variable copy = *variable;
    copy.module = copier_id(copier, COPIER_MODULES, variable->module);
    copy.name = copier_string(copier, variable->name);
    return ttd_writer_variable(copier->writer, &copy);
}

/* Facts. */

static enum ttd_status copier_metadata(struct copier *copier, const struct ttd_metadata *fact)
{
    return ttd_writer_metadata(copier->writer, fact);
}

static enum ttd_status copier_user_events(struct copier *copier, const struct ttd_user_event *event)
{
    struct ttd_user_event copy = *event;
    copy.thread = copier_id(copier, COPIER_THREADS, event->thread);
    copy.wall_time += copier->time_offset;
    return ttd_writer_user_event(copier->writer, &copy);
}

static enum ttd_status copier_losses(struct copier *copier, const struct ttd_loss *loss)
{
    struct ttd_loss copy = *loss;
    copy.thread = copier_id(copier, COPIER_THREADS, loss->thread);
    return ttd_writer_loss(copier->writer, &copy);
}

/* States and sums have a meaning in derived files only, which are no sources. */
static enum ttd_status copier_states(struct copier *copier, const struct ttd_state *state)
{
    return ttd_writer_state(copier->writer, state);
}

static enum ttd_status copier_sums(struct copier *copier, const struct ttd_sum *sum)
{
    return ttd_writer_sum(copier->writer, sum);
}

/* Snapshots. */

static enum ttd_status copier_frames(struct copier *copier, const struct ttd_frames *frames)
{
    struct ttd_frames copy = *frames;
    copy.thread = copier_id(copier, COPIER_THREADS, frames->thread);
    copy.stack = copier_id(copier, COPIER_STACKS, frames->stack);
    return ttd_writer_frames(copier->writer, &copy);
}

static enum ttd_status copier_snapshots(struct copier *copier, const struct ttd_snapshot *snapshot)
{
    struct ttd_snapshot copy = *snapshot;
    copy.thread = copier_id(copier, COPIER_THREADS, snapshot->thread);
    copy.wall_time += copier->time_offset;
    return ttd_writer_snapshot(copier->writer, &copy);
}

static enum ttd_status copier_fatal_signals(struct copier *copier,
                                            const struct ttd_fatal_signal *signal)
{
    struct ttd_fatal_signal copy = *signal;
    copy.thread = copier_id(copier, COPIER_THREADS, signal->thread);
    copy.stack = copier_id(copier, COPIER_STACKS, signal->stack);
    copy.wall_time += copier->time_offset;
    return ttd_writer_fatal_signal(copier->writer, &copy);
}

static enum ttd_status copier_regions(struct copier *copier, const struct ttd_regions *list)
{
    struct ttd_regions copy = *list;
    struct ttd_region *regions = copier_spare(copier, list->count, sizeof *regions);
    if (!regions)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        regions[i] = list->regions[i];
        regions[i].thread = copier_id(copier, COPIER_THREADS, list->regions[i].thread);
        regions[i].module = copier_id(copier, COPIER_MODULES, list->regions[i].module);
        regions[i].name = copier_string(copier, list->regions[i].name);
    }
    copy.regions = regions;
    return ttd_writer_regions(copier->writer, &copy);
}

static enum ttd_status copier_references(struct copier *copier, const struct ttd_references *list)
{
    return ttd_writer_references(copier->writer, list);
}

static enum ttd_status copier_classes(struct copier *copier, const struct ttd_classes *list)
{
    struct ttd_classes copy = *list;
    struct ttd_class *classes = copier_spare(copier, list->count, sizeof *classes);
    if (!classes)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++)
        classes[i] = (struct ttd_class){list->classes[i].address,
                                        copier_string(copier, list->classes[i].name)};
    copy.classes = classes;
    return ttd_writer_classes(copier->writer, &copy);
}

static enum ttd_status copier_block_headers(struct copier *copier,
                                            const struct ttd_block_headers *headers)
{
    return ttd_writer_block_headers(copier->writer, headers);
}

static enum ttd_status copier_pages(struct copier *copier, const struct ttd_pages *pages)
{
    uint64_t first = 0;
    enum ttd_status status = ttd_writer_pages(copier->writer, pages, &first);
    if (status != TTD_OK || first == pages->first_page)
        return status;
    return remake_refuse(copier->error, TTD_ERROR_UNSUPPORTED,
                         "pages of memory were lost before the trace was recovered, and ids would "
                         "change");
}

static enum ttd_status copier_memory_map(struct copier *copier, const struct ttd_memory_map *map)
{
    return ttd_writer_memory_map(copier->writer, map);
}

/* Events and blocks. */

uint64_t copier_digest(uint64_t digest, const struct ttd_event *event)
{
    const uint64_t members[] = {
        event->time_start.sequence,
        event->time_start.steps,
        event->time_end.sequence,
        event->time_end.steps,
        event->wall_time,
        event->address,
        event->base_address,
        event->size,
        event->flags,
        event->result,
        event->reserve_size,
        event->commit_size,
        event->make_read_only,
        event->parameter_count,
        (uint64_t)event->thread << 32 | event->stack,
        (uint64_t)event->heap << 32 | (uint64_t)event->action << 8 | event->api,
    };
    uint64_t factor = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t sum = 0;
    /* Products that do not wait for each other. */
    for (size_t i = 0; i < sizeof members / sizeof *members; i++, factor += factor << 3)
        sum += (members[i] ^ members[i] >> 32) * factor;
    digest = (digest ^ sum) * UINT64_C(0x9E3779B97F4A7C15);
    digest ^= digest >> 32;
    for (uint32_t i = 0; i < event->parameter_count; i++)
        digest = (digest ^ event->parameters[i]) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return digest;
}

/* Every reference of a trace that was never damaged is defined. */
static enum ttd_status copier_check_references(struct copier *copier, enum ttd_status status)
{
    return status == TTD_ERROR_ARGUMENT
               ? remake_refuse(copier->error, TTD_ERROR_UNSUPPORTED,
                               "definitions were lost before the trace was recovered, and records "
                               "refer to them")
               : status;
}

enum ttd_status copier_put_event(struct copier *copier, const struct ttd_event *event)
{
    struct ttd_event copy = *event;
    copy.thread = copier_id(copier, COPIER_THREADS, event->thread);
    copy.stack = copier_id(copier, COPIER_STACKS, event->stack);
    copy.wall_time += copier->time_offset;
    enum ttd_status status = TTD_OK;
    if (copier->change_event)
        status = copier->change_event(copier->context, &copy);
    else
        copy.heap = copier_id(copier, COPIER_HEAPS, event->heap);
    if (status == TTD_OK)
        status = ttd_writer_event(copier->writer, &copy);
    if (status != TTD_OK)
        return copier_check_references(copier, status);
    copier->result->events++;
    copier->result->digest = copier_digest(copier->result->digest, &copy);
    if (copy.wall_time > copier->wall_time)
        copier->wall_time = copy.wall_time;
    return TTD_OK;
}

static enum ttd_status copier_events(struct copier *copier, const struct ttd_event *event)
{
    return copier_put_event(copier, event);
}

static enum ttd_status copier_live_blocks(struct copier *copier, const struct ttd_live_blocks *list)
{
    if (!copier->change_list)
        return ttd_writer_live_blocks(copier->writer, list);
    struct ttd_live_blocks copy = *list;
    struct ttd_block *blocks = copier_spare(copier, list->count, sizeof *blocks);
    if (!blocks)
        return TTD_ERROR_NO_MEMORY;
    if (list->count)
        memcpy(blocks, list->blocks, list->count * sizeof *blocks);
    copy.blocks = blocks;
    enum ttd_status status = copier->change_list(copier->context, &copy, blocks);
    copier->result->records[TTD_KIND_LIVE_BLOCKS] -= list->count - copy.count;
    return status == TTD_OK ? ttd_writer_live_blocks(copier->writer, &copy) : status;
}

/* The first chunk was written when the copier was opened. */
static enum ttd_status copier_trace(struct copier *copier, const struct ttd_trace *trace)
{
    (void)copier, (void)trace;
    return TTD_OK;
}

static enum ttd_status copier_end(struct copier *copier, const struct ttd_end *end)
{
    copier->end = *end;
    return TTD_OK;
}

/* Event numbers follow each other, except where a trace was recovered. */
static enum ttd_status copier_check_number(struct copier *copier, const struct ttd_batch *batch)
{
    bool is_whole = copier->changes_ids || copier->change_event || !batch->count ||
                    batch->u.events[0].number == copier->result->events;
    return is_whole ? TTD_OK
                    : remake_refuse(copier->error, TTD_ERROR_UNSUPPORTED,
                                    "events were lost before the trace was recovered, and their "
                                    "numbers would change");
}

/* A record of some kinds is a list, whose entries are counted. */
#define COPIER_MANY false
#define COPIER_ONE  true
#define COPIER_IS_LIST(name, number, text, minor, properties, count, ...)                          \
    [TTD_KIND_##name] = COPIER_##count,
#define COPIER_NOTHING(...)
static const bool copier_lists[TTD_KIND_LAST + 1] = {TTD_KINDS(COPIER_IS_LIST, COPIER_NOTHING)};

uint64_t copier_count(const struct ttd_batch *batch)
{
    if (batch->kind == TTD_KIND_TRACE || batch->kind == TTD_KIND_END)
        return 0;
    return batch->kind <= TTD_KIND_LAST && copier_lists[batch->kind] ? batch->chunk.record_count
                                                                     : 1;
}

#define COPIER_CASE(name, number, text, minor, properties, count, record, member, ids)             \
    case TTD_KIND_##name:                                                                          \
        if (copier->wants && !copier->wants(copier->context, batch, &batch->u.member[i]))          \
            break;                                                                                 \
        copier->result->records[TTD_KIND_##name] += copier_count(batch);                           \
        status = copier_##member(copier, &batch->u.member[i]);                                     \
        break;

static enum ttd_status copier_put_records(struct copier *copier, const struct ttd_batch *batch)
{
    enum ttd_status status =
        batch->kind == TTD_KIND_EVENTS ? copier_check_number(copier, batch) : TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        switch (batch->kind) {
            TTD_KINDS(COPIER_CASE, COPIER_NOTHING)
        default:
            break;
        }
    }
    return status;
}

enum ttd_status copier_put(struct copier *copier, const struct ttd_batch *batch)
{
    bool is_stored = batch->kind == TTD_KIND_STACKS && batch->stored;
    enum ttd_status status =
        is_stored ? copier_stored_stacks(copier, batch) : copier_put_records(copier, batch);
    return copier_check_references(copier, status);
}

enum ttd_status copier_put_loss(struct copier *copier, const struct ttd_loss *loss)
{
    copier->result->records[TTD_KIND_LOSSES]++;
    return ttd_writer_loss(copier->writer, loss);
}

enum ttd_status copier_put_fact(struct copier *copier, const char *key, const char *value)
{
    struct ttd_metadata fact = {{key, strlen(key)}, {value, strlen(value)}};
    copier->result->records[TTD_KIND_METADATA]++;
    return ttd_writer_metadata(copier->writer, &fact);
}
