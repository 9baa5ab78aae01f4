/* SPDX-License-Identifier: MIT */
/*
 * Encoder of a cache's log: passes answers on to a function, and encodes them as batches of the
 * log, whose format cache.c describes.
 */
#ifndef RECORDER_SYMBOLIZE_CACHE_ANSWER_LOG_H
#define RECORDER_SYMBOLIZE_CACHE_ANSWER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/* The owner sets the first group, zeroes the rest, and frees `data`. */
struct answer_log {
    const struct symbolize_module *modules;
    /* Receives each answer. */
    symbolize_function *function;
    void *context;
    size_t limit; /* bytes that `data` may have */

    uint8_t *data;
    size_t size;
    size_t capacity;
    /* Offset of the batch under construction, and the index of its module. */
    size_t batch;
    size_t module;
    /* Memory ran out or `limit` was reached: the bytes from `batch` on are incomplete. */
    bool has_failed;
};

/* Passes an answer on and encodes it. A symbolize_function; `context` is the answer_log. */
void answer_log_add(void *context, size_t module, uint64_t offset,
                    const struct symbolize_frame *frames, size_t count);

/* Completes the last batch: all bytes before `batch` are then complete. */
void answer_log_end_batch(struct answer_log *log);

#endif
