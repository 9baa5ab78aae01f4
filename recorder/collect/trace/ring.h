/* SPDX-License-Identifier: MIT */
/**
 * A trace that keeps the recent past only. A cut is made through it when it is half as long as it
 * may be; when it is as long as that, a file without the part before the cut takes its place, in
 * which the blocks that were live at the cut have their calls. So it is a valid trace at any
 * moment, and has at least half of its largest size. The loop, the merge and the file use it.
 */
#ifndef RECORDER_COLLECT_TRACE_RING_H
#define RECORDER_COLLECT_TRACE_RING_H

#include <stdbool.h>
#include <stdint.h>

struct trace;

/** The extent of the past that a trace keeps: one of the members is 0. */
struct ring_limit {
    uint64_t bytes;
    uint64_t time; /* in nanoseconds; the trace has twice as much at most */
};

struct ring;

/** Makes a trace keep the recent past, before its first event. */
void ring_begin(struct trace *trace, const struct ring_limit *limit, uint64_t now);
void ring_free(struct ring *ring);

/** Cuts or shortens the trace if that is due. */
void ring_step(struct trace *trace, uint64_t now);

/** Returns the number of calls that were left out. */
uint64_t ring_left_out(const struct trace *trace);

#endif
