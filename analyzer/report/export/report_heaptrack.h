/* SPDX-License-Identifier: MIT */
/** A trace in the format of heaptrack, as heaptrack_print and heaptrack_gui read it: every
 * allocation and every release, with time. */
#ifndef ANALYZER_REPORT_EXPORT_REPORT_HEAPTRACK_H
#define ANALYZER_REPORT_EXPORT_REPORT_HEAPTRACK_H

#include "heap/replay.h"
#include "report/sections/report.h"

struct heaptrack_writer;

/** The choice of the blocks that are written. */
struct heaptrack_choice {
    /** Heaps with a parent are left out: their blocks lie in blocks that are written. Set before
     * the first effect. */
    const struct heap_parents *parents;
    /** NULL if the blocks of all stacks are wanted. */
    heap_stack_filter filter;
    void *filter_context;
};

/** Begins the file. @return NULL without memory. */
struct heaptrack_writer *report_heaptrack_begin(struct report *report,
                                                const struct heaptrack_choice *choice);

/** Writes an effect; for an observer of all effects, whose context is the writer. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or the filter's status. */
enum ttd_status report_heaptrack_effect(void *context, const struct heap_effect *effect);

/** Completes the file, with the certainty of the report if it is complete, and releases the
 * writer. */
void report_heaptrack_end(struct heaptrack_writer *writer, bool is_complete);

#endif
