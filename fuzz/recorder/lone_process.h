/* SPDX-License-Identifier: MIT */
/** A collector with one recorded process, whose parts are called one by one. */
#ifndef FUZZ_LONE_PROCESS_H
#define FUZZ_LONE_PROCESS_H

#include "collect/collector.h"

/** The user events of a trace, in the order of the file. */
struct lone_events {
    struct ttd_user_event *items; /* with copies of their data */
    size_t count;
};

struct lone_process {
    struct collector collector;
    struct process *process;
    struct thread_stream thread;
};

/** Starts over; aborts if the system does not permit it. */
void lone_process_open(struct lone_process *lone);

/**
 * Ends the process and closes its trace, which must be intact.
 *
 * @param events  set to the events of the trace; release with lone_events_free()
 */
void lone_process_close(struct lone_process *lone, struct lone_events *events);
void lone_events_free(struct lone_events *events);

/** Takes the next position of the channel. */
struct ttd_position lone_process_position(struct lone_process *lone);

#endif
