/* SPDX-License-Identifier: MIT */
/* The recorders of a session: processes that the daemon forks. */
#ifndef RECORDER_SESSION_RECORDERS_H
#define RECORDER_SESSION_RECORDERS_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct daemon_record;
struct names_event;

/* Starts the recorder of a process that runs. Returns false if that is impossible. */
bool recorders_attach(struct daemon *daemon, struct daemon_record *record, uint32_t pid);

/* Starts the recorder of a thread that waits to execute a program. `seized` gets a byte, or ends,
 * when the thread is to be let go. */
bool recorders_catch(struct daemon *daemon, struct daemon_record *record,
                     const struct names_event *event, int *seized);

#endif
