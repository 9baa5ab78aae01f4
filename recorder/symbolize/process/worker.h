/* SPDX-License-Identifier: MIT */
/** The child process that reads debug information and answers. */
#ifndef RECORDER_SYMBOLIZE_PROCESS_WORKER_H
#define RECORDER_SYMBOLIZE_PROCESS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/symbolize.h"

/** The work of a child, and its limits. */
struct worker_job {
    /** NULL: requests come through `fd`, a socket, until its other end is closed. */
    const struct symbolize_module *modules;
    size_t count;
    /** Index of the first module to read; is_reduced: only its symbol table is read. */
    size_t first;
    bool is_reduced;
    /** For each offset of `first`: 1 if it was answered already and is skipped. */
    const uint8_t *answered;
    /** Bytes of address space on top of the present ones, and seconds of processor time. */
    uint64_t memory;
    unsigned seconds;
    /** Answers are written to it; requests are read from it. */
    int fd;
};

/** Starts a child. Returns its process id, or -1 with errno set. */
pid_t worker_start(const struct worker_job *job);

/** Waits until a child has ended. */
void worker_wait(pid_t pid);

#endif
