/* SPDX-License-Identifier: MIT */
/** The processes that read debug information and answer: a child for each request, the helper,
 * which lives long, and the process that looks up in the background. */
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

/*
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

/**
 * A process that looks names up in the background, one request after the other, for a parent that
 * must not wait. It is forked while the parent is small: forking a process that uses much memory
 * costs more than most lookups.
 */

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
