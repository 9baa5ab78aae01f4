/* SPDX-License-Identifier: MIT */
/** What runs in the child. */
#ifndef TTD_SYMBOLIZE_WORKER_H
#define TTD_SYMBOLIZE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize.h"

struct work {
    /** NULL: questions come through `fd`, a socket, until its other end is closed. */
    const struct symbolize_module *modules;
    size_t count;
    /** Where to begin, and whether only the symbol table of that module is to be read. */
    size_t first;
    bool reduced;
    /** For each offset of `first`: whether it is to be passed over. */
    const uint8_t *answered;
    /** Bytes of address space on top of what there is, and seconds of processor time. */
    uint64_t memory;
    unsigned seconds;
    /** Where answers are written to, and what questions are read from. */
    int fd;
};

/** Starts a child that does all of it and ends. @return its process id, or -1 with errno set. */
pid_t worker_start(const struct work *work);

/** Waits until it has ended. */
void worker_wait(pid_t pid);

#endif
