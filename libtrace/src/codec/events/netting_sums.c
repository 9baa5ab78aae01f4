/* SPDX-License-Identifier: MIT */
/* Sums over the calls of a chunk that is netted. */
#include "codec/events/netting_parts.h"

#include <string.h>

/** ReAllocs that are looked at to find those that are under way. */
#define SUMS_LATES_MAX 64

#define SUMS_GROW(netting, array, capacity, count)                                                 \
    (!ttd_grow_array((netting)->decoder.state.allocator, (void **)&(netting)->sums.array,          \
                     &(netting)->sums.capacity, (count), sizeof *(netting)->sums.array))

void ttd_netting_free_sums(struct ttd_netting *netting)
{
    const struct ttd_allocator *allocator = netting->decoder.state.allocator;
    ttd_release(allocator, netting->sums.flags);
    ttd_release(allocator, netting->sums.sites);
    ttd_release(allocator, netting->sums.threads);
}

static uint8_t netting_flags_of(const struct ttd_event_class *class)
{
    bool is_old = class->action == TTD_ACTION_REALLOC && (class->form & TTD_FORM_BASE);
    return (uint8_t)((class->action == TTD_ACTION_FREE ? NET_SHAPE_FREES : 0) |
                     (is_old ? 0 : NET_SHAPE_IS_NEW));
}

bool ttd_netting_begin_sums(struct ttd_netting *netting)
{
    struct ttd_netting_sums *sums = &netting->sums;
    size_t count = netting->decoder.state.shape_count + 1;
    if (!SUMS_GROW(netting, flags, flag_capacity, count) ||
        !SUMS_GROW(netting, sites, site_capacity, count))
        return false;
    memset(sums->sites, 0, count * sizeof *sums->sites);
    sums->flags[0] = 0;
    memset(&sums->lifetimes, 0, sizeof sums->lifetimes);
    for (uint32_t i = 1; i < count; i++)
        sums->flags[i] = netting_flags_of(netting_class(netting, i));
    sums->is_exact = true;
    sums->thread_count = 0;
    sums->mark = sums->time = 0;
    return true;
}

void ttd_netting_site(const struct ttd_netting *netting, uint32_t number, struct ttd_net_site *site)
{
    *site = (struct ttd_net_site){.stack = netting->decoder.state.shapes[number].stack,
                                  .heap = netting_class(netting, number)->heap,
                                  .is_new = netting->sums.flags[number] & NET_SHAPE_IS_NEW};
}

/* Marks and times. */

void ttd_netting_set_change(struct ttd_netting *netting)
{
    struct ttd_netting_sums *sums = &netting->sums;
    sums->change = UINT32_MAX;
    if (sums->mark + 1 < netting->mark_count)
        sums->change = netting->marks[sums->mark + 1].index;
    if (sums->time + 1 < netting->time_count && netting->times[sums->time + 1].index < sums->change)
        sums->change = netting->times[sums->time + 1].index;
}

void ttd_netting_change(struct ttd_netting *netting, uint32_t index)
{
    struct ttd_netting_sums *sums = &netting->sums;
    sums->mark +=
        sums->mark + 1 < netting->mark_count && netting->marks[sums->mark + 1].index == index;
    sums->time +=
        sums->time + 1 < netting->time_count && netting->times[sums->time + 1].index == index;
    ttd_netting_set_change(netting);
}

/** Whether a ReAlloc of the thread is under way at a position, as in a signal handler. */
static bool netting_is_nested(const struct ttd_netting *netting, uint32_t thread,
                              struct ttd_position start)
{
    if (!netting->late_count || ttd_position_compare(start, netting->settled) >= 0)
        return false;
    size_t least = netting->late_count > SUMS_LATES_MAX ? netting->late_count - SUMS_LATES_MAX : 0;
    for (size_t i = netting->late_count; i > least; i--) {
        const struct ttd_net_late *late = &netting->lates[i - 1];
        if (late->thread == thread && ttd_position_compare(start, late->end) < 0)
            return true;
    }
    return least != 0;
}

bool ttd_netting_sum_mark(struct ttd_netting *netting, struct ttd_net_mark *mark)
{
    struct ttd_netting_sums *sums = &netting->sums;
    size_t known = sums->thread_count;
    if (mark->place >= known) {
        if (!SUMS_GROW(netting, threads, thread_capacity, (size_t)mark->place + 1))
            return false;
        sums->thread_count = (size_t)mark->place + 1;
        for (size_t i = known; i < sums->thread_count; i++)
            sums->threads[i] = (struct ttd_net_thread){netting->decoder.state.threads[i].id, 0};
    }
    ttd_netting_end_mark(netting, mark->index);
    mark->calls = sums->threads[mark->place].calls;
    sums->is_exact &= !netting_is_nested(netting, mark->place, mark->start);
    return true;
}

void ttd_netting_end_mark(struct ttd_netting *netting, uint32_t index)
{
    if (!netting->mark_count)
        return;
    const struct ttd_net_mark *mark = &netting->marks[netting->mark_count - 1];
    netting->sums.threads[mark->place].calls += index - mark->index;
}

void ttd_netting_sum_time(struct ttd_netting *netting, const struct ttd_net_time *time)
{
    const struct ttd_net_time *before =
        netting->time_count ? &netting->times[netting->time_count - 1] : NULL;
    /* A ReAlloc that is under way acquires its block at another time than it began. */
    bool is_late =
        netting->late_count && ttd_position_compare(time->position, netting->settled) < 0;
    netting->sums.is_exact &= !is_late && (!before || before->wall_time <= time->wall_time);
}

void ttd_netting_moment(const struct ttd_netting *netting, uint32_t index,
                        struct ttd_net_moment *moment)
{
    const struct ttd_net_mark *mark = netting_find_mark(netting, index);
    *moment = (struct ttd_net_moment){.thread = mark->place,
                                      .calls = mark->calls + (index - mark->index) + 1,
                                      .wall_time = netting_find_time(netting, index)->wall_time};
}

/* Blocks. */

/** Adds the product of two numbers to a sum of 128 bits, which is large enough. */
static void sums_add_product(struct ttd_net_site_sums *site, uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t first = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    uint64_t second = (a & UINT32_MAX) * (b >> 32) + (first & UINT32_MAX);
    uint64_t product_low = second << 32 | (low & UINT32_MAX);
    site->byte_time_high += (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
    site->byte_time_low += product_low;
    site->byte_time_high += site->byte_time_low < product_low;
}

static inline void sums_add(struct ttd_net_amount *amount, uint64_t size)
{
    amount->blocks++;
    amount->bytes += size;
}

/** Returns the count of a number's binary digits. */
static unsigned sums_class_of(uint64_t number)
{
    unsigned digits = 0;
    for (; number > UINT8_MAX; number >>= 8)
        digits += 8;
    for (; number; number >>= 1)
        digits++;
    return digits;
}

/** Counts the lifetime of a block, in nanoseconds and in events. */
static inline void sums_add_lifetime(struct ttd_netting_sums *sums, const struct ttd_net *birth,
                                     uint64_t time, uint32_t events)
{
    if (time)
        sums_add_product(&sums->sites[birth->shape], birth->size, time);
    if (!sums->options.has_lifetimes)
        return;
    sums_add(&sums->lifetimes.by_time[sums_class_of(time)], birth->size);
    sums_add(&sums->lifetimes.by_events[sums_class_of(events)], birth->size);
}

/** Counts a block that its thread releases after so many of its other calls. */
static inline void sums_add_between(struct ttd_netting_sums *sums, const struct ttd_net *birth,
                                    uint64_t calls)
{
    struct ttd_net_site_sums *site = &sums->sites[birth->shape];
    if (calls <= sums->options.soon)
        sums_add(&site->soon, birth->size);
    if (calls <= sums->options.temporary)
        sums_add(&site->temporary, birth->size);
}

void ttd_netting_sum_pair(struct ttd_netting *netting, const struct ttd_net *birth, uint32_t index,
                          bool is_free)
{
    struct ttd_netting_sums *sums = &netting->sums;
    const struct ttd_net_mark *mark = &netting->marks[sums->mark];
    const struct ttd_net_time *time = &netting->times[sums->time];
    if (is_free && (sums->flags[birth->shape] & NET_SHAPE_IS_NEW)) {
        if (birth->last >= mark->index) {
            sums_add_between(sums, birth, index - birth->last - 1);
        } else {
            const struct ttd_net_mark *before = netting_find_mark(netting, birth->last);
            if (before->place == mark->place)
                sums_add_between(sums, birth,
                                 mark->calls + (index - mark->index) -
                                     (before->calls + (birth->last - before->index)) - 1);
        }
    }
    uint64_t begin = time->wall_time;
    if (birth->last < time->index)
        begin = netting_find_time(netting, birth->last)->wall_time;
    sums_add_lifetime(sums, birth, time->wall_time - begin, index - birth->last);
}

void ttd_netting_sum_joined(struct ttd_netting *netting, const struct ttd_net *birth,
                            const struct ttd_net *later)
{
    struct ttd_netting_sums *sums = &netting->sums;
    sums->mark = (size_t)(netting_find_mark(netting, later->first) - netting->marks);
    sums->time = (size_t)(netting_find_time(netting, later->first) - netting->times);
    ttd_netting_sum_pair(netting, birth, later->first, later->was_freed);
}

void ttd_netting_finish_sums(struct ttd_netting *netting)
{
    struct ttd_netting_sums *sums = &netting->sums;
    netting->netted.sums =
        (struct ttd_net_sums){.is_exact = sums->is_exact,
                              .sites = sums->sites,
                              .site_count = (uint32_t)netting->decoder.state.shape_count,
                              .threads = sums->threads,
                              .thread_count = sums->thread_count,
                              .lifetimes = &sums->lifetimes};
}
