/* SPDX-License-Identifier: MIT */
#include "query/query.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/traces/source.h"
#include "query/query_names.h"
#include "query/result_rows.h"
#include "query/tables.h"
#include "report/sections/sections.h"

/* The temporary files of SQLite, in which a query sorts rows that memory has no room for. They have
 * no name by the time they are written to, and limits_files() limits the bytes of all of them. The
 * functions for files are the system's own, but for one, which counts. */

/* Global, because SQLite's file systems are the process's, and a file has no place for more. */
static sqlite3_vfs *files_system;
static sqlite3_vfs files_counted = {.zName = NULL};
static const sqlite3_io_methods *files_methods;
static sqlite3_io_methods files_counted_methods;
static uint64_t files_room;
/* The limit was reached. */
static bool files_are_full;

static int query_files_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    files_are_full |= (uint64_t)size > files_room;
    if (files_are_full)
        return SQLITE_FULL;
    files_room -= (uint64_t)size;
    return files_methods->xWrite(file, data, size, offset);
}

/* All temporary files have the same methods, as none of them is locked. */
static int query_files_open(sqlite3_vfs *system, const char *name, sqlite3_file *file, int flags,
                            int *opened)
{
    (void)system;
    int status = files_system->xOpen(files_system, name, file, flags, opened);
    if (status != SQLITE_OK || !(flags & SQLITE_OPEN_DELETEONCLOSE))
        return status;
    if (!files_methods) {
        files_methods = file->pMethods;
        files_counted_methods = *files_methods;
        files_counted_methods.xWrite = query_files_write;
    }
    if (file->pMethods == files_methods)
        file->pMethods = &files_counted_methods;
    return status;
}

/* Begins to count what is written. Returns the name of the file system to open a database with;
 * NULL without memory. */
static const char *query_files_begin(void)
{
    files_room = limits_files();
    files_are_full = false;
    if (files_system)
        return files_counted.zName;
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (!system)
        return NULL;
    files_counted = *system;
    files_counted.pNext = NULL;
    files_counted.zName = "ttdanalyze";
    files_counted.xOpen = query_files_open;
    if (sqlite3_vfs_register(&files_counted, 0) != SQLITE_OK)
        return NULL;
    files_system = system;
    return files_counted.zName;
}

/* Limits on the demands of a query: it may come from somebody else than its user. */
static const struct {
    int limit;
    int value;
} query_limits[] = {{SQLITE_LIMIT_SQL_LENGTH, 100000},
                    {SQLITE_LIMIT_LENGTH, 100000000},
                    {SQLITE_LIMIT_COLUMN, RESULT_COLUMNS_MAX},
                    {SQLITE_LIMIT_EXPR_DEPTH, 100},
                    {SQLITE_LIMIT_COMPOUND_SELECT, 20},
                    {SQLITE_LIMIT_VDBE_OP, 100000},
                    {SQLITE_LIMIT_FUNCTION_ARG, 8},
                    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
                    {SQLITE_LIMIT_ATTACHED, 0},
                    {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
                    {SQLITE_LIMIT_WORKER_THREADS, 0}};

#define QUERY_LATE "query: the time of --timeout is over; no more rows are listed"

/* ---- Several traces ----
 *
 * Each is a schema of its own, as in `a.events` and `b.events`, named like its file; the tables
 * without a schema have the records of all, with the column `trace`. */

/* Whether a schema cannot have a name, because SQLite or another trace has it. */
static bool query_traces_have_name(const struct query *first, const char *name)
{
    if (sqlite3_stricmp(name, "main") == 0 || sqlite3_stricmp(name, "temp") == 0)
        return true;
    for (const struct query *query = first; query && query->name; query = query->next) {
        if (sqlite3_stricmp(query->name, name) == 0)
            return true;
    }
    return false;
}

/* Names a trace like its file, without the folder and an extension that is no number: recordings of
 * several processes have these. A name that there is already gets a number. */
static char *query_traces_name(const struct query *first, const char *path)
{
    const char *base = input_name(path);
    const char *end = strrchr(base, '.');
    bool has_extension = end && end != base && !(end[1] >= '0' && end[1] <= '9');
    int size = has_extension ? (int)(end - base) : (int)strlen(base);
    char *name = sqlite3_mprintf("%.*s", size, base);
    for (int number = 2; name && query_traces_have_name(first, name); number++) {
        sqlite3_free(name);
        name = sqlite3_mprintf("%.*s_%d", size, base, number);
    }
    return name;
}

/* Opens a trace and puts its query behind the last one. */
static int query_traces_open_next(struct query *first, const char *path)
{
    struct query *last = first;
    while (last->next)
        last = last->next;
    struct query *query = calloc(1, sizeof *query);
    struct session *session = malloc(sizeof *session);
    char *name = query_traces_name(first, path);
    int status =
        query && session && name ? STATUS_OK : message_status("query", TTD_ERROR_NO_MEMORY);
    struct common_options options = first->session->options;
    options.trace = path;
    if (status == STATUS_OK)
        status = session_open(session, &options);
    if (status != STATUS_OK) {
        sqlite3_free(name);
        free(session);
        free(query);
        return status;
    }
    session->has_reasons = true;
    *query = (struct query){.session = session, .name = name, .certainty = first->certainty};
    last->next = query;
    return STATUS_OK;
}

/* Opens the traces behind the first one. Returns an exit status; on failure a message was printed.
 */
static int query_traces_open(struct query *first, const struct query_options *options)
{
    const struct common_options *common = &first->session->options;
    int status = STATUS_OK;
    if (!options->trace_count)
        return STATUS_OK;
    first->name = query_traces_name(first, common->trace);
    if (!first->name)
        return message_status("query", TTD_ERROR_NO_MEMORY);
    for (size_t i = 0; i < options->trace_count && status == STATUS_OK; i++) {
        status = output_spare(common->output, options->traces[i]);
        if (status == STATUS_OK)
            status = query_traces_open_next(first, options->traces[i]);
    }
    return status;
}

static int query_traces_execute(sqlite3 *database, char *sql)
{
    int status = sql ? sqlite3_exec(database, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return status;
}

/* Makes the view of a table of all traces. */
static int query_traces_add_view(sqlite3 *database, const struct query *first, const char *table)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "CREATE TEMP VIEW \"%w\" AS ", table);
    for (const struct query *query = first; query; query = query->next)
        sqlite3_str_appendf(text, "%sSELECT %Q AS trace, * FROM \"%w\".\"%w\"",
                            query == first ? "" : " UNION ALL ", query->name, query->name, table);
    return query_traces_execute(database, sqlite3_str_finish(text));
}

/* Adds the schemas and tables of all traces. Returns a status of SQLite. */
static int query_traces_add(sqlite3 *database, struct query *first,
                            const struct query_table *tables)
{
    int status = SQLITE_OK;
    for (struct query *query = first; query && status == SQLITE_OK; query = query->next) {
        status = query_traces_execute(database,
                                      sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"", query->name));
        if (status == SQLITE_OK)
            status = query_tables_add(database, query, tables);
    }
    for (size_t i = 0; tables[i].name && status == SQLITE_OK; i++)
        status = query_traces_add_view(database, first, tables[i].name);
    return status;
}

/* Closes the traces behind the first one; the database must be closed before. */
static void query_traces_close(struct query *first)
{
    while (first->next) {
        struct query *query = first->next;
        first->next = query->next;
        query_results_free(query);
        query_names_free(query);
        session_close(query->session, STATUS_OK, false);
        sqlite3_free(query->name);
        free(query->session);
        free(query);
    }
    sqlite3_free(first->name);
}

/* ---- A query ---- */

/* A query reads; it changes nothing and opens nothing. */
static int query_authorize(void *context, int action, const char *one, const char *other,
                           const char *database, const char *trigger)
{
    (void)context;
    (void)one;
    (void)database;
    (void)trigger;
    /* It would load code into this process. */
    if (action == SQLITE_FUNCTION && sqlite3_stricmp(other, "load_extension") == 0)
        return SQLITE_DENY;
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
                   action == SQLITE_RECURSIVE
               ? SQLITE_OK
               : SQLITE_DENY;
}

static void query_interrupt(void *database)
{
    sqlite3_interrupt(database);
}

/* A position in percent of an incomplete trace is one of the part that can be read. */
static void query_add_part(struct query *query)
{
    struct certainty certainty = {.count = 0};
    char reason[CERTAINTY_REASON_SIZE];
    uint64_t events = query->session->source.part_of;
    if (!events)
        return;
    snprintf(reason, sizeof reason,
             "the trace is not complete: a position in %% is a part of the %" PRIu64
             " events that can be read",
             events);
    certainty_add_reason(&certainty, reason);
    query_add_reasons(query, &certainty);
}

/* pos('50%'): a position in any of its forms, as the tables have it, to be compared with theirs. */
static void query_position(sqlite3_context *answer, int count, sqlite3_value **values)
{
    struct query *query =
        count == 2 ? query_of_arguments(answer, &values) : sqlite3_user_data(answer);
    if (!query)
        return;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    struct position_spec spec;
    char fixed[QUERY_POSITION_SIZE];
    if (!text || !position_spec_parse(text, &spec)) {
        sqlite3_result_error(answer, "pos() needs a position such as 'FAB:17B1' or '50%'", -1);
        return;
    }
    if (query->name && count == 1 && spec.kind != POSITION_SPEC_POSITION) {
        sqlite3_result_error(answer, "of several traces: pos('TRACE', '50%')", -1);
        return;
    }
    struct ttd_position position;
    int status =
        position_spec_resolve(&spec, POSITION_FOR_ORDER, &query->session->source, &position);
    bool is_constant = spec.kind == POSITION_SPEC_POSITION || spec.kind == POSITION_SPEC_START ||
                       spec.kind == POSITION_SPEC_END;
    if (status == STATUS_OK && !is_constant)
        status = query_judge(query);
    if (status != STATUS_OK) {
        sqlite3_result_error(answer, "the position is not known", -1);
        query_failed(query, status);
        return;
    }
    query_add_part(query);
    query_position_text(fixed, position);
    sqlite3_result_text(answer, fixed, -1, SQLITE_TRANSIENT);
}

static int query_prepare_database(sqlite3 *database, struct query *query,
                                  const struct query_table *tables)
{
    int status = sqlite3_exec(database, "PRAGMA temp_store = FILE", NULL, NULL, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_create_function(database, "pos", 1,
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                         query, query_position, NULL, NULL);
    if (status == SQLITE_OK && query->name)
        status = sqlite3_create_function(database, "pos", 2,
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                         query, query_position, NULL, NULL);
    if (status == SQLITE_OK)
        status = query_names_add_functions(database, query);
    if (status == SQLITE_OK)
        status = query->name ? query_traces_add(database, query, tables)
                             : query_tables_add(database, query, tables);
    for (size_t i = 0; i < sizeof query_limits / sizeof query_limits[0]; i++)
        sqlite3_limit(database, query_limits[i].limit, query_limits[i].value);
    if (status == SQLITE_OK)
        status = sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_set_authorizer(database, query_authorize, NULL);
    return status;
}

/* Reports the failure of SQLite, unless a command has reported its own. Returns an exit status. */
static int query_fail(const struct query *query, sqlite3 *database, int status)
{
    if (interrupt_cause() != INTERRUPT_NONE) {
        message("%s", interrupt_cause() == INTERRUPT_USER ? "query: interrupted" : QUERY_LATE);
        return STATUS_INTERNAL;
    }
    for (const struct query *one = query; one; one = one->next) {
        if (one->status != STATUS_OK)
            return one->status;
    }
    if (status == SQLITE_NOMEM)
        return message_status("query", TTD_ERROR_NO_MEMORY);
    if (files_are_full)
        return message_files("query");
    message("query: %s", sqlite3_errmsg(database));
    if (query->is_typed)
        return STATUS_USAGE;
    return status == SQLITE_ERROR || status == SQLITE_AUTH ? message_help("query")
                                                           : STATUS_INTERNAL;
}

/* Writes all rows of a statement. Returns an exit status. */
static int query_write(struct query *query, sqlite3 *database, sqlite3_stmt *statement)
{
    struct session *session = query->session;
    int exit_status = session_output(session, true);
    if (exit_status != STATUS_OK)
        return exit_status;
    interrupt_output(&session->output);
    session->output.text.room = UINT64_MAX;
    bool is_lines =
        session->options.form != REPORT_CSV && result_rows_are_lines(session->options.output);
    /* A line of another shape would be no row. */
    session->has_reasons &= !is_lines;
    /* A query that fails at once writes nothing. */
    struct result_rows result;
    int status = sqlite3_step(statement);
    if (status != SQLITE_ROW && status != SQLITE_DONE)
        return query_fail(query, database, status);
    if (!result_rows_begin(&result, &session->report, is_lines, statement))
        status = SQLITE_NOMEM;
    while (status == SQLITE_ROW && !session->output.text.error)
        status = result_rows_add(&result) ? sqlite3_step(statement) : SQLITE_NOMEM;
    bool is_complete = status == SQLITE_DONE || status == SQLITE_ROW;
    result_rows_end(&result, is_complete);
    return is_complete ? STATUS_OK : query_fail(query, database, status);
}

/* Writes all rows as a database. Returns an exit status. */
static int query_write_database(struct query *query, sqlite3 *database, sqlite3_stmt *statement)
{
    struct session *session = query->session;
    int exit_status = session_output(session, false);
    if (exit_status != STATUS_OK)
        return exit_status;
    interrupt_output(&session->output);
    session->has_reasons = false;
    struct result_database result;
    int status = result_database_begin(&result, statement, session->output.temporary);
    int step = SQLITE_ROW;
    while (status == SQLITE_OK && (step = sqlite3_step(statement)) == SQLITE_ROW)
        status = result_database_add(&result);
    if (status == SQLITE_OK && step == SQLITE_DONE)
        status = result_database_write(&result, &session->report);
    result_database_free(&result);
    if (status == SQLITE_OK || status == SQLITE_NOMEM)
        return status == SQLITE_OK && step == SQLITE_DONE
                   ? STATUS_OK
                   : query_fail(query, database, status == SQLITE_OK ? step : status);
    message("query: %s: %s", session->options.output, sqlite3_errstr(status));
    return STATUS_INTERNAL;
}

static int query_refuse(const struct query *query, const char *reason)
{
    message("query: %s", reason);
    return query->is_typed ? STATUS_USAGE : message_help("query");
}

static int query_execute(struct query *query, sqlite3 *database, const char *sql)
{
    const struct common_options *options = &query->session->options;
    bool is_database = options->form == REPORT_TEXT && result_database_is_named(options->output);
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    int status = sqlite3_prepare_v2(database, sql, -1, &statement, &rest);
    int exit_status = STATUS_OK;
    if (status != SQLITE_OK)
        exit_status = query_fail(query, database, status);
    else if (sqlite3_stmt_isexplain(statement) == 1)
        exit_status = query_refuse(query, "EXPLAIN is refused; EXPLAIN QUERY PLAN is not");
    else if (!statement || rest[strspn(rest, " \t\r\n;")])
        exit_status = query_refuse(query, "one SELECT at a time");
    else if (is_database)
        exit_status = query_write_database(query, database, statement);
    else
        exit_status = query_write(query, database, statement);
    sqlite3_finalize(statement);
    return exit_status;
}

/* Writes the schema. Returns an exit status. */
static int query_write_schema(struct text_output *output, const struct query_table *tables)
{
    out_format(output, "-- schema %d\n", QUERY_SCHEMA_VERSION);
    for (size_t i = 0; tables[i].name; i++) {
        char *schema = query_table_schema(&tables[i], tables[i].name);
        if (!schema)
            return message_status("query", TTD_ERROR_NO_MEMORY);
        out_format(output, "-- %s\n", tables[i].summary);
        out_text(output, schema);
        out_text(output, ";\n");
        sqlite3_free(schema);
    }
    return STATUS_OK;
}

int query_print_schema(const struct common_options *options, const struct query_table *tables)
{
    struct output_file output;
    if (options->form != REPORT_TEXT || result_database_is_named(options->output) ||
        result_rows_are_lines(options->output))
        return message_usage("query", ".schema is text");
    int status = output_open(&output, options->output, "", options->has_pager);
    if (status != STATUS_OK)
        return status;
    status = query_write_schema(&output.text, tables);
    return output_close(&output, status, status == STATUS_OK);
}

/* Reports the work on the tables of events. */
static void query_print_work(const struct query *query)
{
    struct query_work all = {0, 0, 0};
    for (; query; query = query->next) {
        all.readings += query->work.readings;
        all.events += query->work.events;
        all.rows += query->work.rows;
    }
    message("query: events: %" PRIu64 " readings, %" PRIu64 " events decoded, %" PRIu64
            " passed to SQLite",
            all.readings, all.events, all.rows);
}

/* The queries of one run of the program. */
struct query_run {
    struct query *query;
    sqlite3 *database;
    const struct query_options *options;
    const struct query_table *tables;
};

/* Executes a query, until its deadline. Returns an exit status. */
static int query_execute_timed(const struct query_run *run, const char *sql)
{
    interrupt_begin(&(struct interrupt_work){.seconds = run->options->timeout,
                                             .is_for_user = run->query->is_typed,
                                             .message = "ttdanalyze: " QUERY_LATE "\n",
                                             .notify = query_interrupt,
                                             .context = run->database});
    if (run->options->missing)
        certainty_add_reason(run->query->certainty, run->options->missing);
    int exit_status = query_execute(run->query, run->database, sql);
    interrupt_end();
    return exit_status;
}

/* Answers a query that was typed, from the traces as they are now: nothing is kept of the one
 * before, neither records nor reasons for uncertainty. */
static void query_answer_typed(void *context, const char *sql)
{
    const struct query_run *run = context;
    struct text_output *output = &run->query->session->output.text;
    run->query->certainty->count = 0;
    if (strcmp(sql, ".schema") == 0)
        query_write_schema(output, run->tables);
    else
        query_execute_timed(run, sql);
    for (struct query *query = run->query; query; query = query->next) {
        query_results_free(query);
        query_names_free(query);
        query->session->source.part_of = 0;
        query->is_judged = false;
        query->status = STATUS_OK;
    }
    out_flush(output);
}

/* Executes the query in a database of its own, or those that are typed. Returns an exit status. */
static int query_run_traces(struct query *query, const struct query_options *options,
                            const struct query_table *tables)
{
    sqlite3 *database = NULL;
    const char *files = query_files_begin();
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    int status = files ? sqlite3_open_v2(":memory:", &database, flags, files) : SQLITE_NOMEM;
    if (status == SQLITE_OK)
        status = query_prepare_database(database, query, tables);
    struct query_run run = {query, database, options, tables};
    int exit_status = status != SQLITE_OK ? query_fail(query, database, status)
                      : query->is_typed   ? session_output(query->session, false)
                                          : query_execute_timed(&run, options->sql);
    if (status == SQLITE_OK && query->is_typed && exit_status == STATUS_OK)
        exit_status = interactive_read(query_answer_typed, &run);
    sqlite3_close(database);
    return exit_status;
}

int query_run(struct session *session, const struct query_options *options,
              const struct query_table *tables)
{
    struct query query = {.session = session,
                          .certainty = &session->report.certainty,
                          .is_typed = options->is_interactive,
                          .status = STATUS_OK};
    int status = query_traces_open(&query, options);
    if (status == STATUS_OK)
        status = query_run_traces(&query, options, tables);
    if (options->has_work && status == STATUS_OK)
        query_print_work(&query);
    query_results_free(&query);
    query_names_free(&query);
    query_traces_close(&query);
    return status;
}
