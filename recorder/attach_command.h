/* SPDX-License-Identifier: MIT */
/* The command `ttdrecord attach PID`. */
#ifndef RECORDER_ATTACH_COMMAND_H
#define RECORDER_ATTACH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* Whether the command line is that of the command. */
bool attach_is_command(int argc, char **argv);

/* Removes what a recorder that was killed has left in a process. Returns whether there was any. */
bool attach_clean_command(const char *pid);

/* Records a process until it ends, or somebody wants it to be detached. Returns an exit status. */
int attach_command(int argc, char **argv);

/* Records a process that runs, or one that was suspended. Returns an exit status. */
int attach_process(const struct options *options, uint32_t pid);

#endif
