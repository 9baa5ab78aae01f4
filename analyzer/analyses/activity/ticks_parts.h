/* SPDX-License-Identifier: MIT */
/** Private to the ticks: what they keep during a pass. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TICKS_PARTS_H
#define ANALYZER_ANALYSES_ACTIVITY_TICKS_PARTS_H

#include "analyses/activity/ticks.h"

struct ticks_finder {
    struct heap_ticks *ticks;
    struct heap_ticks_options options;
    struct heap_totals totals;
    /** The tick that has not ended yet, and whether the range has begun. */
    struct heap_tick open;
    bool is_in_range;
    uint64_t first_event;
    /** How many events behind first_event the last one of the open stretch comes. */
    uint64_t stretch_last;
};

/** Ends ticks before the next position, which is that of an effect. */
enum ttd_status ticks_move_on(struct ticks_finder *finder, const struct heap_effect *effect);

/** Ends the open tick. */
enum ttd_status ticks_end_tick(struct ticks_finder *finder);

/** Applies late changes to the series, and merges ticks; see heap_series_settle(). */
enum ttd_status ticks_settle_series(struct heap_ticks *ticks, const uint32_t *new_ticks);

#endif
