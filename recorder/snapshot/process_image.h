/* SPDX-License-Identifier: MIT */
/**
 * The image of a process that stands still: its pages in memory, and the bytes that it has written
 * to them, as far as these are few. It is taken by two or three system calls, and saves one for
 * each mapping and each structure of the C library.
 */
#ifndef RECORDER_SNAPSHOT_PROCESS_IMAGE_H
#define RECORDER_SNAPSHOT_PROCESS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Pages side by side that are in memory, or swapped out. */
struct image_span {
    uint64_t begin, end;
    bool is_written; /* private to the process, and so no file's */
};

/** Memory whose contents the image has. */
struct image_part {
    uint64_t begin, end;
    size_t offset; /* in `bytes` */
};

struct memory_image {
    struct image_span *spans; /* by address: all that there are below `known_end` */
    size_t span_count;
    uint64_t known_end;
    struct image_part *parts; /* by address */
    size_t part_count;
    unsigned char *bytes;
};

enum {
    IMAGE_SPANS = 4096, /* no more calls are made once there are so many */
    IMAGE_PARTS = 1024,
    IMAGE_BYTES = 4 << 20
};

/** Reads memory. Returns false if some of it is not in the image. */
bool image_read(const struct memory_image *image, uint64_t address, void *bytes, size_t size);

/** Returns where the image has the bytes of an address; NULL if not all of them are there, side by
 * side. */
const unsigned char *image_find(const struct memory_image *image, uint64_t address, size_t size);

/** Whether a page of a private mapping of a file is known to be as it is in the file. `image` may
 * be NULL. */
bool image_is_clean(const struct memory_image *image, uint64_t address);

/** Returns the first span that ends behind an address; the end of the array if there is none. */
const struct image_span *image_span_from(const struct memory_image *image, uint64_t address);

/** Chooses the parts; there is room for them already: the pages at these addresses that are no part
 * of other parts, then all spans that were written, as far as they fit. Returns the size of
 * `bytes`. */
size_t image_choose(struct memory_image *image, const uint64_t *pages, size_t page_count);

void image_free(struct memory_image *image);

#endif
