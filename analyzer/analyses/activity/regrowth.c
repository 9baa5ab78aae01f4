/* SPDX-License-Identifier: MIT */
#include "analyses/activity/moves.h"

#include <stdlib.h>

#include "base/grow.h"

/* Fewer growths than these show no pattern. */
#define MEASURED_MIN 3

/* Largest variance, relative to the squared mean, of values that count as about the same. */
#define SAME_MAX 0.04

/* Sums of values and of their squares suffice for mean and variance, whatever the number of
 * reallocations. */
void heap_growth_add(struct heap_move_group *group, uint64_t before, uint64_t after)
{
    uint64_t low = before < after ? before : after;
    uint64_t high = before < after ? after : before;
    if (low < group->smallest)
        group->smallest = low;
    if (high > group->largest)
        group->largest = high;
    if (after < before)
        group->shrunk++;
    if (after > before)
        group->grown++;
    if (after <= before || !before)
        return;
    double factor = (double)after / (double)before;
    double step = (double)(after - before);
    group->measured++;
    group->factor_sum += factor;
    group->factor_squares += factor * factor;
    group->step_sum += step;
    group->step_squares += step * step;
}

void heap_growth_merge(struct heap_move_group *sum, const struct heap_move_group *group)
{
    if (group->smallest < sum->smallest)
        sum->smallest = group->smallest;
    if (group->largest > sum->largest)
        sum->largest = group->largest;
    sum->grown += group->grown;
    sum->shrunk += group->shrunk;
    sum->measured += group->measured;
    /* Sums and squares of both measures can be added, so groups merge without their single
     * sizes. */
    sum->factor_sum += group->factor_sum;
    sum->factor_squares += group->factor_squares;
    sum->step_sum += group->step_sum;
    sum->step_squares += group->step_squares;
}

/* Variance relative to the squared mean. */
static double regrowth_growth_spread(double sum, double squares, double count)
{
    double mean = sum / count;
    double variance = squares / count - mean * mean;
    return variance > 0 ? variance / (mean * mean) : 0;
}

enum heap_growth heap_move_growth(const struct heap_move_group *group, double *measure)
{
    *measure = 0;
    uint64_t measured = group->counts.moved + group->counts.in_place - group->counts.unknown_old;
    if (group->shrunk > measured / 2)
        return HEAP_GROWTH_SHRINKING;
    if (measured >= MEASURED_MIN && group->grown < measured - group->grown - group->shrunk)
        return HEAP_GROWTH_SAME;
    if (group->measured < MEASURED_MIN)
        return HEAP_GROWTH_UNKNOWN;
    double count = (double)group->measured;
    double factor = group->factor_sum / count;
    double step = group->step_sum / count;
    double factor_spread = regrowth_growth_spread(group->factor_sum, group->factor_squares, count);
    double step_spread = regrowth_growth_spread(group->step_sum, group->step_squares, count);
    /* A small step between large sizes is nearly the same factor as well, so the step wins if it
     * varies no more than the factor. */
    if (step_spread <= SAME_MAX && step_spread <= factor_spread) {
        *measure = step;
        return HEAP_GROWTH_LINEAR;
    }
    if (factor_spread <= SAME_MAX) {
        *measure = factor;
        return HEAP_GROWTH_GEOMETRIC;
    }
    return HEAP_GROWTH_IRREGULAR;
}

const char *heap_growth_name(enum heap_growth growth)
{
    switch (growth) {
    case HEAP_GROWTH_SHRINKING:
        return "shrinking";
    case HEAP_GROWTH_SAME:
        return "same size";
    case HEAP_GROWTH_LINEAR:
        return "linear";
    case HEAP_GROWTH_GEOMETRIC:
        return "geometric";
    case HEAP_GROWTH_IRREGULAR:
        return "irregular";
    case HEAP_GROWTH_UNKNOWN:
        break;
    }
    return "unknown";
}

_Static_assert(REGROWTH_CALLS == sizeof(uint64_t), "a byte of low_bytes for each");

/* A byte of 1 in each place. */
#define EACH_BYTE UINT64_C(0x0101010101010101)

/* An allocation. */
struct allocation {
    uint64_t event;
    uint64_t size;
    ttd_id heap;
    bool is_wanted;
    /* Number among the thread's calls. */
    uint64_t call;
};

/* The last calls of a thread, by their number modulo REGROWTH_CALLS. */
struct regrowth_recent {
    uint64_t calls;
    /* The call site of each that allocated; TTD_NONE for others. */
    ttd_id stacks[REGROWTH_CALLS];
    /* The low byte of each stack: most releases look at nothing else. */
    uint64_t low_bytes;
    struct allocation last[REGROWTH_CALLS];
};

void regrowth_init(struct regrowth_finder *finder, struct heap_move_table *regrown,
                   enum heap_split split, const struct heap_islands *islands)
{
    *finder = (struct regrowth_finder){.regrown = regrown, .split = split, .islands = islands};
    map_init(&finder->threads);
}

void regrowth_free(struct regrowth_finder *finder)
{
    map_free(&finder->threads);
    free(finder->recent);
    *finder = (struct regrowth_finder){.count = 0};
}

/* Finds the last calls of another thread than the one that was looked up last. */
static enum ttd_status regrowth_change_thread(struct regrowth_finder *finder, ttd_id thread)
{
    uint32_t index = map_get(&finder->threads, thread, 0);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&finder->recent, &finder->capacity,
                                            finder->count + 1, sizeof *finder->recent);
        if (status == TTD_OK)
            status = map_set(&finder->threads, thread, 0, (uint32_t)finder->count);
        if (status != TTD_OK)
            return status;
        index = (uint32_t)finder->count++;
        finder->recent[index] = (struct regrowth_recent){.calls = 0};
    }
    finder->last_thread = thread;
    finder->last_index = index;
    return TTD_OK;
}

static inline enum ttd_status regrowth_find_recent(struct regrowth_finder *finder, ttd_id thread,
                                                   struct regrowth_recent **recent)
{
    enum ttd_status status = TTD_OK;
    if (!finder->count || thread != finder->last_thread)
        status = regrowth_change_thread(finder, thread);
    if (status == TTD_OK)
        *recent = &finder->recent[finder->last_index];
    return status;
}

static void regrowth_set_stack(struct regrowth_recent *recent, size_t slot, ttd_id stack)
{
    recent->stacks[slot] = stack;
    recent->low_bytes &= ~(UINT64_C(0xff) << 8 * slot);
    recent->low_bytes |= (uint64_t)(uint8_t)stack << 8 * slot;
}

/* Every call takes a slot, also one that can be no successor: otherwise "soon" would mean longer
 * for threads that reallocate a lot. Member by member: the compiler would build a whole struct in
 * memory first. */
static inline void regrowth_add_allocation(struct regrowth_recent *recent, ttd_id stack,
                                           uint64_t event, uint64_t size, ttd_id heap,
                                           bool is_wanted)
{
    size_t slot = recent->calls % REGROWTH_CALLS;
    struct allocation *allocation = &recent->last[slot];
    regrowth_set_stack(recent, slot, stack);
    allocation->event = event;
    allocation->size = size;
    allocation->heap = heap;
    allocation->is_wanted = is_wanted;
    allocation->call = recent->calls++;
}

/* False if none of the last calls allocated with this stack: if no byte of the difference is 0. */
static bool regrowth_may_have_stack(const struct regrowth_recent *recent, ttd_id stack)
{
    uint64_t difference = recent->low_bytes ^ EACH_BYTE * (uint8_t)stack;
    return (difference - EACH_BYTE) & ~difference & EACH_BYTE << 7;
}

/* Finds the allocation that a released block's contents were copied to; REGROWTH_CALLS if there is
 * none. A block that is released is itself nobody's successor any more. */
static size_t regrowth_find_successor(struct regrowth_recent *recent, const struct heap_block *old)
{
    size_t successor = REGROWTH_CALLS;
    if (!regrowth_may_have_stack(recent, old->stack))
        return successor;
    for (size_t i = 0; i < REGROWTH_CALLS; i++) {
        if (recent->stacks[i] != old->stack)
            continue;
        const struct allocation *record = &recent->last[i];
        if (record->event == old->event)
            regrowth_set_stack(recent, i, TTD_NONE);
        else if (record->size > old->size && record->heap == old->heap &&
                 record->event > old->event &&
                 (successor == REGROWTH_CALLS || record->call > recent->last[successor].call))
            successor = i;
    }
    return successor;
}

/* Adds a growth from a block to its successor. A block succeeds one block at most. */
static enum ttd_status regrowth_add_growth(struct regrowth_finder *finder,
                                           struct regrowth_recent *recent,
                                           const struct heap_block *old, size_t successor)
{
    regrowth_set_stack(recent, successor, TTD_NONE);
    if (!recent->last[successor].is_wanted)
        return TTD_OK;
    struct heap_move_group *group;
    enum ttd_status status =
        heap_move_table_find(finder->regrown, heap_key_of_block(finder->split, old), &group);
    if (status != TTD_OK)
        return status;
    struct heap_move_counts *sums[] = {&group->counts, &finder->regrown->total};
    for (size_t i = 0; i < 2; i++) {
        sums[i]->reallocs++;
        sums[i]->moved++;
        sums[i]->copies.bytes_at_most = heap_add(sums[i]->copies.bytes_at_most, old->size);
    }
    heap_growth_add(group, old->size, recent->last[successor].size);
    return TTD_OK;
}

static enum ttd_status regrowth_see_release(struct regrowth_finder *finder,
                                            struct regrowth_recent *recent,
                                            const struct heap_block *old, bool is_call)
{
    if (is_call)
        regrowth_set_stack(recent, recent->calls++ % REGROWTH_CALLS, TTD_NONE);
    if (old->action != TTD_ACTION_ALLOC || old->stack == TTD_NONE)
        return TTD_OK;
    size_t successor = regrowth_find_successor(recent, old);
    return is_call && successor < REGROWTH_CALLS
               ? regrowth_add_growth(finder, recent, old, successor)
               : TTD_OK;
}

enum ttd_status regrowth_see(struct regrowth_finder *finder, const struct heap_effect *effect)
{
    struct regrowth_recent *recent;
    if (effect->kind != HEAP_ACQUIRED && effect->kind != HEAP_RELEASED)
        return TTD_OK;
    enum ttd_status status = regrowth_find_recent(finder, effect->thread, &recent);
    if (status != TTD_OK)
        return status;
    /* A reallocation is one call. It ends when it has acquired. */
    if (effect->kind == HEAP_RELEASED)
        return regrowth_see_release(finder, recent, effect->block,
                                    effect->action == TTD_ACTION_FREE);
    const struct heap_block *block = effect->block;
    regrowth_add_allocation(recent, block->action == TTD_ACTION_ALLOC ? block->stack : TTD_NONE,
                            block->event, block->size, block->heap,
                            heap_islands_want_block(finder->islands, block));
    return TTD_OK;
}

enum ttd_status regrowth_see_alloc(struct regrowth_finder *finder, const struct ttd_event *event)
{
    struct regrowth_recent *recent;
    enum ttd_status status = regrowth_find_recent(finder, event->thread, &recent);
    if (status == TTD_OK)
        regrowth_add_allocation(
            recent, event->stack, event->number, event->size, event->heap,
            !finder->islands || heap_islands_want(finder->islands, event->thread, event->time_end));
    return status;
}

enum ttd_status regrowth_see_free(struct regrowth_finder *finder, const struct ttd_event *event,
                                  const struct heap_block *block)
{
    struct regrowth_recent *recent;
    enum ttd_status status = regrowth_find_recent(finder, event->thread, &recent);
    return status == TTD_OK ? regrowth_see_release(finder, recent, block, true) : status;
}
