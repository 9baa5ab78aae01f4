/* SPDX-License-Identifier: MIT */
/**
 * A process that asks for names, one question after the other, for one that has no time to wait.
 * It is forked while that is small: a fork of a process that uses much memory costs more than most
 * questions.
 */
#ifndef TTD_SYMBOLIZE_ASKER_H
#define TTD_SYMBOLIZE_ASKER_H

#include <sys/types.h>

#include "symbolize.h"

/** Has the names looked up, and kept for those who want to know. */
typedef void asker_function(void *context, const struct symbolize_module *modules, size_t count);

/** All zero when there is none. */
struct asker {
    pid_t pid; /* 0 when there is none, or not any more */
    int fd;
    /** The question under way, as far as it is not sent; NULL if it is. */
    uint8_t *question;
    size_t size;
    size_t sent;
    bool is_busy;
};

/**
 * Starts it. Without it, all works as well: asker_ask() tells.
 *
 * @param function  called in that process, with `context`.
 * @param files     the descriptors that this needs; all others are closed there.
 */
void asker_start(struct asker *asker, asker_function *function, void *context, const int *files,
                 size_t file_count);

/** By the process that has started it. */
void asker_stop(struct asker *asker);

/** Asks, without waiting for the answer. False if that is not possible: it is busy, or gone. */
bool asker_ask(struct asker *asker, const struct symbolize_module *modules, size_t count);

/** Whether an answer is waited for. */
bool asker_is_busy(struct asker *asker);

#endif
