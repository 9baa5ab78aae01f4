/* SPDX-License-Identifier: MIT */
/**
 * An index of a cache's log (see cache.c), each process's own: an answer is found by its file and
 * offset, whatever else was answered.
 */
#ifndef TTD_SYMBOLIZE_KNOWN_H
#define TTD_SYMBOLIZE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize.h"

/** A file that something is known of: where the log has its build-id and path. */
struct known_image {
    const uint8_t *id;
    const uint8_t *path;
    uint32_t id_size;
    uint32_t path_size;
};

/** Where the log has the names of an address; NULL in a free entry. */
struct known_answer {
    uint64_t offset;
    const uint8_t *names;
    size_t image;
};

/** All zero when empty. */
struct known {
    struct known_image *images;
    size_t image_count;
    size_t image_capacity;
    struct known_answer *answers;
    size_t answer_count;
    size_t answer_capacity; /* 0, or a power of two */
    size_t read;            /* how much of the log is in it */
    uint64_t key;           /* random: offsets come from untrusted processes */
};

void known_free(struct known *known);

/** Adds what the first `used` bytes of the log have. Without memory, some of it is not found. */
void known_read(struct known *known, const uint8_t *log, size_t used);

/** The index of a module's file; SIZE_MAX if nothing is known of that. */
size_t known_image(const struct known *known, const struct symbolize_module *module);

/** Sets `frames`, of SYMBOLIZE_FRAMES_MAX, and how many there are; they point into the log. False
 * if the answer is not known. */
bool known_find(const struct known *known, size_t image, uint64_t offset,
                struct symbolize_frame *frames, size_t *count);

#endif
