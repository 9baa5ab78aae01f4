/* SPDX-License-Identifier: MIT */
/** What the formats of `info` share. */
#ifndef ANALYZER_REPORT_INFO_H
#define ANALYZER_REPORT_INFO_H

#include "report/data.h"

#define INFO_TIME_SIZE 32

/** One word for how the process ended, of a trace that was closed. Static. */
const char *info_end_reason(const struct report_info *data);

/** Whether the end has a code: an exit status or a signal. */
bool info_has_end_code(const struct report_info *data);

/** Static. */
const char *info_architecture(uint32_t architecture);

/** When the recording began, such as "2024-02-29T12:00:00Z". */
void info_start_time(const struct report_info *data, char text[INFO_TIME_SIZE]);

/** Stored bytes of events, for each event. */
double info_bytes_per_event(const struct heap_trace_stats *stats);

#endif
