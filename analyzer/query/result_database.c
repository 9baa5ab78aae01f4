/* SPDX-License-Identifier: MIT */
#include "query/result_rows.h"

#include <string.h>

#include "query/query.h"
#include "report/writers/out.h"

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
