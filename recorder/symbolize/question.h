/* SPDX-License-Identifier: MIT */
/**
 * A question as bytes, for a child that was there before it was asked. Numbers are in the machine's
 * byte order: both ends are the same program, and the child trusts its parent.
 *
 *     question   u64 size of the rest, u64 number of modules, modules
 *     module     u64 sizes of path and build-id, u64 number of offsets, path with a NUL behind it,
 *                build-id, zeros up to a multiple of 8, u64 offsets
 */
#ifndef TTD_SYMBOLIZE_QUESTION_H
#define TTD_SYMBOLIZE_QUESTION_H

#include "symbolize.h"

/** What was received. The modules point into the data. */
struct question {
    uint8_t *data;
    struct symbolize_module *modules;
    size_t count;
};

/** The bytes of a question, to be freed; NULL without memory. Modules without offsets are there,
 * too, so that indexes stay, but without a path. */
uint8_t *question_pack(const struct symbolize_module *modules, size_t count, size_t *size);

/** Waits for a question; false at the end. Out of memory, it ends the process. */
bool question_receive(struct question *question, int fd);
void question_free(struct question *question);

#endif
