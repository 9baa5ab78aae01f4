/* SPDX-License-Identifier: MIT */
/**
 * A request for names as bytes, for a child that was forked before the request was known. Numbers
 * are in the machine's byte order: both ends are the same program, and the child trusts its parent.
 *
 *     request    u64 size of the rest, u64 number of modules, modules
 *     module     u64 sizes of path, place and build-id, u64 number of offsets, u64 1 if they are
 * data, five u64 of struct symbolize_file, path, NUL, place, NUL, build-id, zeros up to a multiple
 * of 8, u64 offsets
 */
#ifndef RECORDER_SYMBOLIZE_PROCESS_LOOKUP_REQUEST_H
#define RECORDER_SYMBOLIZE_PROCESS_LOOKUP_REQUEST_H

#include "symbolize/symbolize.h"

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

#endif
