/* SPDX-License-Identifier: MIT */
/* `ttdrecord session` and `ttdrecord enable|query|disable`: recordings of sets of processes. */
#ifndef RECORDER_SESSION_COMMAND_H
#define RECORDER_SESSION_COMMAND_H

#include <stdbool.h>

bool session_is_command(int argc, char **argv);

/* Returns an exit status. */
int session_command(int argc, char **argv);

#endif
