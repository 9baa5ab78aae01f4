/* SPDX-License-Identifier: MIT */
/* `ttdrecord suspend PROGRAM` and `ttdrecord resume PID`: programs that wait for their recorder. */
#ifndef RECORDER_SUSPEND_COMMAND_H
#define RECORDER_SUSPEND_COMMAND_H

#include <stdbool.h>

bool suspend_is_command(int argc, char **argv);

/* Becomes the program, stopped before its first instruction. Returns an exit status on failure. */
int suspend_command(int argc, char **argv);

/* Lets a process go on that is stopped before its first instruction. Returns false, and does
 * nothing, if `text` names no such process. */
bool suspend_resume(const char *text);

#endif
