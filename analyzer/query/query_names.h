/* SPDX-License-Identifier: MIT */
/** The stacks of a query's trace with their names: two tables, and functions for stack_id. */
#ifndef ANALYZER_QUERY_QUERY_NAMES_H
#define ANALYZER_QUERY_QUERY_NAMES_H

#include "query/tables.h"

/** Patterns of stack_has() whose answers are kept. */
#define QUERY_PATTERNS_MAX 16

/** A pattern, and which stacks match it. */
struct query_pattern {
    char *text;
    struct view view;
};

struct query_names {
    /** A session of its own, whose definitions are read. */
    struct session session;
    struct query_pattern patterns[QUERY_PATTERNS_MAX];
    size_t pattern_count;
    /** The next pattern that is replaced. */
    size_t oldest;
    /** The column that row_stack() has passed to the sink. */
    struct row_sink sink;
    sqlite3_context *answer;
};

/** Reads the names, once. NULL on failure, which was noted with query_failed(). */
struct query_names *query_names(struct query *query);

/** Adds the reasons for which a position that was found in the trace may be wrong, once. Returns an
 * exit status. */
int query_judge(struct query *query);

/** Releases the names. */
void query_names_free(struct query *query);

/** Reports a failure of work on stacks. Returns a status of SQLite; SQLITE_OK for TTD_OK. */
int query_names_check(struct query *query, enum ttd_status status);

/** Adds folded(), site() and stack_has(). Returns a status of SQLite. */
int query_names_add_functions(sqlite3 *database, struct query *query);

/** Answers the stack as the tables of commands have it: "malloc;f;main". */
void query_names_answer_stack(struct query *query, ttd_id stack, sqlite3_context *answer);

/** Answers the function of a stack's call site; null for a stack without frames. */
void query_names_answer_site(struct query *query, ttd_id stack, sqlite3_context *answer);

/** The modules of the tables of stacks and of frames. */
extern const sqlite3_module query_stacks_functions;
extern const sqlite3_module query_frames_functions;

#endif
