/* SPDX-License-Identifier: MIT */
#include "read/check.h"

#include "base/memory.h"

static bool knows(const struct ttd_references *references, ttd_id id, ttd_id count)
{
    return id <= count || references->unknown;
}

/** Takes in a new id, which must be the next one. */
static bool define(struct ttd_references *references, ttd_id id, ttd_id *count)
{
    bool right = id == *count + 1 || (references->unknown && id > *count);
    references->redefines |= id <= *count;
    if (id > *count)
        *count = id;
    return right;
}

/**
 * Returns the first violation of a batch: `wrong` if there is one already, else `what` unless
 * `is_right`. Records behind a wrong one are checked as well, so that their ids count as defined.
 */
static const char *first_wrong(const char *wrong, bool is_right, const char *what)
{
    return wrong || is_right ? wrong : what;
}

static const char *check_strings(struct ttd_references *references, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        bool is_next = define(references, batch->u.strings[i].id, &references->strings);
        wrong = first_wrong(wrong, is_next, "order of strings");
    }
    return wrong;
}

static const char *check_modules(struct ttd_references *references, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_module *module = &batch->u.modules[i];
        if (module->action == TTD_MODULE_UNLOAD) {
            wrong = first_wrong(wrong, knows(references, module->id, references->modules),
                                "unload of an undefined module");
            continue;
        }
        bool is_next = define(references, module->id, &references->modules);
        wrong = first_wrong(wrong, is_next, "order of modules");
        wrong = first_wrong(wrong, knows(references, module->path, references->strings),
                            "undefined path of a module");
    }
    return wrong;
}

static const char *check_threads(struct ttd_references *references, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_thread *thread = &batch->u.threads[i];
        wrong = first_wrong(wrong, knows(references, thread->name, references->strings),
                            "undefined name of a thread");
        bool is_right = thread->action == TTD_THREAD_END
                            ? knows(references, thread->id, references->threads)
                            : define(references, thread->id, &references->threads);
        wrong = first_wrong(wrong, is_right, "order of threads");
    }
    return wrong;
}

static const char *check_heaps(struct ttd_references *references, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        bool is_next = define(references, batch->u.heaps[i].id, &references->heaps);
        wrong = first_wrong(wrong, is_next, "order of heaps");
        wrong = first_wrong(wrong, knows(references, batch->u.heaps[i].name, references->strings),
                            "undefined name of a heap");
    }
    return wrong;
}

/** Checks a stack, for whose depth there is room. Returns the first violation, or NULL. */
static const char *check_stack(struct ttd_references *references, const struct ttd_stack *stack)
{
    if (!define(references, stack->id, &references->stacks)) {
        /* Nor could depths be kept: the array would grow as ids do, not as bytes. */
        references->unknown = true;
        return "order of stacks";
    }
    const char *wrong = first_wrong(NULL, knows(references, stack->module, references->modules),
                                    "undefined module of a stack");
    if (references->unknown)
        return wrong;
    unsigned depth = stack->parent ? references->depths[stack->parent] + 1u : 1;
    bool is_right = depth <= TTD_STACK_DEPTH_MAX;
    references->depths[stack->id] = (uint16_t)(is_right ? depth : TTD_STACK_DEPTH_MAX + 1u);
    return first_wrong(wrong, is_right, "depth of a stack");
}

bool ttd_references_grow(struct ttd_references *references, const struct ttd_allocator *allocator,
                         size_t count)
{
    void *depths = references->depths;
    if (ttd_grow_array(allocator, &depths, &references->depths_capacity,
                       (size_t)references->stacks + count + 1, sizeof *references->depths))
        return false;
    references->depths = depths;
    return true;
}

/** False without memory. */
static bool check_stacks(struct ttd_references *references, const struct ttd_allocator *allocator,
                         const struct ttd_batch *batch, const char **what)
{
    if (!references->unknown && !ttd_references_grow(references, allocator, batch->count))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        const char *wrong = check_stack(references, &batch->u.stacks[i]);
        *what = first_wrong(*what, !wrong, wrong);
    }
    return true;
}

static const char *check_symbols(const struct ttd_references *references,
                                 const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_symbol *symbol = &batch->u.symbols[i];
        if (!knows(references, symbol->module, references->modules))
            return "undefined module of a symbol";
        for (uint32_t k = 0; k < symbol->frame_count; k++)
            if (!knows(references, symbol->frames[k].function, references->strings) ||
                !knows(references, symbol->frames[k].file, references->strings))
                return "undefined name in a symbol";
    }
    return NULL;
}

static inline ttd_id larger(ttd_id a, ttd_id b)
{
    return a > b ? a : b;
}

/** The largest ids tell of all. */
static const char *check_events(const struct ttd_references *references,
                                const struct ttd_batch *batch)
{
    ttd_id thread = 0;
    ttd_id heap = 0;
    ttd_id stack = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        thread = larger(thread, event->thread);
        heap = larger(heap, event->heap);
        stack = larger(stack, event->stack);
    }
    if (!knows(references, thread, references->threads))
        return "undefined thread of an event";
    if (!knows(references, heap, references->heaps))
        return "undefined heap of an event";
    return knows(references, stack, references->stacks) ? NULL : "undefined stack of an event";
}

static const char *check_blocks(struct ttd_references *references,
                                const struct ttd_live_blocks *list)
{
    const char *wrong = ttd_list_take(&references->list, list);
    if (wrong && !references->unknown)
        return wrong;
    for (size_t i = 0; i < list->count; i++) {
        const struct ttd_block *block = &list->blocks[i];
        if (!knows(references, block->thread, references->threads) ||
            !knows(references, block->heap, references->heaps) ||
            !knows(references, block->stack, references->stacks))
            return "undefined identifier of a block";
    }
    return NULL;
}

static const char *check_pages(struct ttd_references *references, const struct ttd_pages *pages)
{
    uint64_t expected = references->pages ? references->pages : TTD_PAGE_FIRST;
    bool right =
        pages->first_page == expected || (references->unknown && pages->first_page > expected);
    references->redefines = pages->first_page < expected;
    references->pages = pages->first_page + pages->count;
    return right ? NULL : "order of pages";
}

static const char *check_map(const struct ttd_references *references,
                             const struct ttd_memory_map *map)
{
    if (references->unknown)
        return NULL;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        if (run->page >= TTD_PAGE_FIRST &&
            (run->page >= references->pages || run->page_count > references->pages - run->page))
            return "undefined page of a memory map";
    }
    return NULL;
}

static const char *check_others(const struct ttd_references *references,
                                const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        ttd_id thread = batch->kind == TTD_KIND_LOSSES ? batch->u.losses[i].thread
                                                       : batch->u.user_events[i].thread;
        if (!knows(references, thread, references->threads))
            return "undefined thread";
    }
    return NULL;
}

bool ttd_references_check(struct ttd_references *references, const struct ttd_allocator *allocator,
                          const struct ttd_batch *batch, const char **what)
{
    *what = NULL;
    references->redefines = false;
    switch (batch->kind) {
    case TTD_KIND_STRINGS:
        *what = check_strings(references, batch);
        break;
    case TTD_KIND_STACKS:
        return check_stacks(references, allocator, batch, what);
    case TTD_KIND_MODULES:
        *what = check_modules(references, batch);
        break;
    case TTD_KIND_SYMBOLS:
        *what = check_symbols(references, batch);
        break;
    case TTD_KIND_THREADS:
        *what = check_threads(references, batch);
        break;
    case TTD_KIND_HEAPS:
        *what = check_heaps(references, batch);
        break;
    case TTD_KIND_EVENTS:
        *what = check_events(references, batch);
        break;
    case TTD_KIND_USER_EVENTS:
    case TTD_KIND_LOSSES:
        *what = check_others(references, batch);
        break;
    case TTD_KIND_LIVE_BLOCKS:
        *what = check_blocks(references, batch->u.live_blocks);
        break;
    case TTD_KIND_PAGES:
        *what = check_pages(references, batch->u.pages);
        break;
    case TTD_KIND_MEMORY_MAP:
        *what = check_map(references, batch->u.memory_map);
        break;
    default:
        break;
    }
    return true;
}
