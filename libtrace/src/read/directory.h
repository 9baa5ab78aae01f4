/* SPDX-License-Identifier: MIT */
/** The directory of a reader: the headers that were read from the first chunk on. A later pass over
 * the same trace takes from it the headers of chunks that it passes over, and reads none of them
 * again. */
#ifndef TTD_READ_DIRECTORY_H
#define TTD_READ_DIRECTORY_H

#include <stddef.h>

#include <ttdtrace/allocator.h>

#include "codec/chunk/header.h"

/** Headers at most: about 6 MB, for a trace of four billion events. A file of more chunks has the
 * rest of its headers read in each pass. */
#define TTD_DIRECTORY_MAX 65536

/** Good headers of chunks that follow one another without a gap, from the start of the file. */
struct ttd_directory {
    struct ttd_header *headers;
    size_t count;
    size_t capacity;
    /** Index of the header that is expected to be asked for next. */
    size_t next;
};

void ttd_directory_free(struct ttd_directory *directory, const struct ttd_allocator *allocator);

/** Returns the header at `offset`, which is valid until a header is added; NULL if it is not known.
 */
const struct ttd_header *ttd_directory_find(struct ttd_directory *directory, uint64_t offset);

/**
 * Takes in a good header that was read just now. One that differs from what is known of its place
 * shows that the file has changed: all from there on is forgotten.
 *
 * @return false without memory
 */
bool ttd_directory_add(struct ttd_directory *directory, const struct ttd_allocator *allocator,
                       const struct ttd_header *header);

/** Forgets all headers of chunks that end behind `offset`. */
void ttd_directory_cut(struct ttd_directory *directory, uint64_t offset);

#endif
