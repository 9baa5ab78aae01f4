/* SPDX-License-Identifier: MIT */
/** Why a finding may be wrong. */
#ifndef ANALYZER_REPORT_CERTAINTY_H
#define ANALYZER_REPORT_CERTAINTY_H

#include <ttdtrace/reader.h>

#include "travel/losses.h"
#include "heap/replay.h"

#define CERTAINTY_REASONS_MAX 8
#define CERTAINTY_REASON_SIZE 240

/** Reasons, as text; none means certain. */
struct certainty {
    char reasons[CERTAINTY_REASONS_MAX][CERTAINTY_REASON_SIZE];
    size_t count;
};

/** What doubts come from. */
struct certainty_facts {
    const struct ttd_trace *trace;
    bool is_closed;
    bool is_truncated;
    bool is_given_up;
    /** The whole trace is, and was read as it is. */
    bool is_intact;
    /** The findings depend on wall times. */
    bool uses_times;
    const struct heap_losses *losses;
    const struct heap_counts *counts;
    /** What was asked for; ttd_position_max() for the end. */
    struct ttd_position at;
    /** Whether that is the trace's end or beyond, and the last position that something is known of.
     */
    bool reached_end;
    struct ttd_position last;
    /** A position was asked for as a part of so many events, all that are readable; 0 if not. */
    uint64_t part_of;
};

void certainty_judge(struct certainty *certainty, const struct certainty_facts *facts);

#endif
