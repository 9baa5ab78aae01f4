/* SPDX-License-Identifier: MIT */
/** Blocks by stack as a profile for the viewers of other projects. */
#ifndef ANALYZER_REPORT_STATE_REPORT_PROFILE_H
#define ANALYZER_REPORT_STATE_REPORT_PROFILE_H

#include "report/sections/report.h"
#include "view/tree.h"

/** The blocks of a profile. */
enum report_measure { REPORT_LIVE, REPORT_PEAK, REPORT_ALLOCATED, REPORT_TEMPORARY };

/** Blocks by stack, and the trace that they are of. Nothing is owned. */
struct report_profile {
    const struct heap_groups *groups;
    const struct ttd_trace *trace;
    enum report_measure measure;
    /** The tree of calls of the groups, for formats that are one; else NULL. */
    const struct view_tree *tree;
};

/** Returns the blocks in words: "live", "live at the peak", "allocated", "temporary". Static. */
const char *report_measure_words(enum report_measure measure);

/** Writes a profile.proto of pprof, not compressed. */
void report_profile_pprof(struct report *report, const struct report_profile *data);

/** Writes speedscope's JSON: a profile of bytes and one of blocks. */
void report_profile_speedscope(struct report *report, const struct report_profile *data);

/** Writes the tree as a flame graph: an SVG without scripts. */
void report_profile_svg(struct report *report, const struct report_profile *data);

#endif
