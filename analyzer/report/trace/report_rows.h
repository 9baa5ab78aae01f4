/* SPDX-License-Identifier: MIT */
/** Events as rows, written by themselves: the text is the same as of `query`, which is several
 * times slower. */
#ifndef ANALYZER_REPORT_TRACE_REPORT_ROWS_H
#define ANALYZER_REPORT_TRACE_REPORT_ROWS_H

#include <ttdtrace/event.h>

#include "report/sections/report.h"

/** The columns of an event, in the order of the table: X(number, name, type). */
#define EVENT_COLUMNS(X)                                                                           \
    X(NUMBER, "number", INTEGER)                                                                   \
    X(POSITION, "position", POSITION)                                                              \
    X(ACTION, "action", TEXT)                                                                      \
    X(API, "api", TEXT)                                                                            \
    X(HEAP, "heap", ADDRESS)                                                                       \
    X(HEAP_ID, "heap_id", INTEGER)                                                                 \
    X(ADDRESS, "address", ADDRESS)                                                                 \
    X(PREVIOUS_ADDRESS, "previous_address", ADDRESS)                                               \
    X(BASE_ADDRESS, "base_address", ADDRESS)                                                       \
    X(SIZE, "size", INTEGER)                                                                       \
    X(FLAGS, "flags", ADDRESS)                                                                     \
    X(RESULT, "result", INTEGER)                                                                   \
    X(TIME_START, "time_start", POSITION)                                                          \
    X(TIME_END, "time_end", POSITION)                                                              \
    X(WALL_TIME, "wall_time_ns", INTEGER)                                                          \
    X(THREAD, "thread", INTEGER)                                                                   \
    X(STACK_ID, "stack_id", INTEGER)

#define EVENT_COLUMN_NUMBER(id, name, type) EVENTS_##id,
enum event_column { EVENT_COLUMNS(EVENT_COLUMN_NUMBER) EVENTS_COLUMNS };
#undef EVENT_COLUMN_NUMBER

/** A writer of rows. */
struct report_rows;

/**
 * Begins the rows: CSV with its header, or lines of JSON, by the form of the report.
 *
 * @param has_times  wall times are known
 * @return NULL without memory
 */
struct report_rows *report_rows_begin(struct report *report, bool has_times);

/** Writes an event. The definitions of the report must have its heap. */
void report_rows_add(struct report_rows *rows, const struct ttd_event *event);

/** Ends the rows, and releases the writer. */
void report_rows_end(struct report_rows *rows);

#endif
