/* SPDX-License-Identifier: MIT */
/**
 * Queries in SQL over a trace. Each table is a command of the analyzer, and its records are the
 * rows: a table agrees with the command, and is as certain. SQLite runs the query, and reads the
 * tables as virtual ones; nothing is imported.
 */
#ifndef ANALYZER_QUERY_QUERY_H
#define ANALYZER_QUERY_QUERY_H

#include "cli/session/session.h"
#include "query/query_records.h"

/** The columns of the tables that are read as a query asks for them: of events (event_table.c), and
 * of stacks and their frames (query_names.c). */
extern const struct query_column query_events_columns[];
extern const struct query_column query_stacks_columns[];
extern const struct query_column query_frames_columns[];

/** Version of the tables: another name, type, meaning or order of a column is another version. */
#define QUERY_SCHEMA_VERSION 1

#define QUERY_PARAMETERS_MAX 2
#define QUERY_OPTIONS_MAX    3

/** Traces of a query at most: SQLite attaches so many schemas. */
#define QUERY_TRACES_MAX 10

/** A value that a query passes to a table, as in `leaks('50%')`: a hidden column, and the option of
 * the command that it stands for. */
struct query_parameter {
    const char *name;
    const char *option;
};

/** An option that a table always gives its command. */
struct query_option {
    const char *name;
    const char *value;
};

struct query_table {
    const char *name;
    /** One line for people. */
    const char *summary;
    /** NULL for stacks and frames. */
    const struct command *command;
    /** The list of the command's JSON whose records are the rows; NULL if it is a list itself. */
    const char *list;
    /** Ended by a column without a name. */
    const struct query_column *columns;
    struct query_parameter parameters[QUERY_PARAMETERS_MAX];
    struct query_option options[QUERY_OPTIONS_MAX];
};

struct query_options {
    /** NULL with `is_interactive`. */
    const char *sql;
    /** Queries are read from standard input. */
    bool is_interactive;
    /** Seconds until the query is ended; 0 for no limit. */
    uint64_t timeout;
    /** Also reports the work on the table of events. */
    bool has_work;
    /** Asks all traces of the recording. */
    bool is_group;
    /** The traces behind the session's. */
    const char *const *traces;
    size_t trace_count;
    /** A reason why traces of the group are missing; NULL for none. */
    const char *missing;
};

/**
 * Runs a query and writes its rows.
 *
 * @param session  of the trace, with the form and the output
 * @param tables   ended by a table without a name
 * @return an exit status; on failure a message was printed
 */
int query_run(struct session *session, const struct query_options *options,
              const struct query_table *tables);

/** Prints the schema of the tables, for which no trace is needed. Returns an exit status. */
int query_print_schema(const struct common_options *options, const struct query_table *tables);

/* The database that SELECT * FROM events makes, of events that the caller reads. */

struct event_database;

/** Begins the database in the session's output. The session must know the heaps. Returns NULL
 * without memory, or in a build without SQLite, after a message. */
struct event_database *event_database_begin(struct session *session);

/** Adds an event. Returns false after a failure, which event_database_end() reports. */
bool event_database_add(struct event_database *database, const struct ttd_event *event);

/** Writes the reasons for uncertainty, if all events were added, and releases the database. Returns
 * an exit status; on failure a message was printed. */
int event_database_end(struct event_database *database, bool is_complete);

/* Queries that are typed one after the other. */

/** Answers a statement, or writes the schema for ".schema". */
typedef void interactive_answer(void *context, const char *sql);

/**
 * Reads statements from standard input, from a terminal with a prompt and editing, and answers each
 * until the end of the input or `.quit`. A key interrupts a statement or drops the typed text.
 * Typed lines are kept in memory only.
 *
 * @return an exit status
 */
int interactive_read(interactive_answer *answer, void *context);

#endif
