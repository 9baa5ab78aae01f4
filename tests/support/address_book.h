/* SPDX-License-Identifier: MIT */
/** The addresses that a chunk of events spells out, as its batches give them. */
#ifndef SUPPORT_ADDRESS_BOOK_H
#define SUPPORT_ADDRESS_BOOK_H

#include <ttdtrace/reader.h>

/** All zero when empty. */
struct address_book {
    uint64_t *items;
    size_t count;
    size_t capacity;
    uint64_t chunk;
    /** Number of the event that comes next, if it is of the same chunk. */
    uint64_t next;
};

void address_book_free(struct address_book *book);

/**
 * Adds what a batch of events spells out; batches come in order, whole chunks of them.
 *
 * @return what does not fit the events, static; NULL if nothing
 */
const char *address_book_add(struct address_book *book, const struct ttd_batch *batch);

#endif
