/* SPDX-License-Identifier: MIT */
#include "query/query_traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process/message.h"
#include "query/query_names.h"

/* Whether a schema cannot have a name, because SQLite or another trace has it. */
static bool traces_have_name(const struct query *first, const char *name)
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
static char *traces_name(const struct query *first, const char *path)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const char *end = strrchr(base, '.');
    bool has_extension = end && end != base && !(end[1] >= '0' && end[1] <= '9');
    int size = has_extension ? (int)(end - base) : (int)strlen(base);
    char *name = sqlite3_mprintf("%.*s", size, base);
    for (int number = 2; name && traces_have_name(first, name); number++) {
        sqlite3_free(name);
        name = sqlite3_mprintf("%.*s_%d", size, base, number);
    }
    return name;
}

/* Opens a trace and puts its query behind the last one. */
static int traces_open_next(struct query *first, const char *path)
{
    struct query *last = first;
    while (last->next)
        last = last->next;
    struct query *query = calloc(1, sizeof *query);
    struct session *session = malloc(sizeof *session);
    char *name = traces_name(first, path);
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

int query_traces_open(struct query *first, const struct query_options *options)
{
    const struct common_options *common = &first->session->options;
    int status = STATUS_OK;
    if (!options->trace_count)
        return STATUS_OK;
    first->name = traces_name(first, common->trace);
    if (!first->name)
        return message_status("query", TTD_ERROR_NO_MEMORY);
    for (size_t i = 0; i < options->trace_count && status == STATUS_OK; i++) {
        status = output_spare(common->output, options->traces[i]);
        if (status == STATUS_OK)
            status = traces_open_next(first, options->traces[i]);
    }
    return status;
}

static int traces_execute(sqlite3 *database, char *sql)
{
    int status = sql ? sqlite3_exec(database, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return status;
}

/* Makes the view of a table of all traces. */
static int traces_add_view(sqlite3 *database, const struct query *first, const char *table)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "CREATE TEMP VIEW \"%w\" AS ", table);
    for (const struct query *query = first; query; query = query->next)
        sqlite3_str_appendf(text, "%sSELECT %Q AS trace, * FROM \"%w\".\"%w\"",
                            query == first ? "" : " UNION ALL ", query->name, query->name, table);
    return traces_execute(database, sqlite3_str_finish(text));
}

int query_traces_add(sqlite3 *database, struct query *first, const struct query_table *tables)
{
    int status = SQLITE_OK;
    for (struct query *query = first; query && status == SQLITE_OK; query = query->next) {
        status =
            traces_execute(database, sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"", query->name));
        if (status == SQLITE_OK)
            status = query_tables_add(database, query, tables);
    }
    for (size_t i = 0; tables[i].name && status == SQLITE_OK; i++)
        status = traces_add_view(database, first, tables[i].name);
    return status;
}

void query_traces_close(struct query *first)
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
