/* SPDX-License-Identifier: MIT */
/* Starts the daemon of a session. */
#ifndef RECORDER_SESSION_SESSION_START_H
#define RECORDER_SESSION_SESSION_START_H

#include "options.h"

/* Starts the daemon, whose traces and log go to a folder, which is made. Returns when it can be
 * asked, with an exit status: EXIT_EXISTS if there is such a session, after a message otherwise. */
int session_start(const char *session, const char *folder, const struct options *options,
                  bool ends_unused);

#endif
