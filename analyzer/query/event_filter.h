/* SPDX-License-Identifier: MIT */
/**
 * Conditions of a query on events, as the table of events uses them: they bound the part of the
 * trace that is read, and drop most other events before SQLite sees them. SQLite checks each
 * condition again for the rows that it gets, so that a filter need not understand every value: one
 * that it does not know drops nothing.
 */
#ifndef ANALYZER_QUERY_EVENT_FILTER_H
#define ANALYZER_QUERY_EVENT_FILTER_H

#include <sqlite3.h>
#include <ttdtrace/event.h>

#include "query/query_records.h"
#include "report/trace/trace_reports.h"

/** Conditions on values at most; further ones are left to SQLite. */
#define EVENT_CONDITIONS_MAX 16

/** Values that a column may have, or the bounds of them. */
struct event_condition {
    enum event_column column;
    int64_t least;
    int64_t most;
    /** The values of IN, sorted; NULL for the range. */
    int64_t *values;
    size_t count;
};

/** A code of an action or a function, by its number: 0 if no condition lets it through. */
struct event_names {
    bool is_given;
    bool has[256];
};

/** All zero at first. */
struct event_filter {
    /** Numbers of the first event that is wanted, and of the first one behind them; and the first
     * and the last position. */
    uint64_t first;
    uint64_t end;
    struct ttd_position from;
    struct ttd_position to;
    struct event_names actions;
    struct event_names apis;
    struct event_condition conditions[EVENT_CONDITIONS_MAX];
    size_t count;
};

/** Numbers of a plan. */
enum event_plan {
    EVENT_PLAN_READS,
    /** All events are rows, and the query looks at none of their columns. */
    EVENT_PLAN_COUNTS
};

/** The xBestIndex of the table: chooses the conditions, and passes them to event_filter_set(). The
 * plan's number is an enum event_plan. */
int event_filter_plan(sqlite3_vtab *table, sqlite3_index_info *info);

/** Sets the conditions from the plan and its values. Returns a status of SQLite. */
int event_filter_set(struct event_filter *filter, const char *plan, int count,
                     sqlite3_value **values);

void event_filter_free(struct event_filter *filter);

/** Whether the filter bounds the part of the trace that is read. */
bool event_filter_is_range(const struct event_filter *filter);

/** Whether the filter has conditions on values, beside its range. */
bool event_filter_has_values(const struct event_filter *filter);

/** Whether an event of the range meets all conditions on values. */
bool event_filter_passes(const struct event_filter *filter, const struct ttd_event *event);

#endif
