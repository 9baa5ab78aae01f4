/* SPDX-License-Identifier: MIT */
/* Usage by call site, in one pass. The birth of each live block has its site and its time. */
#include "analyses/activity/usage.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/activity/births.h"
#include "base/grow.h"
#include "base/sort.h"

struct usage_finder {
    struct heap_usage *usage;
    struct heap_net_observer nets;
    struct births births;
    /** With only_temporary there are no births. The table of calls has for each thread the result
     * of usage_fresh_after() for its newest call. `fresh` has it before each call of a batch that
     * is of another thread than the one in front of it; the events begin at `first`. */
    const struct heap_replay *replay;
    const struct ttd_event *first;
    uint64_t *fresh;
    size_t fresh_capacity;
    /** When the last ReAlloc from NULL of each thread returned, by the thread's index in `births`;
     * when the last one of all did, and whether calls may still take effect before that. */
    struct ttd_position *ends;
    size_t ends_count;
    size_t ends_capacity;
    struct ttd_position last_end;
    bool is_before_end;
};

static enum ttd_status usage_see_call(void *context, const struct ttd_event *event)
{
    struct usage_finder *finder = context;
    return births_see_call(&finder->births, event);
}

static enum ttd_status usage_find_site(struct heap_usage *usage, struct heap_key key,
                                       uint32_t *site)
{
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

static enum ttd_status usage_site_of(struct heap_usage *usage, const struct heap_block *block,
                                     uint32_t *site)
{
    return usage_find_site(usage, heap_key_of_block(usage->options.split, block), site);
}

/* A reallocated block counts as a new one, but is never temporary: its contents were needed
 * before. */
static enum ttd_status usage_acquire(struct usage_finder *finder, const struct heap_effect *effect)
{
    struct heap_usage *usage = finder->usage;
    const struct heap_block *block = effect->block;
    uint32_t index;
    enum ttd_status status = usage_site_of(usage, block, &index);
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

/* Sets `calls` to the number of calls of the block's thread between its allocation and its release
 * by the same thread; UINT64_MAX if another one has released it, or if it was reallocated. */
static enum ttd_status usage_count_between(struct usage_finder *finder,
                                           const struct heap_effect *effect,
                                           const struct birth *birth, uint64_t *calls)
{
    const struct heap_block *block = effect->block;
    *calls = UINT64_MAX;
    if (effect->kind != HEAP_RELEASED || effect->action != TTD_ACTION_FREE ||
        effect->thread != block->thread)
        return TTD_OK;
    return births_calls_since(&finder->births, birth, block->thread, calls);
}

static void usage_add_lifetime(struct heap_lifetime *lifetimes, uint64_t length, uint64_t size)
{
    struct heap_lifetime *lifetime = &lifetimes[heap_class_of(length)];
    lifetime->blocks++;
    heap_sum_add(&lifetime->bytes, size);
}

/* Adds a block that has lived so many nanoseconds. */
static void usage_add_time(struct usage_finder *finder, struct heap_site *site, uint64_t time,
                           uint64_t size)
{
    struct heap_sum amount = heap_product(size, time);
    heap_sum_add_sum(&site->byte_time, amount);
    heap_sum_add_sum(&finder->usage->total.byte_time, amount);
}

/* A block is gone at a wall time, other than with its heap. `calls`: see usage_count_between();
 * `event`: the call. */
static void usage_end_block(struct usage_finder *finder, const struct heap_block *block,
                            const struct birth *birth, uint64_t calls, uint64_t wall_time,
                            uint64_t event)
{
    struct heap_usage *usage = finder->usage;
    struct heap_site *sites[2] = {&usage->sites[birth->site], &usage->total};
    uint64_t time = wall_time - birth->wall_time;
    for (size_t i = 0; i < 2 && calls <= HEAP_USAGE_SOON; i++) {
        sites[i]->soon++;
        heap_sum_add(&sites[i]->soon_bytes, block->size);
    }
    for (size_t i = 0; i < 2 && calls != UINT64_MAX && calls <= usage->options.steps; i++) {
        sites[i]->temporary++;
        heap_sum_add(&sites[i]->temporary_bytes, block->size);
    }
    usage_add_time(finder, sites[0], time, block->size);
    if (!sites[0]->has_lifetimes)
        return;
    /* A reallocation in flight may take the place of a block that was allocated after its call. */
    uint64_t length = event > block->event ? event - block->event : 0;
    usage_add_lifetime(usage->lifetimes[HEAP_LIFETIME_TIME], time, block->size);
    usage_add_lifetime(usage->lifetimes[HEAP_LIFETIME_CALLS], length, block->size);
}

static enum ttd_status usage_release(struct usage_finder *finder, const struct heap_effect *effect)
{
    const struct birth *birth = births_get(&finder->births, effect->record);
    uint64_t calls;
    enum ttd_status status = usage_count_between(finder, effect, birth, &calls);
    if (status == TTD_OK)
        usage_end_block(finder, effect->block, birth, calls, effect->wall_time, effect->event);
    return status;
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

/* ---- Sums of chunks ---- */

/* Finds the moment of an event of a chunk, and the number of its thread's calls in the whole trace.
 */
static enum ttd_status usage_find_moment(struct usage_finder *finder,
                                         const struct heap_net_chunk *chunk, uint32_t index,
                                         struct ttd_net_moment *moment, uint64_t *calls)
{
    uint64_t *before;
    ttd_netter_moment(chunk->netter, index, moment);
    enum ttd_status status =
        births_calls_of(&finder->births, chunk->sums->threads[moment->thread].id, &before);
    if (status == TTD_OK)
        *calls = *before + moment->calls;
    return status;
}

static void usage_prefetch_birth(void *context, uint32_t record)
{
    const struct usage_finder *finder = context;
    births_prefetch(&finder->births, record);
}

static enum ttd_status usage_see_net_release(void *context, const struct heap_net_chunk *chunk,
                                             const struct ttd_net *net,
                                             const struct heap_block *block, uint32_t record)
{
    struct usage_finder *finder = context;
    const struct birth *birth = births_get(&finder->births, record);
    struct ttd_net_moment moment;
    uint64_t calls;
    enum ttd_status status = usage_find_moment(finder, chunk, net->first, &moment, &calls);
    if (status != TTD_OK)
        return status;
    bool is_own = net->was_freed && birth->thread_call &&
                  chunk->sums->threads[moment.thread].id == block->thread;
    usage_end_block(finder, block, birth, is_own ? calls - birth->thread_call - 1 : UINT64_MAX,
                    moment.wall_time, chunk->first_event + net->first);
    return TTD_OK;
}

static enum ttd_status usage_see_net_block(void *context, const struct heap_net_chunk *chunk,
                                           const struct ttd_net *net,
                                           const struct heap_block *block, uint32_t record)
{
    struct usage_finder *finder = context;
    struct birth birth;
    struct ttd_net_moment moment;
    enum ttd_status status = usage_site_of(finder->usage, block, &birth.site);
    if (status == TTD_OK)
        status = usage_find_moment(finder, chunk, net->last, &moment, &birth.thread_call);
    if (status != TTD_OK)
        return status;
    struct ttd_net_site site;
    ttd_netter_site(chunk->netter, net->shape, &site);
    birth.wall_time = moment.wall_time;
    birth.thread_call = site.is_new ? birth.thread_call : 0;
    return births_put(&finder->births, record, &birth);
}

static void usage_add_amount(const struct ttd_net_amount *amount, uint64_t *blocks,
                             struct heap_sum *bytes)
{
    *blocks += amount->blocks;
    heap_sum_add(bytes, amount->bytes);
}

static void usage_add_site_sums(struct heap_site *site, const struct ttd_net_site_sums *sums)
{
    const struct heap_sum byte_time = {sums->byte_time_high, sums->byte_time_low};
    usage_add_amount(&sums->allocated, &site->allocations, &site->bytes);
    usage_add_amount(&sums->temporary, &site->temporary, &site->temporary_bytes);
    usage_add_amount(&sums->soon, &site->soon, &site->soon_bytes);
    heap_sum_add_sum(&site->byte_time, byte_time);
}

static enum ttd_status usage_add_sites(struct heap_usage *usage, const struct heap_net_chunk *chunk)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t i = 1; i <= chunk->sums->site_count && status == TTD_OK; i++) {
        const struct ttd_net_site_sums *sums = &chunk->sums->sites[i];
        struct ttd_net_site site;
        uint32_t index;
        if (!sums->allocated.blocks)
            continue;
        ttd_netter_site(chunk->netter, i, &site);
        status = usage_find_site(
            usage, heap_key_of(usage->options.split, site.stack, TTD_NONE, site.heap), &index);
        if (status != TTD_OK)
            continue;
        usage_add_site_sums(&usage->sites[index], sums);
        usage_add_site_sums(&usage->total, sums);
    }
    return status;
}

/* Adds lifetimes of one kind. */
static void usage_add_lifetimes(struct heap_lifetime sums[HEAP_LIFETIMES],
                                const struct ttd_net_amount amounts[TTD_NET_CLASSES])
{
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++)
        usage_add_amount(&amounts[i], &sums[i].blocks, &sums[i].bytes);
}

_Static_assert(HEAP_LIFETIMES == TTD_NET_CLASSES, "classes of lifetimes");

static enum ttd_status usage_see_sums(void *context, const struct heap_net_chunk *chunk)
{
    struct usage_finder *finder = context;
    enum ttd_status status = usage_add_sites(finder->usage, chunk);
    usage_add_lifetimes(finder->usage->lifetimes[HEAP_LIFETIME_TIME],
                        chunk->sums->lifetimes->by_time);
    usage_add_lifetimes(finder->usage->lifetimes[HEAP_LIFETIME_CALLS],
                        chunk->sums->lifetimes->by_events);
    for (size_t i = 0; i < chunk->sums->thread_count && status == TTD_OK; i++) {
        const struct ttd_net_thread *thread = &chunk->sums->threads[i];
        uint64_t *calls;
        status = births_calls_of(&finder->births, thread->id, &calls);
        if (status == TTD_OK)
            *calls += thread->calls;
    }
    return status;
}

static void usage_restart(void *context)
{
    struct usage_finder *finder = context;
    struct heap_usage *usage = finder->usage;
    births_free(&finder->births);
    births_init(&finder->births);
    map_free(&usage->by_key);
    map_init(&usage->by_key);
    usage->count = 0;
    usage->total = (struct heap_site){.allocations = 0};
    memset(usage->lifetimes, 0, sizeof usage->lifetimes);
}

/* Whether sums by stack say all that the usage needs. */
static bool usage_takes_sums(const struct heap_usage_options *options)
{
    return !options->islands && !options->filter &&
           (options->split == HEAP_SPLIT_NONE || options->split == HEAP_SPLIT_HEAP);
}

/* ---- Only temporary blocks ---- */

static enum ttd_status usage_add_temporary(struct heap_usage *usage, const struct heap_block *block)
{
    uint32_t index;
    enum ttd_status status = usage_site_of(usage, block, &index);
    if (status != TTD_OK)
        return status;
    struct heap_site *sites[2] = {&usage->total, &usage->sites[index]};
    for (size_t i = 0; i < 2; i++) {
        sites[i]->temporary++;
        heap_sum_add(&sites[i]->temporary_bytes, block->size);
    }
    return TTD_OK;
}

/* Whether an earlier ReAlloc of the call's thread was still under way when it began. */
static bool usage_is_nested(const struct usage_finder *finder, const struct ttd_event *event)
{
    size_t index = finder->births.last_index;
    return index < finder->ends_count &&
           (!ttd_position_is_valid(event->time_start) ||
            ttd_position_compare(event->time_start, finder->ends[index]) < 0);
}

/* Notes when a ReAlloc from NULL returned, and so acquired its block. */
static enum ttd_status usage_note_end(struct usage_finder *finder, const struct ttd_event *event)
{
    size_t index = finder->births.last_index;
    enum ttd_status status =
        grow_array((void **)&finder->ends, &finder->ends_capacity, index + 1, sizeof *finder->ends);
    if (status != TTD_OK)
        return status;
    while (finder->ends_count <= index)
        finder->ends[finder->ends_count++] = ttd_position_min();
    finder->ends[index] = event->time_end;
    if (ttd_position_compare(event->time_end, finder->last_end) > 0)
        finder->last_end = event->time_end;
    finder->is_before_end = true;
    return TTD_OK;
}

/* Returns 1 more than the number of a call if it has allocated a new block, else 0. */
static inline uint64_t usage_fresh_after(const struct ttd_event *event)
{
    bool is_new = event->action == TTD_ACTION_ALLOC ||
                  (event->action == TTD_ACTION_REALLOC && !event->base_address);
    return is_new && event->result && event->address ? event->number + 1 : 0;
}

/* Notes which block the thread of the call that was seen last has just allocated. */
static void usage_leave_call(struct usage_finder *finder, const struct ttd_event *event)
{
    finder->births.thread_calls[finder->births.last_index] = usage_fresh_after(event);
}

/* Sees a call of another thread than the one before, a ReAlloc, or a call while a ReAlloc may be
 * under way. */
static enum ttd_status usage_see_other(struct usage_finder *finder, const struct ttd_event *event)
{
    bool is_first = event == finder->first;
    enum ttd_status status = TTD_OK;
    if (is_first || event[-1].thread != event->thread) {
        uint64_t *newest = NULL;
        if (!is_first)
            usage_leave_call(finder, event - 1);
        status = births_calls_of(&finder->births, event->thread, &newest);
        if (status != TTD_OK)
            return status;
        finder->fresh[event - finder->first] = *newest;
    }
    /* Later calls have later effects. */
    if (finder->is_before_end)
        finder->is_before_end =
            ttd_position_compare(ttd_event_position(event), finder->last_end) < 0;
    finder->usage->must_count |= finder->is_before_end && usage_is_nested(finder, event);
    bool is_from_null = event->action == TTD_ACTION_REALLOC && !event->base_address;
    return is_from_null && event->result && event->address ? usage_note_end(finder, event) : TTD_OK;
}

/* Counts the calls of a batch, before they have effects. */
static enum ttd_status usage_see_only_batch(void *context, const struct ttd_batch *batch)
{
    struct usage_finder *finder = context;
    struct heap_site *total = &finder->usage->total;
    size_t count = batch->kind == TTD_KIND_EVENTS ? batch->count : 0;
    struct heap_sum bytes = {0, 0};
    uint64_t allocations = 0;
    ttd_id thread = TTD_NONE;
    enum ttd_status status =
        grow_array((void **)&finder->fresh, &finder->fresh_capacity, count, sizeof *finder->fresh);
    if (!count || status != TTD_OK)
        return status;
    finder->first = batch->u.events;
    const struct ttd_event *event = finder->first;
    for (const struct ttd_event *end = event + count; event < end && status == TTD_OK; event++) {
        bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
        allocates &= event->result && event->address;
        allocations += allocates;
        heap_sum_add(&bytes, allocates ? event->size : 0);
        if (event->thread != thread || event->action == TTD_ACTION_REALLOC ||
            finder->is_before_end || event == finder->first)
            status = usage_see_other(finder, event);
        thread = event->thread;
    }
    if (status != TTD_OK)
        return status;
    usage_leave_call(finder, event - 1);
    total->allocations += allocations;
    heap_sum_add_sum(&total->bytes, bytes);
    return TTD_OK;
}

/* Returns usage_fresh_after() of the call of the thread before a call of that batch. */
static inline uint64_t usage_fresh_before(const struct usage_finder *finder,
                                          const struct ttd_event *event)
{
    bool is_first = event == finder->first || event[-1].thread != event->thread;
    return is_first ? finder->fresh[event - finder->first] : usage_fresh_after(event - 1);
}

/* Sees a Free of that batch before it has its effect. */
static enum ttd_status usage_see_only_free(void *context, const struct ttd_event *event)
{
    const struct usage_finder *finder = context;
    uint64_t fresh = usage_fresh_before(finder, event);
    if (!fresh || !event->base_address || (!event->result && ttd_event_returned(event)))
        return TTD_OK;
    const struct heap_block *block = heap_replay_given(finder->replay, event);
    return block && block->event + 1 == fresh ? usage_add_temporary(finder->usage, block) : TTD_OK;
}

/* The same for a Free that takes the fast path. */
static enum ttd_status usage_see_plain_free(void *context, const struct ttd_event *event,
                                            const struct heap_block *block)
{
    const struct usage_finder *finder = context;
    /* Nearly all: a call of the same thread is in front of it, and has not acquired the block. */
    bool is_usual = event != finder->first && event[-1].thread == event->thread &&
                    event[-1].number != block->event;
    return !is_usual && usage_fresh_before(finder, event) == block->event + 1
               ? usage_add_temporary(finder->usage, block)
               : TTD_OK;
}

static const struct heap_plain_observer usage_plain = {.released = usage_see_plain_free};

static void usage_begin_only(void *context, const struct heap_arrival *arrival)
{
    struct usage_finder *finder = context;
    finder->replay = &arrival->cursor.replay;
}

static enum ttd_status usage_finish_only(void *context, struct heap_arrival *arrival,
                                         struct ttd_error *error)
{
    const struct usage_finder *finder = context;
    (void)error;
    finder->usage->outcome = heap_arrival_outcome(arrival);
    finder->usage->thread_count = finder->births.thread_count;
    finder->usage->has_unknown_thread = map_get(&finder->births.by_thread, TTD_NONE, 0) != MAP_NONE;
    return TTD_OK;
}

/* The number of the call site that an effect will look at; MAP_NONE or any other if it is not known
 * yet. */
static uint32_t usage_expected_site(const struct usage_finder *finder, const struct heap_note *note)
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
        uint32_t site = usage_expected_site(finder, &notes->notes[i]);
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
        usage_add_time(finder, site, replay->wall_time - birth->wall_time, block->size);
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
    usage->finder->nets = (struct heap_net_observer){.context = usage->finder,
                                                     .prefetch = usage_prefetch_birth,
                                                     .released = usage_see_net_release,
                                                     .acquired = usage_see_net_block,
                                                     .summed = usage_see_sums,
                                                     .restart = usage_restart};
    births_init(&usage->finder->births);
    struct heap_watcher watcher = {
        .observer = {.context = usage->finder, .effect = usage_see_effect, .call = usage_see_call},
        .to = ttd_position_max(),
        .is_deferred = true,
        .prepare = usage_prepare,
        .finish = usage_finish,
        .nets = usage_takes_sums(options) ? &usage->finder->nets : NULL,
        .sums = {.temporary = options->steps,
                 .soon = HEAP_USAGE_SOON,
                 .has_lifetimes = options->has_lifetimes}};
    if (options->only_temporary)
        watcher =
            (struct heap_watcher){.observer = {.context = usage->finder,
                                               .call = usage_see_only_free,
                                               .plain = &usage_plain,
                                               .unwanted_calls = ~HEAP_CALL_BIT(TTD_ACTION_FREE)},
                                  .to = ttd_position_max(),
                                  .batch = usage_see_only_batch,
                                  .begin = usage_begin_only,
                                  .finish = usage_finish_only};
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

static void usage_free_finder(struct usage_finder *finder)
{
    if (!finder)
        return;
    births_free(&finder->births);
    free(finder->fresh);
    free(finder->ends);
    free(finder);
}

static double usage_site_rank_value(const struct heap_site *site, enum heap_rank_order order);

/* Returns a number that is the smaller, the larger a value (not negative) is. */
static uint64_t usage_value_from_largest(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ~bits;
}

/* Sorts in linear time; by qsort() if memory is short. The order is the same. */
static void usage_order_sites(struct heap_usage *usage)
{
    _Static_assert(sizeof *usage->sites <= SORT_RECORD_MAX, "sites are moved as records");
    size_t count = usage->count;
    struct sort_key *keys = malloc(2 * count * sizeof *keys);
    if (!keys) {
        qsort(usage->sites, count, sizeof *usage->sites, heap_usage_site_table(usage).compare);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct heap_key key = usage->sites[i].key;
        keys[i] = (struct sort_key){(uint64_t)key.stack << 32 | key.property, (uint32_t)i};
    }
    sort_keys(keys, keys + count, count);
    for (size_t i = 0; i < count; i++)
        keys[i].value = usage_value_from_largest(
            usage_site_rank_value(&usage->sites[keys[i].index], usage->options.order));
    sort_keys(keys, keys + count, count);
    sort_records(usage->sites, sizeof *usage->sites, keys, count);
    free(keys);
}

void heap_usage_end(struct heap_usage *usage)
{
    if (usage->count)
        usage_order_sites(usage);
    usage_free_finder(usage->finder);
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
    usage_free_finder(usage->finder);
    usage->finder = NULL;
    usage->sites = NULL;
}

/* Sites of usage as a table: their order and their sums. */

static double usage_site_rank_value(const struct heap_site *site, enum heap_rank_order order)
{
    switch (order) {
    case HEAP_RANK_BY_CALLS:
        return (double)site->allocations;
    case HEAP_RANK_BY_LIFETIME:
        return heap_site_byte_seconds(site);
    case HEAP_RANK_BY_TEMPORARY:
        return (double)site->temporary;
    case HEAP_RANK_BY_STACK:
        return 0;
    case HEAP_RANK_BY_BYTES:
        break;
    }
    return heap_sum_real(site->bytes);
}

static int usage_site_rank_compare(const struct heap_site *x, const struct heap_site *y,
                                   enum heap_rank_order order)
{
    double a_value = usage_site_rank_value(x, order), b_value = usage_site_rank_value(y, order);
    return a_value != b_value ? (a_value < b_value) - (a_value > b_value)
                              : heap_key_compare(x->key, y->key);
}

static int usage_compare_calls(const void *a, const void *b)
{
    return usage_site_rank_compare(a, b, HEAP_RANK_BY_CALLS);
}

static int usage_compare_bytes(const void *a, const void *b)
{
    return usage_site_rank_compare(a, b, HEAP_RANK_BY_BYTES);
}

static int usage_compare_lifetime(const void *a, const void *b)
{
    return usage_site_rank_compare(a, b, HEAP_RANK_BY_LIFETIME);
}

static int usage_compare_temporary(const void *a, const void *b)
{
    return usage_site_rank_compare(a, b, HEAP_RANK_BY_TEMPORARY);
}

static int usage_compare_stacks(const void *a, const void *b)
{
    return usage_site_rank_compare(a, b, HEAP_RANK_BY_STACK);
}

static void usage_merge_sites(void *target, const void *source)
{
    struct heap_site *sum = target;
    const struct heap_site *site = source;
    sum->allocations += site->allocations;
    heap_sum_add_sum(&sum->bytes, site->bytes);
    sum->temporary += site->temporary;
    heap_sum_add_sum(&sum->temporary_bytes, site->temporary_bytes);
    sum->soon += site->soon;
    heap_sum_add_sum(&sum->soon_bytes, site->soon_bytes);
    sum->never_released += site->never_released;
    sum->destroyed += site->destroyed;
    heap_sum_add_sum(&sum->byte_time, site->byte_time);
}

static struct heap_amount amount_of_calls(const void *record)
{
    const struct heap_site *site = record;
    return (struct heap_amount){site->allocations, heap_sum_value(site->bytes), site->allocations};
}

static struct heap_amount amount_of_bytes(const void *record)
{
    const struct heap_site *site = record;
    uint64_t bytes = heap_sum_value(site->bytes);
    return (struct heap_amount){bytes, bytes, site->allocations};
}

/* Trees order by whole numbers: bytes times microseconds loses little and does not overflow. */
static struct heap_amount amount_of_lifetime(const void *record)
{
    const struct heap_site *site = record;
    double value = heap_site_byte_seconds(site) * 1e6 + 0.5;
    uint64_t weight = value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
    return (struct heap_amount){weight, heap_sum_value(site->bytes), site->allocations};
}

static struct heap_amount amount_of_temporary(const void *record)
{
    const struct heap_site *site = record;
    uint64_t bytes = heap_sum_value(site->temporary_bytes);
    return (struct heap_amount){site->temporary, bytes, site->temporary};
}

/* Filters take sites away: the totals are sums over the sites that are left. */
static void usage_recount(void *owner)
{
    struct heap_usage *usage = owner;
    usage->total = (struct heap_site){.allocations = 0};
    for (size_t i = 0; i < usage->count; i++)
        usage_merge_sites(&usage->total, &usage->sites[i]);
}

struct heap_site_table heap_usage_site_table(struct heap_usage *usage)
{
    static const struct {
        int (*compare)(const void *a, const void *b);
        struct heap_amount (*amount)(const void *item);
    } orders[] = {[HEAP_RANK_BY_CALLS] = {usage_compare_calls, amount_of_calls},
                  [HEAP_RANK_BY_BYTES] = {usage_compare_bytes, amount_of_bytes},
                  [HEAP_RANK_BY_LIFETIME] = {usage_compare_lifetime, amount_of_lifetime},
                  [HEAP_RANK_BY_TEMPORARY] = {usage_compare_temporary, amount_of_temporary},
                  [HEAP_RANK_BY_STACK] = {usage_compare_stacks, amount_of_bytes}};
    return (struct heap_site_table){.owner = usage,
                                    .records = usage->sites,
                                    .count = &usage->count,
                                    .size = sizeof *usage->sites,
                                    .merge = usage_merge_sites,
                                    .compare = orders[usage->options.order].compare,
                                    .amount_of = orders[usage->options.order].amount,
                                    .recount = usage_recount};
}
