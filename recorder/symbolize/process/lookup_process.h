/* SPDX-License-Identifier: MIT */
/**
 * A process that looks names up in the background, one request after the other, for a parent that
 * must not wait. It is forked while the parent is small: forking a process that uses much memory
 * costs more than most lookups.
 */
#ifndef RECORDER_SYMBOLIZE_PROCESS_LOOKUP_PROCESS_H
#define RECORDER_SYMBOLIZE_PROCESS_LOOKUP_PROCESS_H

#include <sys/types.h>

#include "symbolize/symbolize.h"

/** Looks up the names of a request and keeps them where others find them. Runs in the process. */
typedef void lookup_function(void *context, const struct symbolize_module *modules, size_t count);

/** All zero if there is no process. */
struct lookup_process {
    pid_t pid; /* 0 if there is no process, or it was stopped */
    int fd;    /* a socket: requests are sent, one byte is received for each that is done */
    /** The request under way; NULL once all `size` bytes are sent. */
    uint8_t *request;
    size_t size;
    size_t sent;
    bool is_busy;
};

/**
 * Starts the process. If that fails, lookup_process_send() returns false from then on.
 *
 * @param function  called in the process for each request, with `context`.
 * @param files     the descriptors that `function` needs; the process closes all others.
 */
void lookup_process_start(struct lookup_process *process, lookup_function *function, void *context,
                          const int *files, size_t file_count);

/** Kills the process. Called only by its parent. */
void lookup_process_stop(struct lookup_process *process);

/** Sends a request without waiting for its end. Returns false if the process is busy or gone. */
bool lookup_process_send(struct lookup_process *process, const struct symbolize_module *modules,
                         size_t count);

/** Sends the rest of the request. Returns whether the request is still under way. */
bool lookup_process_is_busy(struct lookup_process *process);

#endif
