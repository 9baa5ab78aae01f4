/* SPDX-License-Identifier: MIT */
/* The events of a trace as a database, without a query: about as fast as SQLite inserts rows. */
#include <stdlib.h>

#include "cli/process/message.h"
#include "query/result_rows.h"
#include "query/tables.h"
#include "report/trace/report_rows.h"
#include "report/trace/trace_reports.h"

struct event_database {
    struct session *session;
    struct result_database result;
    bool has_times;
    /** The first failure of SQLite, or SQLITE_OK. */
    int status;
};

struct event_database *event_database_begin(struct session *session)
{
#define EVENT_DATABASE_COLUMN(id, name, type) ", \"" name "\" " #type
    static const char columns[] = EVENT_COLUMNS(EVENT_DATABASE_COLUMN);
#undef EVENT_DATABASE_COLUMN
    struct event_database *database = calloc(1, sizeof *database);
    if (!database) {
        message_status("export", TTD_ERROR_NO_MEMORY);
        return NULL;
    }
    database->session = session;
    database->has_times = source_has_times(&session->source);
    /* Behind the first comma. */
    database->status = result_database_create(&database->result, columns + 2, EVENTS_COLUMNS,
                                              session->output.temporary);
    return database;
}

static void event_bind_text(sqlite3_stmt *insert, enum event_column column, const char *text)
{
    sqlite3_bind_text(insert, column + 1, text, -1, SQLITE_STATIC);
}

static void event_bind_bits(sqlite3_stmt *insert, enum event_column column, bool has,
                            uint64_t value)
{
    if (has)
        sqlite3_bind_int64(insert, column + 1, (sqlite3_int64)value);
    else
        sqlite3_bind_null(insert, column + 1);
}

static void event_bind_number(sqlite3_stmt *insert, enum event_column column, bool has,
                              uint64_t value)
{
    if (has && value > INT64_MAX)
        sqlite3_bind_double(insert, column + 1, (double)value);
    else
        event_bind_bits(insert, column, has, value);
}

/* The text must outlive the insertion. */
static void event_bind_position(sqlite3_stmt *insert, enum event_column column,
                                char text[QUERY_POSITION_SIZE], struct ttd_position position)
{
    if (!ttd_position_is_valid(position)) {
        sqlite3_bind_null(insert, column + 1);
        return;
    }
    query_position_text(text, position);
    sqlite3_bind_text(insert, column + 1, text, QUERY_POSITION_SIZE - 1, SQLITE_STATIC);
}

bool event_database_add(struct event_database *database, const struct ttd_event *event)
{
    char position[QUERY_POSITION_SIZE], start[QUERY_POSITION_SIZE], end[QUERY_POSITION_SIZE];
    sqlite3_stmt *insert = database->result.insert;
    const struct definitions *definitions = &database->session->definitions;
    bool has_time = database->has_times && event->wall_time != TTD_UNKNOWN;
    event_bind_number(insert, EVENTS_NUMBER, true, event->number);
    event_bind_position(insert, EVENTS_POSITION, position, ttd_event_position(event));
    event_bind_text(insert, EVENTS_ACTION, ttd_action_name((enum ttd_action)event->action));
    event_bind_text(insert, EVENTS_API, ttd_api_name(event->api));
    event_bind_bits(insert, EVENTS_HEAP, true, definitions_heap_handle(definitions, event->heap));
    event_bind_number(insert, EVENTS_HEAP_ID, true, event->heap);
    event_bind_bits(insert, EVENTS_ADDRESS, event_has_address(event), event->address);
    event_bind_bits(insert, EVENTS_PREVIOUS_ADDRESS, event_has_previous_address(event),
                    event->previous_address);
    event_bind_bits(insert, EVENTS_BASE_ADDRESS, event_has_base_address(event),
                    event->base_address);
    event_bind_number(insert, EVENTS_SIZE, event_has_size(event), event->size);
    event_bind_bits(insert, EVENTS_FLAGS, true, event->flags);
    event_bind_number(insert, EVENTS_RESULT, true, event->result);
    event_bind_position(insert, EVENTS_TIME_START, start, event->time_start);
    event_bind_position(insert, EVENTS_TIME_END, end, event->time_end);
    event_bind_number(insert, EVENTS_WALL_TIME, has_time, event->wall_time);
    event_bind_number(insert, EVENTS_THREAD, true, event->thread);
    event_bind_number(insert, EVENTS_STACK_ID, true, event->stack);
    sqlite3_step(insert);
    database->status = sqlite3_reset(insert);
    return database->status == SQLITE_OK;
}

int event_database_end(struct event_database *database, bool is_complete)
{
    struct session *session = database->session;
    if (database->status == SQLITE_OK && is_complete)
        database->status = result_database_write(&database->result, &session->report);
    int status = database->status;
    result_database_free(&database->result);
    free(database);
    if (status == SQLITE_OK)
        return STATUS_OK;
    if (status == SQLITE_NOMEM)
        return message_status("export", TTD_ERROR_NO_MEMORY);
    message("export: %s: %s", session->options.output, sqlite3_errstr(status));
    return STATUS_INTERNAL;
}
