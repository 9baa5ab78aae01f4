/* SPDX-License-Identifier: MIT */
/* Answers that are passed on, and kept as batches of a cache's log: see cache.c. */
#ifndef TTD_SYMBOLIZE_ANSWERS_H
#define TTD_SYMBOLIZE_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize.h"

/* Zeros, but for what comes first. `data` is the owner's to free. */
struct answers {
    const struct symbolize_module *modules;
    /* To whom they are passed on. */
    symbolize_function *function;
    void *context;
    size_t limit; /* of the size */

    uint8_t *data;
    size_t size;
    size_t capacity;
    /* The batch that is not complete yet, and its module. */
    size_t batch;
    size_t module;
    /* No memory: what there is from `batch` on is incomplete. */
    bool failed;
};

/* A symbolize_function, with the answers as its context. */
void answers_keep(void *context, size_t module, uint64_t offset,
                  const struct symbolize_frame *frames, size_t count);

/* Completes the last batch: `batch` is then where what is complete ends. */
void answers_end(struct answers *answers);

#endif
