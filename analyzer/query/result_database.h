/* SPDX-License-Identifier: MIT */
/**
 * The rows of a query as a database of SQLite: the table `result` with the columns of the query,
 * and the table `uncertain` with the reasons why they may be wrong, empty if they are certain. Rows
 * are written to the temporary file of the output as they come; an output that has none, such as a
 * pipe, gets a database that was made in memory.
 */
#ifndef ANALYZER_QUERY_RESULT_DATABASE_H
#define ANALYZER_QUERY_RESULT_DATABASE_H

#include <sqlite3.h>

#include "report/sections/report.h"

struct result_database {
    sqlite3 *database;
    sqlite3_stmt *insert;
    sqlite3_stmt *query;
    bool is_file;
};

/** Whether a file is to be a database, by the end of its name; false for NULL. */
bool result_database_is_named(const char *path);

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
