/* SPDX-License-Identifier: MIT */
/* Asks the recorder of a process that is being recorded: `ttdrecord status PID` and
 * `ttdrecord snapshot PID`. */
#ifndef RECORDER_CONTROL_CLIENT_H
#define RECORDER_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"

/* Whether the arguments of ttdrecord are a command and the number of a process, and not a program.
 */
bool control_is_command(int argc, char **argv);

/* Asks a recorder, by its own process id. `answer` is set unless the result is CONTROL_UNKNOWN:
 * there is no such recorder, or it does not know the process. */
enum control_result control_ask_collector(uint32_t collector, const struct control_request *request,
                                          struct control_answer *answer);

/* Sends the command, and prints the answer. Returns an exit status. */
int control_ask(char **argv);

#endif
