/* SPDX-License-Identifier: MIT */
/**
 * Hash table over the answers in a cache's log (see cache.c), by image and offset. Each process
 * has its own, since the table holds addresses.
 */
#ifndef RECORDER_SYMBOLIZE_CACHE_ANSWER_INDEX_H
#define RECORDER_SYMBOLIZE_CACHE_ANSWER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolize.h"

/** A file that the log has answers for. Build-id and path point into the log. */
struct answered_image {
    const uint8_t *id;
    const uint8_t *path;
    uint32_t id_size;
    uint32_t path_size;
    /** The answers are variables. */
    bool is_data;
};

/** An entry of the table: the encoded names of an address. NULL in a free entry. */
struct indexed_answer {
    uint64_t offset;
    const uint8_t *names;
    size_t image;
};

/** All zero when empty. */
struct answer_index {
    struct answered_image *images;
    size_t image_count;
    size_t image_capacity;
    struct indexed_answer *answers;
    size_t answer_count;
    size_t answer_capacity; /* 0, or a power of two */
    size_t indexed_size;    /* bytes of the log that are indexed */
    uint64_t key;           /* random: offsets come from untrusted processes */
};

void answer_index_free(struct answer_index *index);

/** Indexes the log up to `log_size` bytes. If memory runs out, later answers are not found yet; the
 * next call tries again. */
void answer_index_read(struct answer_index *index, const uint8_t *log, size_t log_size);

/** Returns the index of a module's image, or SIZE_MAX if the log has no answers for it. */
size_t answer_index_image(const struct answer_index *index, const struct symbolize_module *module);

/**
 * Finds the names of an address.
 *
 * @param frames  has room for SYMBOLIZE_FRAMES_MAX; strings point into the log.
 * @return false if the log has no answer.
 */
bool answer_index_find(const struct answer_index *index, size_t image, uint64_t offset,
                       struct symbolize_frame *frames, size_t *count);

#endif
