/* SPDX-License-Identifier: MIT */
#include "analyses/state/diff.h"

#include <string.h>

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

static enum ttd_status add_live(void *context, const struct heap_block *block)
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
                                                 : add_live(finder, block);
    }
    return status;
}

/* Puts the blocks that are live at the end of the range into their quadrants. To decide which of
 * them the runtimes keep, the replay goes on to the end of the trace; releases on that way are
 * outside of the range. */
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
        status = heap_kept_decide(kept, &arrival->cursor, &diff->runtime, add_live, finder, error);
    for (size_t i = 0; i < HEAP_QUADRANTS && status == TTD_OK; i++)
        status = heap_groups_sort(&diff->quadrants[i]);
    return status == TTD_OK ? heap_groups_sort(&diff->runtime.groups) : status;
}

static void set_parents(struct heap_diff *diff, const struct heap_parents *parents)
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
    set_parents(diff, &arrival.cursor.replay.live.parents);
    enum ttd_status status = heap_kept_read(&kept, trace, options->split, &diff->runtime, error);
    diff->runtime.groups.classes = options->classes;
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = diff_finish(&finder, &kept, &arrival, error);
    set_parents(diff, NULL);
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
