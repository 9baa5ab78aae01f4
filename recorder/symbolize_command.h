/* SPDX-License-Identifier: MIT */
/* Adds names to a trace that was recorded before: `ttdrecord symbolize TRACE`. */
#ifndef RECORDER_SYMBOLIZE_COMMAND_H
#define RECORDER_SYMBOLIZE_COMMAND_H

#include <stdbool.h>

/* Whether the arguments of ttdrecord are this command. */
bool symbolize_is_command(int argc, char **argv);

/* Adds the names, and prints how many. Returns an exit status. */
int symbolize_command(int argc, char **argv);

#endif
