/* SPDX-License-Identifier: MIT */
/** Queries that are typed one after the other. */
#ifndef ANALYZER_QUERY_INTERACTIVE_H
#define ANALYZER_QUERY_INTERACTIVE_H

#include "query/query.h"

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
