/* SPDX-License-Identifier: MIT */
/*
 * System calls that fail when their thread is stopped, even if it has no handler of a signal: they
 * are made again, or end as if their time had passed once it has.
 */
#ifndef RECORDER_SNAPSHOT_STOP_INTERRUPTED_H
#define RECORDER_SNAPSHOT_STOP_INTERRUPTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Calls of a process that were made again, kept from one stop to the next. Zeroed at first. */
struct interrupted_calls {
    struct interrupted_call {
        uint32_t tid;
        uint64_t since; /* when a stop first interrupted the call */
    } * items;
    size_t count, capacity;
};

void interrupted_calls_free(struct interrupted_calls *calls);

/*
 * Changes the registers of a stopped thread for which no signal waits, if its call has failed only
 * because of the stop. `now` is a time in nanoseconds. Returns whether the registers have changed.
 */
bool interrupted_call_resume(struct interrupted_calls *calls, uint32_t pid, uint32_t tid,
                             uint64_t now, struct user_regs_struct *registers);

#endif
