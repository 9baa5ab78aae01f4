/* SPDX-License-Identifier: MIT */
#include "analyses/activity/usage.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/activity/births.h"
#include "base/grow.h"

struct usage_finder {
    struct heap_usage *usage;
    struct births births;
};

static enum ttd_status see_call(void *context, const struct ttd_event *event)
{
    struct usage_finder *finder = context;
    return births_see_call(&finder->births, event);
}

static enum ttd_status site_of(struct heap_usage *usage, const struct heap_block *block,
                               struct heap_site **site)
{
    struct heap_key key = heap_key_of_block(usage->options.split, block);
    uint32_t index = map_get(&usage->by_key, key.stack, key.property);
    if (index == MAP_NONE) {
        index = (uint32_t)usage->count;
        enum ttd_status status = grow_array((void **)&usage->sites, &usage->capacity,
                                            usage->count + 1, sizeof *usage->sites);
        if (status == TTD_OK)
            status = map_set(&usage->by_key, key.stack, key.property, index);
        if (status != TTD_OK)
            return status;
        usage->sites[usage->count++] = (struct heap_site){.key = key};
    }
    *site = &usage->sites[index];
    return TTD_OK;
}

/* A reallocated block counts as a new one, but is never temporary: its contents were needed
 * before. */
static enum ttd_status acquire(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct heap_block *block = effect->block;
    struct heap_site *sites[2] = {&finder->usage->total, NULL};
    enum ttd_status status = site_of(finder->usage, block, &sites[1]);
    if (status == TTD_OK)
        status = births_add(&finder->births, effect);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < 2; i++) {
        sites[i]->allocations++;
        heap_sum_add(&sites[i]->bytes, block->size);
    }
    return TTD_OK;
}

/* Sets `result` to whether the block was freed by the same thread, with few calls between. */
static enum ttd_status check_temporary(struct usage_finder *finder,
                                       const struct heap_effect *effect, bool *result)
{
    const struct heap_block *block = effect->block;
    uint64_t calls;
    *result = false;
    if (effect->kind != HEAP_RELEASED || effect->action != TTD_ACTION_FREE ||
        effect->thread != block->thread)
        return TTD_OK;
    enum ttd_status status = births_calls_since(&finder->births, block, &calls);
    if (status == TTD_OK)
        *result = calls != UINT64_MAX && calls <= finder->usage->options.steps;
    return status;
}

static enum ttd_status add_lifetime(struct heap_groups *lifetimes, uint64_t length,
                                    const struct heap_block *block)
{
    struct heap_group lifetime = {.key = {block->stack, heap_class_of(length)},
                                  .blocks = 1,
                                  .bytes = block->size,
                                  .first = block->allocated,
                                  .last = block->allocated,
                                  .api = block->api};
    return heap_groups_add_sum(lifetimes, &lifetime);
}

static enum ttd_status add_lifetimes(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct heap_block *block = effect->block;
    uint64_t time = births_age(&finder->births, block);
    /* A reallocation in flight may take the place of a block that was allocated after its call. */
    uint64_t calls = effect->event > block->event ? effect->event - block->event : 0;
    enum ttd_status status = add_lifetime(&finder->usage->by_time, time, block);
    return status == TTD_OK ? add_lifetime(&finder->usage->by_calls, calls, block) : status;
}

static void add_time(struct usage_finder *finder, struct heap_site *site,
                     const struct heap_block *block)
{
    uint64_t time = births_age(&finder->births, block);
    double amount = (double)block->size * (double)time / 1e9;
    site->byte_seconds += amount;
    finder->usage->total.byte_seconds += amount;
}

/* A block is gone, other than with its heap. */
static enum ttd_status release(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct heap_block *block = effect->block;
    struct heap_site *site;
    bool is_temporary = false;
    enum ttd_status status = site_of(finder->usage, block, &site);
    if (status == TTD_OK)
        status = check_temporary(finder, effect, &is_temporary);
    if (status != TTD_OK)
        return status;
    if (is_temporary) {
        site->temporary++;
        finder->usage->total.temporary++;
        heap_sum_add(&site->temporary_bytes, block->size);
        heap_sum_add(&finder->usage->total.temporary_bytes, block->size);
    }
    add_time(finder, site, block);
    return finder->usage->options.has_lifetimes ? add_lifetimes(finder, effect) : TTD_OK;
}

static enum ttd_status discard(struct usage_finder *finder, const struct heap_effect *effect)
{
    struct heap_site *site;
    enum ttd_status status = site_of(finder->usage, effect->block, &site);
    if (status != TTD_OK)
        return status;
    site->destroyed++;
    finder->usage->total.destroyed++;
    return TTD_OK;
}

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    struct usage_finder *finder = context;
    enum ttd_status status = TTD_OK;
    if (effect->block && !heap_islands_want_block(finder->usage->options.islands, effect->block))
        return TTD_OK;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        return acquire(finder, effect);
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        status = release(finder, effect);
        break;
    case HEAP_DISCARDED:
        status = discard(finder, effect);
        break;
    case HEAP_DESTROYED:
    case HEAP_UNKNOWN_RELEASE:
        return TTD_OK;
    }
    return status == TTD_OK ? births_remove(&finder->births, effect->block) : status;
}

/* Blocks that are never released live up to the end of the trace. */
static enum ttd_status finish(void *context, struct heap_arrival *arrival, struct ttd_error *error)
{
    struct usage_finder *finder = context;
    struct heap_replay *replay = &arrival->cursor.replay;
    size_t cursor = 0;
    (void)error;
    finder->usage->outcome = heap_arrival_outcome(arrival);
    const struct heap_block *block;
    struct heap_site *site;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor))) {
        if (!heap_islands_want_block(finder->usage->options.islands, block))
            continue;
        status = site_of(finder->usage, block, &site);
        if (status != TTD_OK)
            break;
        site->never_released++;
        finder->usage->total.never_released++;
        add_time(finder, site, block);
    }
    return status;
}

enum ttd_status heap_usage_watch(struct heap_usage *usage, const struct heap_usage_options *options,
                                 struct heap_pass *pass)
{
    memset(usage, 0, sizeof *usage);
    usage->options = *options;
    map_init(&usage->by_key);
    heap_groups_init(&usage->by_time);
    heap_groups_init(&usage->by_calls);
    usage->finder = calloc(1, sizeof *usage->finder);
    if (!usage->finder)
        return TTD_ERROR_NO_MEMORY;
    usage->finder->usage = usage;
    births_init(&usage->finder->births);
    struct heap_watcher watcher = {
        .observer = {.context = usage->finder, .effect = see_effect, .call = see_call},
        .to = ttd_position_max(),
        .finish = finish};
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

static void free_finder(struct usage_finder *finder)
{
    if (!finder)
        return;
    births_free(&finder->births);
    free(finder);
}

void heap_usage_end(struct heap_usage *usage)
{
    if (usage->count)
        qsort(usage->sites, usage->count, sizeof *usage->sites,
              heap_usage_site_table(usage).compare);
    free_finder(usage->finder);
    usage->finder = NULL;
}

enum ttd_status heap_usage_find(const struct heap_trace *trace,
                                const struct heap_usage_options *options, struct heap_usage *usage,
                                struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = heap_usage_watch(usage, options, &pass);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    heap_usage_end(usage);
    if (status != TTD_OK)
        heap_usage_free(usage);
    return status;
}

void heap_usage_free(struct heap_usage *usage)
{
    free(usage->sites);
    map_free(&usage->by_key);
    heap_groups_free(&usage->by_time);
    heap_groups_free(&usage->by_calls);
    free_finder(usage->finder);
    usage->finder = NULL;
    usage->sites = NULL;
}
