/* SPDX-License-Identifier: MIT */
/** The tables of a query as SQLite sees them. */
#ifndef ANALYZER_QUERY_TABLES_H
#define ANALYZER_QUERY_TABLES_H

#include <sqlite3.h>

#include "query/query.h"

/** The records of a table for some parameters, kept until the query ends. */
struct query_result {
    struct query_result *next;
    const struct query_table *table;
    /** The parameters, NULL for those that are not given. */
    char *parameters[QUERY_PARAMETERS_MAX];
    struct query_records records;
};

/** Work on the table of events: how often it was read, the events that were decoded for it, and the
 * rows that SQLite got of them. */
struct query_work {
    uint64_t readings;
    uint64_t events;
    uint64_t rows;
};

/** A query: its trace, the results so far, and their certainty. */
struct query {
    struct session *session;
    /** The certainty of the answer; each table adds its reasons. */
    struct certainty *certainty;
    /** The schema of the trace, and the query of the next one: NULL if there is one trace only. */
    char *name;
    struct query *next;
    struct query_result *results;
    /** It is one of several that are typed: a failure is no reason to read about options. */
    bool is_typed;
    /** The exit status of the first command that failed, after its message. */
    int status;
    struct query_work work;
    /** query_judge() has added its reasons. */
    bool is_judged;
    /** The names of stacks, once they are asked for: see query_names(). */
    struct query_names *names;
};

/** Makes the tables known to a database, which must be closed before the query ends. Returns a
 * status of SQLite. */
int query_tables_add(sqlite3 *database, struct query *query, const struct query_table *tables);

/** Opens a session of its own for a part of the query. Returns an exit status; on failure nothing
 * is open. */
int query_open_session(const struct query *query, struct session *session,
                       const struct command *command);

/** Frees the results. */
void query_results_free(struct query *query);

/** Adds the reasons why an answer may be wrong to those of the query, each once. */
void query_add_reasons(struct query *query, const struct certainty *certainty);

/** Returns the query of a function that is given to SQLite with the first query. If there are
 * several traces, `*values` names the trace, and goes on to the arguments behind it. NULL after an
 * error. */
struct query *query_of_arguments(sqlite3_context *answer, sqlite3_value ***values);

/** Notes the exit status of a failure that was reported. Returns a status of SQLite. */
int query_failed(struct query *query, int status);

/** The query of a table that query_table_connect() made. */
struct query *query_of_table(const sqlite3_vtab *table);

/** Functions of a module of SQLite: declare a table, and release it. */
int query_table_connect(sqlite3 *database, void *context, int count, const char *const *arguments,
                        sqlite3_vtab **result, char **error);
int query_table_disconnect(sqlite3_vtab *table);

/** The module of the table of events. */
extern const sqlite3_module query_events_functions;

/** Size of the text of a position in a table, with its terminator. */
#define QUERY_POSITION_SIZE 34

/** Writes a position with 16 digits for each number. */
void query_position_text(char text[QUERY_POSITION_SIZE], struct ttd_position position);

/** Reads such a text. False if it is none. */
bool query_position_parse(const char *text, struct ttd_position *position);

/** Writes the statement that declares a table; to be released with sqlite3_free(). NULL without
 * memory. */
char *query_table_schema(const struct query_table *table, const char *name);

#endif
