/* SPDX-License-Identifier: MIT */
/* Asks the recorder of a process that is being recorded: `ttdrecord status PID` and
 * `ttdrecord snapshot PID`. */
#ifndef TTD_RECORDER_CONTROL_CLIENT_H
#define TTD_RECORDER_CONTROL_CLIENT_H

#include <stdbool.h>

/* Whether the arguments of ttdrecord are a command and the number of a process, and not a program.
 */
bool control_is_command(int argc, char **argv);

/* Sends the command, and prints the answer. Returns an exit status. */
int control_ask(char **argv);

#endif
