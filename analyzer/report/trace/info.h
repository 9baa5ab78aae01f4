/* SPDX-License-Identifier: MIT */
/** Values of `info` that its formats share. */
#ifndef ANALYZER_REPORT_TRACE_INFO_H
#define ANALYZER_REPORT_TRACE_INFO_H

#include "report/trace/trace_reports.h"

#define INFO_TIME_SIZE 32

/** Returns one word for how the process of a closed trace ended. Static. */
const char *info_end_reason(const struct report_info *data);

/** Whether the end has a code: an exit status or a signal. */
bool info_has_end_code(const struct report_info *data);

/** Returns the name of a processor architecture. Static. */
const char *info_architecture(uint32_t architecture);

/** Writes tables of the clients and the activities that the program has named; nothing if there are
 * none. */
void info_text_clients(struct text_output *output, const struct heap_clients *clients);

/** Whether the first chunk was read; it describes the process and its recording. */
static inline bool info_has_origin(const struct ttd_trace *trace)
{
    return trace->time_unit != 0;
}

/** Whether the process and its start are known: not in a trace of another recorder's data. */
static inline bool info_has_process(const struct ttd_trace *trace)
{
    return info_has_origin(trace) && (trace->process_id || trace->start_time);
}

/** Writes when the recording began, such as "2024-02-29T12:00:00Z". */
void info_start_time(const struct report_info *data, char text[INFO_TIME_SIZE]);

/** Size of the header of a chunk of pages, in bytes. */
#define INFO_PAGES_HEADER 8

/** Returns the number of bytes of memory contents in the trace. A page that several snapshots share
 * is stored, and counts, once. */
uint64_t info_memory_bytes(const struct heap_trace_stats *stats);

/** Returns the stored bytes of event chunks per event. */
double info_bytes_per_event(const struct heap_trace_stats *stats);

#endif
