/* SPDX-License-Identifier: MIT */
/**
 * A long-lived child that caches the debug information it has read: reading the C library's takes a
 * tenth of a second each time. It is as expendable as every child; when it fails, it is killed for
 * good, and later requests go to short-lived children.
 *
 * A malicious file can make it give false names for other files, in any later request. The damage
 * is limited to names.
 *
 * Every process forked after its start may use it, one at a time: the user holds a lock that all of
 * them share.
 */
#ifndef RECORDER_SYMBOLIZE_PROCESS_HELPER_H
#define RECORDER_SYMBOLIZE_PROCESS_HELPER_H

#include <sys/types.h>

#include "symbolize/symbolize.h"

enum helper_state {
    HELPER_NONE,  /* not started, or given up */
    HELPER_READY, /* waits for a request */
    HELPER_ASKED  /* in use, or its user died while using it */
};

/** Lives in memory that all its users share. All zero if there is no helper. */
struct helper {
    enum helper_state state;
    /** A socket to the child. */
    int fd;
    pid_t pid;
    /** A descriptor of the child: users that are not its parent can kill it safely. */
    int pidfd;
};

/** Starts the child. If that fails, the state is HELPER_NONE and helper_ask() returns false. */
void helper_start(struct helper *helper, uint64_t memory);

/** Ends the child. Called only by the process that started it. */
void helper_stop(struct helper *helper);

/**
 * Sends a request. The answers arrive at helper->fd, as from every child.
 *
 * @param until  deadline for sending, in milliseconds of CLOCK_MONOTONIC.
 * @return false if there is no helper, or it did not accept the request: it is given up then.
 */
bool helper_ask(struct helper *helper, const struct symbolize_module *modules, size_t count,
                int64_t until);

/** Marks the helper as ready again, after its last answer was read. */
void helper_done(struct helper *helper);

/** Kills the child, whose state is unknown after a failure. */
void helper_give_up(struct helper *helper);

#endif
