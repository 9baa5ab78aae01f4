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

static enum ttd_status usage_see_call(void *context, const struct ttd_event *event)
{
    struct usage_finder *finder = context;
    return births_see_call(&finder->births, event);
}

static enum ttd_status site_of(struct heap_usage *usage, const struct heap_block *block,
                               uint32_t *site)
{
    struct heap_key key = heap_key_of_block(usage->options.split, block);
    *site = map_get(&usage->by_key, key.stack, key.property);
    if (*site != MAP_NONE)
        return TTD_OK;
    *site = (uint32_t)usage->count;
    enum ttd_status status = grow_array((void **)&usage->sites, &usage->capacity, usage->count + 1,
                                        sizeof *usage->sites);
    bool has_lifetimes = usage->options.has_lifetimes;
    if (status == TTD_OK && has_lifetimes && usage->options.filter)
        status = usage->options.filter(usage->options.filter_context, key.stack, &has_lifetimes);
    if (status == TTD_OK)
        status = map_set(&usage->by_key, key.stack, key.property, *site);
    if (status != TTD_OK)
        return status;
    usage->sites[usage->count++] = (struct heap_site){.key = key, .has_lifetimes = has_lifetimes};
    return TTD_OK;
}

/* A reallocated block counts as a new one, but is never temporary: its contents were needed
 * before. */
static enum ttd_status usage_acquire(struct usage_finder *finder, const struct heap_effect *effect)
{
    struct heap_usage *usage = finder->usage;
    const struct heap_block *block = effect->block;
    uint32_t index;
    enum ttd_status status = site_of(usage, block, &index);
    if (status == TTD_OK)
        status = births_add(&finder->births, effect, index);
    if (status != TTD_OK)
        return status;
    struct heap_site *sites[2] = {&usage->total, &usage->sites[index]};
    for (size_t i = 0; i < 2; i++) {
        sites[i]->allocations++;
        heap_sum_add(&sites[i]->bytes, block->size);
    }
    return TTD_OK;
}

/* Sets `result` to whether the block was freed by the same thread, with few calls between. */
static enum ttd_status check_temporary(struct usage_finder *finder,
                                       const struct heap_effect *effect, const struct birth *birth,
                                       bool *result)
{
    const struct heap_block *block = effect->block;
    uint64_t calls;
    *result = false;
    if (effect->kind != HEAP_RELEASED || effect->action != TTD_ACTION_FREE ||
        effect->thread != block->thread)
        return TTD_OK;
    enum ttd_status status = births_calls_since(&finder->births, birth, block->thread, &calls);
    if (status == TTD_OK)
        *result = calls != UINT64_MAX && calls <= finder->usage->options.steps;
    return status;
}

static void add_lifetime(struct heap_lifetime *lifetimes, uint64_t length, uint64_t size)
{
    struct heap_lifetime *lifetime = &lifetimes[heap_class_of(length)];
    lifetime->blocks++;
    heap_sum_add(&lifetime->bytes, size);
}

static void add_lifetimes(struct usage_finder *finder, const struct heap_effect *effect,
                          const struct birth *birth)
{
    const struct heap_block *block = effect->block;
    struct heap_usage *usage = finder->usage;
    /* A reallocation in flight may take the place of a block that was allocated after its call. */
    uint64_t calls = effect->event > block->event ? effect->event - block->event : 0;
    add_lifetime(usage->lifetimes[HEAP_LIFETIME_TIME], effect->wall_time - birth->wall_time,
                 block->size);
    add_lifetime(usage->lifetimes[HEAP_LIFETIME_CALLS], calls, block->size);
}

/* Adds a block that has lived so many nanoseconds. */
static void add_time(struct usage_finder *finder, struct heap_site *site, uint64_t time,
                     uint64_t size)
{
    double amount = (double)size * (double)time / 1e9;
    site->byte_seconds += amount;
    finder->usage->total.byte_seconds += amount;
}

/* A block is gone, other than with its heap. */
static enum ttd_status usage_release(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct heap_block *block = effect->block;
    const struct birth *birth = births_get(&finder->births, effect->record);
    struct heap_site *site = &finder->usage->sites[birth->site];
    bool is_temporary;
    enum ttd_status status = check_temporary(finder, effect, birth, &is_temporary);
    if (status != TTD_OK)
        return status;
    if (is_temporary) {
        site->temporary++;
        finder->usage->total.temporary++;
        heap_sum_add(&site->temporary_bytes, block->size);
        heap_sum_add(&finder->usage->total.temporary_bytes, block->size);
    }
    add_time(finder, site, effect->wall_time - birth->wall_time, block->size);
    if (site->has_lifetimes)
        add_lifetimes(finder, effect, birth);
    return TTD_OK;
}

static void usage_discard(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct birth *birth = births_get(&finder->births, effect->record);
    finder->usage->sites[birth->site].destroyed++;
    finder->usage->total.destroyed++;
}

static enum ttd_status usage_see_effect(void *context, const struct heap_effect *effect)
{
    struct usage_finder *finder = context;
    if (effect->block && !heap_islands_want_block(finder->usage->options.islands, effect->block))
        return TTD_OK;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        return usage_acquire(finder, effect);
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        return usage_release(finder, effect);
    case HEAP_DISCARDED:
        usage_discard(finder, effect);
        break;
    case HEAP_DESTROYED:
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return TTD_OK;
}

/* The number of the call site that an effect will look at; MAP_NONE or any other if it is not known
 * yet. */
static uint32_t expected_site(const struct usage_finder *finder, const struct heap_note *note)
{
    struct heap_key key = heap_key_of_block(finder->usage->options.split, &note->block);
    return note->effect.kind == HEAP_ACQUIRED || note->effect.record >= finder->births.capacity
               ? map_get(&finder->usage->by_key, key.stack, key.property)
               : births_get(&finder->births, note->effect.record)->site;
}

/* Prefetches the births of the blocks, then the call sites: most are not in the cache. */
static void usage_prepare(void *context, const struct heap_notes *notes)
{
    const struct usage_finder *finder = context;
    const struct heap_usage *usage = finder->usage;
    for (size_t i = 0; i < notes->count; i++)
        births_prefetch(&finder->births, notes->notes[i].effect.record);
    for (size_t i = 0; i < notes->count; i++) {
        if (!notes->notes[i].effect.block)
            continue;
        uint32_t site = expected_site(finder, &notes->notes[i]);
        if (site >= usage->count)
            continue;
        __builtin_prefetch(&usage->sites[site], 1);
        __builtin_prefetch((const char *)&usage->sites[site + 1] - 1, 1);
    }
}

/* Blocks that are never released live up to the end of the trace. */
static enum ttd_status usage_finish(void *context, struct heap_arrival *arrival,
                                    struct ttd_error *error)
{
    struct usage_finder *finder = context;
    struct heap_replay *replay = &arrival->cursor.replay;
    size_t cursor = 0;
    (void)error;
    finder->usage->outcome = heap_arrival_outcome(arrival);
    const struct heap_block *block;
    while ((block = heap_live_each(&replay->live, &cursor))) {
        if (!heap_islands_want_block(finder->usage->options.islands, block))
            continue;
        const struct birth *birth =
            births_get(&finder->births, (uint32_t)(block - replay->live.blocks));
        struct heap_site *site = &finder->usage->sites[birth->site];
        site->never_released++;
        finder->usage->total.never_released++;
        add_time(finder, site, replay->wall_time - birth->wall_time, block->size);
    }
    return TTD_OK;
}

enum ttd_status heap_usage_watch(struct heap_usage *usage, const struct heap_usage_options *options,
                                 struct heap_pass *pass)
{
    memset(usage, 0, sizeof *usage);
    usage->options = *options;
    map_init(&usage->by_key);
    usage->finder = calloc(1, sizeof *usage->finder);
    if (!usage->finder)
        return TTD_ERROR_NO_MEMORY;
    usage->finder->usage = usage;
    births_init(&usage->finder->births);
    struct heap_watcher watcher = {
        .observer = {.context = usage->finder, .effect = usage_see_effect, .call = usage_see_call},
        .to = ttd_position_max(),
        .is_deferred = true,
        .prepare = usage_prepare,
        .finish = usage_finish};
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
    free_finder(usage->finder);
    usage->finder = NULL;
    usage->sites = NULL;
}
