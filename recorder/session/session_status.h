/* SPDX-License-Identifier: MIT */
/* The state of a session: the daemon has the list, each recorder its counts. */
#ifndef RECORDER_SESSION_SESSION_STATUS_H
#define RECORDER_SESSION_SESSION_STATUS_H

#include <stdbool.h>

#include "control.h"

/* Prints the processes of a session with their counts; again and again if `watches`. Returns an
 * exit status. */
int status_print(const char *session, bool watches, bool is_json);

/* Sends a command to the recorder of each process, with an interval unless that is NULL, and prints
 * the answers. Returns an exit status: the status of a failure if one fails. */
int status_each(const char *session, enum control_command command, const uint64_t *interval);

#endif
