/* SPDX-License-Identifier: MIT */
/** The temporary files of SQLite, in which a query sorts rows that memory has no room for. They
 * have no name by the time they are written to, and limits_files() limits the bytes of all of them.
 */
#ifndef ANALYZER_QUERY_QUERY_FILES_H
#define ANALYZER_QUERY_QUERY_FILES_H

#include <stdbool.h>

/** Begins to count what is written. Returns the name of the file system to open a database with;
 * NULL without memory. */
const char *query_files_begin(void);

/** Whether the limit was reached. */
bool query_files_are_full(void);

#endif
