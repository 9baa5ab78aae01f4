/* SPDX-License-Identifier: MIT */
/** Writing the rows of a query: as a table of text, as JSON, as lines of JSON, as CSV, and as a
 * database of SQLite. */
#ifndef ANALYZER_QUERY_RESULT_ROWS_H
#define ANALYZER_QUERY_RESULT_ROWS_H

#include <sqlite3.h>

#include "report/sections/report.h"

/** Columns of a query at most. */
#define RESULT_COLUMNS_MAX 200

/** Columns of a text are not narrowed below this. */
#define RESULT_WIDTH_MIN 12

/** Rows of text that are kept to find the widths of columns. */
#define RESULT_ROWS_KEPT 100

/** Rows of text in memory: `count` values for each column, each of them text to be freed. */
struct result_text {
    char **cells;
    size_t rows;
    size_t widths[RESULT_COLUMNS_MAX];
    bool is_number[RESULT_COLUMNS_MAX];
    /** The first rows were written; the widths stay. */
    bool is_begun;
};

struct result_rows {
    struct report *report;
    sqlite3_stmt *statement;
    /** Each row is a line of JSON, and there is nothing else. */
    bool is_lines;
    int columns;
    /** By column: its numbers are addresses. */
    bool has_addresses[RESULT_COLUMNS_MAX];
    /** JSON: by column, the text before its values; owned. */
    struct ttd_string keys[RESULT_COLUMNS_MAX];
    uint64_t rows;
    struct result_text text;
};

/** Whether the name of a file, or NULL, has one of some ends (a list that ends with NULL). */
bool result_ends_with(const char *path, const char *const *ends);

/** Whether the name of a file, or NULL, is of one for lines of JSON. */
bool result_rows_are_lines(const char *path);

/** Begins the output. False without memory. */
bool result_rows_begin(struct result_rows *result, struct report *report, bool is_lines,
                       sqlite3_stmt *statement);

/** Writes the row that the statement has. False without memory. */
bool result_rows_add(struct result_rows *result);

/** Ends the output, after the certainty of the report was judged; releases everything. */
void result_rows_end(struct result_rows *result, bool is_complete);

/*
 * A database of SQLite. It has the table `result` with the columns of the query, and the table
 * `uncertain` with the reasons why they may be wrong, empty if they are certain. Rows are written
 * to the temporary file of the output as they come; an output that has none, such as a pipe, gets a
 * database that was made in memory.
 */

struct result_database {
    sqlite3 *database;
    sqlite3_stmt *insert;
    sqlite3_stmt *query;
    bool is_file;
};

/** Whether a file is to be a database, by the end of its name; false for NULL. */
bool result_database_is_named(const char *path);

/** Begins a database, in an empty file, or with NULL in memory. `columns` is the text between the
 * brackets of CREATE TABLE, of so many columns. Returns a status of SQLite. */
int result_database_create(struct result_database *result, const char *columns, int count,
                           const char *path);

/** Begins a database for the rows of a query, in an empty file, or with NULL in memory. Returns a
 * status of SQLite. */
int result_database_begin(struct result_database *result, sqlite3_stmt *query, const char *path);

/** Adds the row that the query has. Returns a status of SQLite. */
int result_database_add(struct result_database *result);

/** Ends the database, and writes one in memory to the output. Returns a status of SQLite. */
int result_database_write(struct result_database *result, struct report *report);

/** Releases everything. */
void result_database_free(struct result_database *result);

#endif
