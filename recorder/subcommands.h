/* SPDX-License-Identifier: MIT */
/* Adds names to a trace that was recorded before: `ttdrecord symbolize TRACE`. */
#ifndef RECORDER_SUBCOMMANDS_H
#define RECORDER_SUBCOMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* The command `ttdrecord attach PID`. */

/* Whether the command line names the command. */
bool attach_is_command(int argc, char **argv);

/* Removes the remains of a killed recorder from a process. Returns whether there was any. */
bool attach_clean_command(const char *pid);

/* Records a process until it ends, or somebody wants it to be detached. Returns an exit status. */
int attach_command(int argc, char **argv);

/* Records a process that runs, or one that was suspended. Returns an exit status. */
int attach_process(const struct options *options, uint32_t pid);

/* `ttdrecord session` and `ttdrecord enable|query|disable`: recordings of sets of processes. */

bool session_is_command(int argc, char **argv);

/* Returns an exit status. */
int session_command(int argc, char **argv);

/* `ttdrecord suspend PROGRAM` and `ttdrecord resume PID`: programs that wait for their recorder. */

bool suspend_is_command(int argc, char **argv);

/* Becomes the program, stopped before its first instruction. Returns an exit status on failure. */
int suspend_command(int argc, char **argv);

/* Lets a process go on that is stopped before its first instruction. Returns false, and does
 * nothing, if `text` names no such process. */
bool suspend_resume(const char *text);

/* Whether the arguments of ttdrecord are this command. */
bool symbolize_is_command(int argc, char **argv);

/* Adds the names, and prints how many. Returns an exit status. */
int symbolize_command(int argc, char **argv);

#endif
