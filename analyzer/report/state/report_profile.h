/* SPDX-License-Identifier: MIT */
/** The live blocks at a position as a profile for the viewers of other projects. */
#ifndef ANALYZER_REPORT_STATE_REPORT_PROFILE_H
#define ANALYZER_REPORT_STATE_REPORT_PROFILE_H

#include "report/sections/report.h"

/** Live blocks by stack, and the trace that they are of. Nothing is owned. */
struct report_profile {
    const struct heap_groups *groups;
    const struct ttd_trace *trace;
};

/** Writes a profile.proto of pprof, not compressed. */
void report_profile_pprof(struct report *report, const struct report_profile *data);

/** Writes speedscope's JSON: a profile of bytes and one of blocks. */
void report_profile_speedscope(struct report *report, const struct report_profile *data);

#endif
