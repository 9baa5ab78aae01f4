/* SPDX-License-Identifier: MIT */
/* Databases of SQLite that are written: of the rows of a query, and of all events of a trace. */
#include "query/result_rows.h"

#include <stdlib.h>
#include <string.h>

#include "cli/process/message.h"
#include "query/query.h"
#include "query/tables.h"
#include "report/trace/trace_reports.h"
#include "report/writers/out.h"

/* The rows of a query as a database. */

bool result_database_is_named(const char *path)
{
    static const char *const ends[] = {".db", ".sqlite", ".sqlite3", NULL};
    return result_ends_with(path, ends);
}

static int database_execute(sqlite3 *database, char *sql)
{
    int status = sql ? sqlite3_exec(database, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return status;
}

/* Whether another column has the name; for the column itself, one before it. */
static bool database_has_name(sqlite3_stmt *query, int column, const char *name, bool is_own)
{
    int count = is_own ? column : sqlite3_column_count(query);
    for (int i = 0; i < count; i++) {
        if (sqlite3_stricmp(sqlite3_column_name(query, i), name) == 0)
            return true;
    }
    return false;
}

/* Returns a name for a column that no other one has: a table refuses two that are alike, which a
 * query may have. NULL without memory. */
static char *database_name(sqlite3_stmt *query, int column)
{
    const char *own_name = sqlite3_column_name(query, column);
    char *name = own_name ? sqlite3_mprintf("%s", own_name) : NULL;
    for (bool is_own = true; name && database_has_name(query, column, name, is_own);
         is_own = false) {
        char *longer = sqlite3_mprintf("%s_%d", name, column + 1);
        sqlite3_free(name);
        name = longer;
    }
    return name;
}

static int database_prepare_insert(struct result_database *result, int columns)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, "INSERT INTO result VALUES(");
    for (int i = 0; i < columns; i++)
        sqlite3_str_appendall(text, i ? ", ?" : "?");
    sqlite3_str_appendall(text, ")");
    char *sql = sqlite3_str_finish(text);
    int status =
        sql ? sqlite3_prepare_v2(result->database, sql, -1, &result->insert, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return status;
}

int result_database_create(struct result_database *result, const char *columns, int count,
                           const char *path)
{
    *result = (struct result_database){.is_file = path != NULL};
    int status =
        sqlite3_open_v2(path ? path : ":memory:", &result->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    /* No journal: a file that is not complete is removed. Larger pages than usual are fewer ones to
     * write. */
    if (status == SQLITE_OK)
        status = database_execute(
            result->database,
            sqlite3_mprintf("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; "
                            "PRAGMA synchronous = OFF; PRAGMA user_version = %d; "
                            "CREATE TABLE uncertain(reason TEXT); CREATE TABLE result(%s); BEGIN",
                            QUERY_SCHEMA_VERSION, columns));
    return status == SQLITE_OK ? database_prepare_insert(result, count) : status;
}

int result_database_begin(struct result_database *result, sqlite3_stmt *query, const char *path)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    int count = sqlite3_column_count(query);
    *result = (struct result_database){.is_file = path != NULL};
    for (int i = 0; i < count; i++) {
        const char *type = sqlite3_column_decltype(query, i);
        char *name = database_name(query, i);
        sqlite3_str_appendf(text, "%s\"%w\" %s", i ? ", " : "", name ? name : "", type ? type : "");
        sqlite3_free(name);
    }
    char *columns = sqlite3_str_finish(text);
    int status = columns ? result_database_create(result, columns, count, path) : SQLITE_NOMEM;
    result->query = query;
    sqlite3_free(columns);
    return status;
}

/* A text is valid until the query's next row, and need not be copied. */
static int database_bind(struct result_database *result, int column)
{
    sqlite3_value *value = sqlite3_column_value(result->query, column);
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return sqlite3_bind_value(result->insert, column + 1, value);
    const char *text = (const char *)sqlite3_value_text(value);
    return sqlite3_bind_text(result->insert, column + 1, text, sqlite3_value_bytes(value),
                             SQLITE_STATIC);
}

int result_database_add(struct result_database *result)
{
    int status = SQLITE_OK;
    for (int i = 0; i < sqlite3_column_count(result->query) && status == SQLITE_OK; i++)
        status = database_bind(result, i);
    if (status == SQLITE_OK)
        sqlite3_step(result->insert);
    return status == SQLITE_OK ? sqlite3_reset(result->insert) : status;
}

static int database_add_reasons(struct result_database *result, const struct certainty *certainty)
{
    int status = SQLITE_OK;
    for (size_t i = 0; i < certainty->count && status == SQLITE_OK; i++)
        status =
            database_execute(result->database, sqlite3_mprintf("INSERT INTO uncertain VALUES(%Q)",
                                                               certainty->reasons[i]));
    return status;
}

int result_database_write(struct result_database *result, struct report *report)
{
    int status = database_add_reasons(result, &report->certainty);
    if (status == SQLITE_OK)
        status = sqlite3_exec(result->database, "COMMIT", NULL, NULL, NULL);
    if (status != SQLITE_OK || result->is_file)
        return status;
    sqlite3_int64 size = 0;
    unsigned char *bytes = sqlite3_serialize(result->database, "main", &size, 0);
    if (!bytes)
        return SQLITE_NOMEM;
    report->output->width = 0;
    out_write(report->output, (const char *)bytes, (size_t)size);
    sqlite3_free(bytes);
    return SQLITE_OK;
}

void result_database_free(struct result_database *result)
{
    sqlite3_finalize(result->insert);
    sqlite3_close(result->database);
}

/* The events of a trace as a database, without a query: about as fast as SQLite inserts rows. */

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

static void database_put_text(sqlite3_stmt *insert, enum event_column column, const char *text)
{
    sqlite3_bind_text(insert, column + 1, text, -1, SQLITE_STATIC);
}

static void database_put_bits(sqlite3_stmt *insert, enum event_column column, bool has,
                              uint64_t value)
{
    if (has)
        sqlite3_bind_int64(insert, column + 1, (sqlite3_int64)value);
    else
        sqlite3_bind_null(insert, column + 1);
}

static void database_put_number(sqlite3_stmt *insert, enum event_column column, bool has,
                                uint64_t value)
{
    if (has && value > INT64_MAX)
        sqlite3_bind_double(insert, column + 1, (double)value);
    else
        database_put_bits(insert, column, has, value);
}

/* The text must outlive the insertion. */
static void database_put_position(sqlite3_stmt *insert, enum event_column column,
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
    database_put_number(insert, EVENTS_NUMBER, true, event->number);
    database_put_position(insert, EVENTS_POSITION, position, ttd_event_position(event));
    database_put_text(insert, EVENTS_ACTION, ttd_action_name((enum ttd_action)event->action));
    database_put_text(insert, EVENTS_API, ttd_api_name(event->api));
    database_put_bits(insert, EVENTS_HEAP, true, definitions_heap_handle(definitions, event->heap));
    database_put_number(insert, EVENTS_HEAP_ID, true, event->heap);
    database_put_bits(insert, EVENTS_ADDRESS, event_has_address(event), event->address);
    database_put_bits(insert, EVENTS_PREVIOUS_ADDRESS, event_has_previous_address(event),
                      event->previous_address);
    database_put_bits(insert, EVENTS_BASE_ADDRESS, event_has_base_address(event),
                      event->base_address);
    database_put_number(insert, EVENTS_SIZE, event_has_size(event), event->size);
    database_put_bits(insert, EVENTS_FLAGS, true, event->flags);
    database_put_number(insert, EVENTS_RESULT, true, event->result);
    database_put_position(insert, EVENTS_TIME_START, start, event->time_start);
    database_put_position(insert, EVENTS_TIME_END, end, event->time_end);
    database_put_number(insert, EVENTS_WALL_TIME, has_time, event->wall_time);
    database_put_number(insert, EVENTS_THREAD, true, event->thread);
    database_put_number(insert, EVENTS_STACK_ID, true, event->stack);
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
