/* SPDX-License-Identifier: MIT */
/**
 * A child that stays, and keeps what it has read for later questions: to read the debug information
 * of the C library takes a tenth of a second each time. It is as expendable as all children; when
 * it fails, it is given up for good, and others are asked.
 *
 * What one file makes it say may be about another file, of any later question: names are as good as
 * all the files that are read, and no harm beyond that.
 *
 * It is used by any process that was forked since it was started, one at a time: whoever uses it
 * holds a lock that is shared by all of them.
 */
#ifndef TTD_SYMBOLIZE_HELPER_H
#define TTD_SYMBOLIZE_HELPER_H

#include <sys/types.h>

#include "symbolize.h"

enum helper_state {
    HELPER_NONE,  /* there is none, or not any more */
    HELPER_READY, /* it waits for a question */
    HELPER_ASKED  /* somebody uses it, or died over that */
};

/** In memory that all its users share; all zero when there is none. */
struct helper {
    enum helper_state state;
    /** A socket whose other end is the child's; the child, and a descriptor of it. */
    int fd;
    pid_t pid;
    int pidfd;
};

/** Without a child, all works as well: the state tells. */
void helper_start(struct helper *helper, uint64_t memory);

/** By the process that has started it. */
void helper_stop(struct helper *helper);

/**
 * Asks for names, which then come from helper->fd as from every child.
 *
 * @return false if it cannot be asked, or takes longer than `until` to listen, in milliseconds of
 *         CLOCK_MONOTONIC: it is given up then.
 */
bool helper_ask(struct helper *helper, const struct symbolize_module *modules, size_t count,
                int64_t until);

/** All has been told: it is ready again. */
void helper_done(struct helper *helper);

/** Ends it: there is no knowing what it will say next. */
void helper_give_up(struct helper *helper);

#endif
