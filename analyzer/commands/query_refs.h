/* SPDX-License-Identifier: MIT */
/** The pointers of a snapshot as the records of a table of `query`. */
#ifndef ANALYZER_COMMANDS_QUERY_REFS_H
#define ANALYZER_COMMANDS_QUERY_REFS_H

#include "cli/options/command.h"

/** Not one of the program's commands: it lists every pointer, in an array of the name `refs`. */
extern const struct command command_query_refs;

#endif
