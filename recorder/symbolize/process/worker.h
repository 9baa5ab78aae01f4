/* SPDX-License-Identifier: MIT */
/** The child process that reads debug information and answers. */
#ifndef RECORDER_SYMBOLIZE_PROCESS_WORKER_H
#define RECORDER_SYMBOLIZE_PROCESS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/symbolize.h"

/*
 * A request for names as bytes, for a child that was forked before the request was known. Numbers
 * are in the machine's byte order: both ends are the same program, and the child trusts its parent.
 *
 *     request    u64 size of the rest, u64 number of modules, modules
 *     module     u64 sizes of path, place and build-id, u64 number of offsets, u64 1 if they are
 * data, five u64 of struct symbolize_file, path, NUL, place, NUL, build-id, zeros up to a multiple
 * of 8, u64 offsets
 */

/** A received request. The modules point into `data`. */
struct lookup_request {
    uint8_t *data;
    struct symbolize_module *modules;
    size_t count;
};

/**
 * Encodes a request. Modules without offsets are included, so that indexes stay the same, but
 * without their paths. Returns allocated bytes, or NULL if memory ran out.
 */
uint8_t *lookup_request_pack(const struct symbolize_module *modules, size_t count, size_t *size);

/** Waits for a request. Returns false at the end of the stream. Ends the process if memory runs
 * out. */
bool lookup_request_receive(struct lookup_request *request, int fd);
void lookup_request_free(struct lookup_request *request);

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
