/* SPDX-License-Identifier: MIT */
/**
 * A query of several traces: each is a schema of its own, as in `a.events` and `b.events`, named
 * like its file; the tables without a schema have the records of all, with the column `trace`.
 */
#ifndef ANALYZER_QUERY_QUERY_TRACES_H
#define ANALYZER_QUERY_QUERY_TRACES_H

#include "query/tables.h"

/**
 * Opens the traces behind the first one.
 *
 * @param first  the query of the first trace, which gets the others behind it, and a name
 * @return an exit status; on failure a message was printed
 */
int query_traces_open(struct query *first, const struct query_options *options);

/** Adds the schemas and tables of all traces. Returns a status of SQLite. */
int query_traces_add(sqlite3 *database, struct query *first, const struct query_table *tables);

/** Closes the traces behind the first one; the database must be closed before. */
void query_traces_close(struct query *first);

#endif
