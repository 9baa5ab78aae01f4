/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "read/read_internal.h"

/** Takes in a new id; it must be the next one. */
static bool ids_define(struct ttd_id_check *ids, ttd_id id, ttd_id *count)
{
    bool right = id == *count + 1 || (ids->unknown && id > *count);
    ids->redefines |= id <= *count;
    if (id > *count)
        *count = id;
    return right;
}

/**
 * Returns the first violation of a batch: `violation` if there is one already, else `what` unless
 * `is_right`. Records behind a wrong one are checked as well, so that their ids count as defined.
 */
static const char *id_check_first_wrong(const char *violation, bool is_right, const char *what)
{
    return violation || is_right ? violation : what;
}

static const char *ids_check_strings(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        bool is_next = ids_define(ids, batch->u.strings[i].id, &ids->strings);
        violation = id_check_first_wrong(violation, is_next, "order of strings");
    }
    return violation;
}

static const char *ids_check_modules(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_module *module = &batch->u.modules[i];
        if (module->action == TTD_MODULE_UNLOAD) {
            violation =
                id_check_first_wrong(violation, ttd_id_check_knows(ids, module->id, ids->modules),
                                     "unload of an undefined module");
            continue;
        }
        bool is_next = ids_define(ids, module->id, &ids->modules);
        violation = id_check_first_wrong(violation, is_next, "order of modules");
        violation =
            id_check_first_wrong(violation, ttd_id_check_knows(ids, module->path, ids->strings),
                                 "undefined path of a module");
    }
    return violation;
}

static const char *ids_check_threads(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_thread *thread = &batch->u.threads[i];
        violation =
            id_check_first_wrong(violation, ttd_id_check_knows(ids, thread->name, ids->strings),
                                 "undefined name of a thread");
        bool is_right = thread->action == TTD_THREAD_END
                            ? ttd_id_check_knows(ids, thread->id, ids->threads)
                            : ids_define(ids, thread->id, &ids->threads);
        violation = id_check_first_wrong(violation, is_right, "order of threads");
    }
    return violation;
}

static const char *ids_check_heaps(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        bool is_next = ids_define(ids, batch->u.heaps[i].id, &ids->heaps);
        violation = id_check_first_wrong(violation, is_next, "order of heaps");
        violation = id_check_first_wrong(
            violation, ttd_id_check_knows(ids, batch->u.heaps[i].name, ids->strings),
            "undefined name of a heap");
    }
    return violation;
}

static inline ttd_id id_check_larger(ttd_id a, ttd_id b)
{
    return a > b ? a : b;
}

/** Parents have lower ids than heaps, so they are defined if these are. */
static const char *ids_check_heap_parents(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        ttd_id heap = batch->u.heap_parents[i].heap;
        violation =
            id_check_first_wrong(violation, heap > ids->settled_heap, "order of heap parents");
        violation = id_check_first_wrong(violation, ttd_id_check_knows(ids, heap, ids->heaps),
                                         "undefined heap of a parent");
        ids->redefines = ids->redefines || heap <= ids->settled_heap;
        ids->settled_heap = id_check_larger(ids->settled_heap, heap);
    }
    return violation;
}

/** Checks a stack, for whose depth there is room. Returns the first violation, or NULL. */
static const char *check_stack(struct ttd_id_check *ids, const struct ttd_stack *stack)
{
    if (!ids_define(ids, stack->id, &ids->stacks)) {
        /* Nor could depths be kept: the array would grow as ids do, not as bytes. */
        ids->unknown = true;
        return "order of stacks";
    }
    const char *violation = id_check_first_wrong(
        NULL, ttd_id_check_knows(ids, stack->module, ids->modules), "undefined module of a stack");
    if (ids->unknown)
        return violation;
    unsigned depth = stack->parent ? ids->depths[stack->parent] + 1u : 1;
    bool is_right = depth <= TTD_STACK_DEPTH_MAX;
    ids->depths[stack->id] = (uint16_t)(is_right ? depth : TTD_STACK_DEPTH_MAX + 1u);
    return id_check_first_wrong(violation, is_right, "depth of a stack");
}

bool ttd_id_check_grow(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                       size_t count)
{
    void *depths = ids->depths;
    if (ttd_grow_array(allocator, &depths, &ids->depths_capacity, (size_t)ids->stacks + count + 1,
                       sizeof *ids->depths))
        return false;
    ids->depths = depths;
    return true;
}

static const char *ids_check_stacks(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const char *wrong = check_stack(ids, &batch->u.stacks[i]);
        violation = id_check_first_wrong(violation, !wrong, wrong);
    }
    return violation;
}

static const char *ids_check_symbols(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_symbol *symbol = &batch->u.symbols[i];
        if (!ttd_id_check_knows(ids, symbol->module, ids->modules))
            return "undefined module of a symbol";
        for (uint32_t k = 0; k < symbol->frame_count; k++)
            if (!ttd_id_check_knows(ids, symbol->frames[k].function, ids->strings) ||
                !ttd_id_check_knows(ids, symbol->frames[k].file, ids->strings))
                return "undefined name in a symbol";
    }
    return NULL;
}

/** The largest ids stand for all. */
static const char *ids_check_events(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    ttd_id thread = 0;
    ttd_id heap = 0;
    ttd_id stack = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        thread = id_check_larger(thread, event->thread);
        heap = id_check_larger(heap, event->heap);
        stack = id_check_larger(stack, event->stack);
    }
    ids->settled_heap = id_check_larger(ids->settled_heap, heap);
    if (!ttd_id_check_knows(ids, thread, ids->threads))
        return "undefined thread of an event";
    if (!ttd_id_check_knows(ids, heap, ids->heaps))
        return "undefined heap of an event";
    return ttd_id_check_knows(ids, stack, ids->stacks) ? NULL : "undefined stack of an event";
}

static const char *ids_check_live_blocks(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_live_blocks *list = batch->u.live_blocks;
    const char *violation = ttd_list_take(&ids->list, list);
    if (violation && !ids->unknown)
        return violation;
    for (size_t i = 0; i < list->count; i++) {
        const struct ttd_block *block = &list->blocks[i];
        if (!ttd_id_check_knows(ids, block->thread, ids->threads) ||
            !ttd_id_check_knows(ids, block->heap, ids->heaps) ||
            !ttd_id_check_knows(ids, block->stack, ids->stacks))
            return "undefined identifier of a block";
    }
    return NULL;
}

static const char *ids_check_pages(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_pages *pages = batch->u.pages;
    uint64_t expected = ids->pages ? ids->pages : TTD_PAGE_FIRST;
    bool right = pages->first_page == expected || (ids->unknown && pages->first_page > expected);
    ids->redefines = pages->first_page < expected;
    if (pages->first_page + pages->count > ids->pages)
        ids->pages = pages->first_page + pages->count;
    return right ? NULL : "order of pages";
}

static const char *ids_check_memory_map(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_memory_map *map = batch->u.memory_map;
    const char *violation = ttd_snapshot_order_part(&ids->snapshots, map->snapshot);
    if (ids->unknown || violation)
        return ids->unknown ? NULL : violation;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        if (run->page >= TTD_PAGE_FIRST &&
            (run->page >= ids->pages || run->page_count > ids->pages - run->page))
            return "undefined page of a memory map";
    }
    return NULL;
}

static const char *ids_check_losses(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (!ttd_id_check_knows(ids, batch->u.losses[i].thread, ids->threads))
            return "undefined thread";
    return NULL;
}

static const char *ids_check_user_events(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (!ttd_id_check_knows(ids, batch->u.user_events[i].thread, ids->threads))
            return "undefined thread";
    return NULL;
}

/* Snapshots and their parts: ids, and their order (spec, "Snapshots"). */

/** Returns `violation`, but NULL where definitions may be missing: the order is then unknown, too.
 */
static const char *id_check_unless_unknown(const struct ttd_id_check *ids, const char *violation)
{
    return ids->unknown ? NULL : violation;
}

static const char *ids_check_snapshots(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_snapshot *snapshot = &batch->u.snapshots[i];
        bool redefines;
        const char *order =
            ttd_snapshot_order_finish(&ids->snapshots, snapshot->number, &redefines);
        /* Known even where definitions may be missing: a number that was there is there. */
        ids->redefines |= redefines;
        if (!order && (snapshot->regions != ids->snapshots.regions ||
                       snapshot->references != ids->snapshots.references))
            order = "number of parts of a snapshot";
        if (!violation)
            violation = redefines ? order : id_check_unless_unknown(ids, order);
        if (!violation && !ttd_id_check_knows(ids, snapshot->thread, ids->threads))
            violation = "undefined thread of a snapshot";
    }
    return violation;
}

static const char *ids_check_regions(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_regions *list = batch->u.regions;
    const char *violation = ttd_snapshot_order_regions(&ids->snapshots, list, &ids->redefines);
    violation = ids->redefines ? violation : id_check_unless_unknown(ids, violation);
    for (size_t i = 0; i < list->count && !violation; i++) {
        const struct ttd_region *region = &list->regions[i];
        if (!ttd_id_check_knows(ids, region->thread, ids->threads) ||
            !ttd_id_check_knows(ids, region->module, ids->modules) ||
            !ttd_id_check_knows(ids, region->name, ids->strings))
            violation = "undefined identifier of a region";
    }
    return violation;
}

static const char *ids_check_references(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_references *list = batch->u.references;
    struct ttd_reference_range range = {list->snapshot, list->references,
                                        &list->references[list->count - 1], list->count};
    return id_check_unless_unknown(ids, ttd_snapshot_order_references(&ids->snapshots, &range));
}

static const char *ids_check_variables(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_variable *variable = &batch->u.variables[i];
        if (!ttd_id_check_knows(ids, variable->module, ids->modules) ||
            !ttd_id_check_knows(ids, variable->name, ids->strings))
            return "undefined identifier of a variable";
    }
    return NULL;
}

static const char *ids_check_frames(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_frames *frames = &batch->u.frames[i];
        const char *order = id_check_unless_unknown(
            ids, ttd_snapshot_order_part(&ids->snapshots, frames->snapshot));
        if (!violation)
            violation = order;
        if (!violation && (!ttd_id_check_knows(ids, frames->thread, ids->threads) ||
                           !ttd_id_check_knows(ids, frames->stack, ids->stacks)))
            violation = "undefined identifier of frames";
    }
    return violation;
}

static const char *ids_check_block_headers(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    return id_check_unless_unknown(
        ids, ttd_snapshot_order_part(&ids->snapshots, batch->u.block_headers->snapshot));
}

static const char *ids_check_classes(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const struct ttd_classes *list = batch->u.classes;
    const char *violation =
        id_check_unless_unknown(ids, ttd_snapshot_order_part(&ids->snapshots, list->snapshot));
    for (size_t i = 0; i < list->count && !violation; i++)
        if (!ttd_id_check_knows(ids, list->classes[i].name, ids->strings))
            violation = "undefined name of a class";
    return violation;
}

static const char *ids_check_fatal_signals(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_fatal_signal *signal = &batch->u.fatal_signals[i];
        if (!ttd_id_check_knows(ids, signal->thread, ids->threads) ||
            !ttd_id_check_knows(ids, signal->stack, ids->stacks))
            return "undefined identifier of a fatal signal";
    }
    return NULL;
}

typedef const char *id_check_function(struct ttd_id_check *ids, const struct ttd_batch *batch);

#define ID_CHECK_CHECKED(member) ids_check_##member
#define ID_CHECK_FREE(member)    NULL
#define ID_CHECK_RECORDS(name, number, text, minor, properties, count, record, member, ids)        \
    [number] = ID_CHECK_##ids(member),
#define ID_CHECK_NONE(...)

/** The function of each kind, by number; NULL for kinds without ids. */
static id_check_function *const id_checks[TTD_KIND_LAST + 1] = {
    TTD_KINDS(ID_CHECK_RECORDS, ID_CHECK_NONE)};

bool ttd_id_check_batch(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                        const struct ttd_batch *batch, const char **what)
{
    *what = NULL;
    ids->redefines = false;
    if (batch->kind == TTD_KIND_STACKS && !ids->unknown &&
        !ttd_id_check_grow(ids, allocator, batch->count))
        return false;
    if (id_checks[batch->kind])
        *what = id_checks[batch->kind](ids, batch);
    return true;
}
