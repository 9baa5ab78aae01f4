/* SPDX-License-Identifier: MIT */
/** Records of tables of `query` that no command of the program prints. */
#ifndef ANALYZER_COMMANDS_QUERY_REFS_H
#define ANALYZER_COMMANDS_QUERY_REFS_H

#include "cli/options/command.h"

/** Lists every pointer of a snapshot, in an array of the name `refs`. */
extern const struct command command_query_refs;

/** Lists the peak as `peak` finds it, alone in an array of the name `peaks`. */
extern const struct command command_query_peak;

#endif
