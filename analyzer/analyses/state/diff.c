/* SPDX-License-Identifier: MIT */
#include "analyses/state/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct diff_finder {
    struct heap_diff *diff;
    struct ttd_position from;
    const struct heap_islands *islands;
    /** The replay has passed the end of the range. */
    bool is_over;
};

/* Whether a position is in the range, if it is not after the range. */
static bool diff_is_inside(const struct diff_finder *finder, struct ttd_position position)
{
    return ttd_position_compare(position, finder->from) >= 0;
}

static enum ttd_status diff_add_block(struct diff_finder *finder, const struct heap_block *block,
                                      bool is_freed)
{
    enum heap_quadrant quadrant = is_freed ? HEAP_AOFI : HEAP_AOFO;
    if (diff_is_inside(finder, block->allocated))
        quadrant = is_freed ? HEAP_AIFI : HEAP_AIFO;
    return heap_groups_add(&finder->diff->quadrants[quadrant], block);
}

/* Puts a block that has ended, for whatever reason, into its quadrant. */
static enum ttd_status diff_see_effect(void *context, const struct heap_effect *effect)
{
    struct diff_finder *finder = context;
    bool is_wanted = !finder->is_over && diff_is_inside(finder, effect->position) &&
                     heap_islands_want_block(finder->islands, effect->block);
    return is_wanted ? diff_add_block(finder, effect->block, true) : TTD_OK;
}

static enum ttd_status diff_add_live(void *context, const struct heap_block *block)
{
    struct diff_finder *finder = context;
    enum ttd_status status = TTD_OK;
    if (heap_is_unknown(block->allocated, finder->diff->outcome.unknown_before))
        status = heap_groups_add(&finder->diff->unknown, block);
    return status == TTD_OK ? diff_add_block(finder, block, false) : status;
}

static enum ttd_status diff_collect(struct diff_finder *finder, struct heap_kept *kept,
                                    struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    heap_live_discard_stale(live);
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        if (!heap_islands_want_block(finder->islands, block))
            continue;
        status = heap_kept_may_have(kept, block) ? heap_kept_defer(kept, block)
                                                 : diff_add_live(finder, block);
    }
    return status;
}

/* Puts the blocks that are live at the end of the range into their quadrants. To find the blocks
 * that runtimes keep, the replay goes on to the end of the trace; releases on that way are outside
 * of the range. */
static enum ttd_status diff_finish(struct diff_finder *finder, struct heap_kept *kept,
                                   struct heap_arrival *arrival, struct ttd_error *error)
{
    struct heap_replay *replay = &arrival->cursor.replay;
    struct heap_diff *diff = finder->diff;
    diff->outcome = heap_arrival_outcome(arrival);
    enum ttd_status status = diff_collect(finder, kept, &replay->live);
    if (status == TTD_OK)
        status = replay->observer_status;
    finder->is_over = true;
    if (status == TTD_OK)
        status =
            heap_kept_decide(kept, &arrival->cursor, &diff->runtime, diff_add_live, finder, error);
    for (size_t i = 0; i < HEAP_QUADRANTS && status == TTD_OK; i++)
        status = heap_groups_sort(&diff->quadrants[i]);
    return status == TTD_OK ? heap_groups_sort(&diff->runtime.groups) : status;
}

static void diff_set_parents(struct heap_diff *diff, const struct heap_parents *parents)
{
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        diff->quadrants[i].parents = parents;
}

enum ttd_status heap_diff_find(const struct heap_trace *trace,
                               const struct heap_diff_options *options, struct heap_diff *diff,
                               struct ttd_error *error)
{
    memset(diff, 0, sizeof *diff);
    for (size_t i = 0; i < HEAP_QUADRANTS; i++) {
        heap_groups_init(&diff->quadrants[i]);
        diff->quadrants[i].split = options->split;
        diff->quadrants[i].sample = trace->choice.sample;
        diff->quadrants[i].classes = options->classes;
    }
    heap_groups_init(&diff->unknown);
    struct diff_finder finder = {.diff = diff, .from = options->from, .islands = options->islands};
    struct heap_observer observer = {.context = &finder,
                                     .effect = diff_see_effect,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_kept kept;
    struct heap_route route = {.to = options->last, .from = options->from, .observer = &observer};
    struct heap_arrival arrival = {.has_losses = false};
    diff_set_parents(diff, &arrival.cursor.replay.live.parents);
    enum ttd_status status = heap_kept_read(&kept, trace, options->split, &diff->runtime, error);
    diff->runtime.groups.classes = options->classes;
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = diff_finish(&finder, &kept, &arrival, error);
    diff_set_parents(diff, NULL);
    heap_arrival_free(&arrival);
    heap_kept_free(&kept);
    if (status != TTD_OK)
        heap_diff_free(diff);
    return status;
}

void heap_diff_free(struct heap_diff *diff)
{
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        heap_groups_free(&diff->quadrants[i]);
    heap_groups_free(&diff->runtime.groups);
    heap_groups_free(&diff->unknown);
}

const char *heap_quadrant_name(enum heap_quadrant quadrant)
{
    static const char *const names[HEAP_QUADRANTS] = {"aifi", "aifo", "aofi", "aofo"};
    return names[quadrant];
}

void heap_comparison_init(struct heap_comparison *comparison)
{
    *comparison = (struct heap_comparison){.changes = NULL};
    map_init(&comparison->by_key);
}

void heap_comparison_free(struct heap_comparison *comparison)
{
    free(comparison->changes);
    map_free(&comparison->by_key);
    *comparison = (struct heap_comparison){.changes = NULL};
}

static uint64_t diff_compared_distance(const uint64_t sides[HEAP_SIDES])
{
    return sides[HEAP_OLD] > sides[HEAP_NEW] ? sides[HEAP_OLD] - sides[HEAP_NEW]
                                             : sides[HEAP_NEW] - sides[HEAP_OLD];
}

static enum ttd_status diff_change_of(struct heap_comparison *comparison, uint64_t key_high,
                                      uint64_t key_low, struct heap_change **change)
{
    uint32_t index = map_get(&comparison->by_key, key_high, key_low);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&comparison->changes, &comparison->capacity,
                                            comparison->count + 1, sizeof *comparison->changes);
        index = (uint32_t)comparison->count;
        if (status == TTD_OK)
            status = map_set(&comparison->by_key, key_high, key_low, index);
        if (status != TTD_OK)
            return status;
        comparison->changes[comparison->count++] = (struct heap_change){.blocks = {0, 0}};
    }
    *change = &comparison->changes[index];
    return TTD_OK;
}

/* The first group of a key names it in reports. */
enum ttd_status heap_comparison_add(struct heap_comparison *comparison, enum heap_side side,
                                    uint64_t key_high, uint64_t key_low,
                                    const struct heap_group *group)
{
    struct heap_change *change;
    enum ttd_status status = diff_change_of(comparison, key_high, key_low, &change);
    if (status != TTD_OK)
        return status;
    if (!change->blocks[side])
        change->keys[side] = group->key;
    change->blocks[side] += group->blocks;
    change->bytes[side] = heap_add(change->bytes[side], group->bytes);
    return TTD_OK;
}

enum heap_change_kind heap_change_kind_of(const struct heap_change *change)
{
    if (!change->blocks[HEAP_OLD])
        return HEAP_CHANGE_ADDED;
    if (!change->blocks[HEAP_NEW])
        return HEAP_CHANGE_GONE;
    const uint64_t *sides = diff_compared_distance(change->bytes) ? change->bytes : change->blocks;
    if (sides[HEAP_OLD] == sides[HEAP_NEW])
        return HEAP_CHANGE_SAME;
    return sides[HEAP_OLD] < sides[HEAP_NEW] ? HEAP_CHANGE_GROWN : HEAP_CHANGE_SHRUNK;
}

/* Keys differ on one side at least, so that the order depends on nothing else. */
static int diff_compare_compared(const void *a, const void *b)
{
    const struct heap_change *x = a;
    const struct heap_change *y = b;
    if (diff_compared_distance(x->bytes) != diff_compared_distance(y->bytes))
        return diff_compared_distance(x->bytes) > diff_compared_distance(y->bytes) ? -1 : 1;
    if (diff_compared_distance(x->blocks) != diff_compared_distance(y->blocks))
        return diff_compared_distance(x->blocks) > diff_compared_distance(y->blocks) ? -1 : 1;
    if (x->bytes[HEAP_NEW] != y->bytes[HEAP_NEW])
        return x->bytes[HEAP_NEW] > y->bytes[HEAP_NEW] ? -1 : 1;
    int order = heap_key_compare(x->keys[HEAP_NEW], y->keys[HEAP_NEW]);
    return order ? order : heap_key_compare(x->keys[HEAP_OLD], y->keys[HEAP_OLD]);
}

void heap_comparison_sort(struct heap_comparison *comparison)
{
    if (comparison->count)
        qsort(comparison->changes, comparison->count, sizeof *comparison->changes,
              diff_compare_compared);
    for (size_t i = 0; i < comparison->count; i++)
        comparison->kinds[heap_change_kind_of(&comparison->changes[i])]++;
    map_free(&comparison->by_key);
}
