/* SPDX-License-Identifier: MIT */
/** The latest position that was noted for each of many addresses. Notes are of ranges of memory,
 * and there may be as many of them as the trace has releases. Private to reach/. */
#ifndef ANALYZER_REACH_ADDRESS_MARKS_H
#define ANALYZER_REACH_ADDRESS_MARKS_H

#include <ttdtrace/model.h>

#include "reach/address_index.h"

/** Notes that are looked up together. */
#define ADDRESS_MARKS_PENDING 32

struct address_note {
    uint64_t address;
    uint64_t size;
    struct ttd_position position;
};

/** All zero when empty. */
struct address_marks {
    uint32_t count;
    /** The addresses, in their order: field 0; and further fields of the owner's. */
    struct packed_table table;
    struct address_index index;
    /**
     * A tree above the addresses, which are its leaves from `count` on; node n is the parent of 2n
     * and 2n + 1. Holds the position that was noted for all addresses below a node at once: that of
     * an address is the latest one from its leaf up to the root.
     */
    struct ttd_position *latest;
    /** Notes that are not in `latest` yet. */
    struct address_note pending[ADDRESS_MARKS_PENDING];
    size_t pending_count;
};

/** A range of rows. */
struct address_span {
    uint32_t first;
    uint32_t end;
};

/** Begins the noting, once the table is filled. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status address_marks_begin(struct address_marks *marks);
void address_marks_free(struct address_marks *marks);

/** The addresses in a range of memory. */
struct address_span address_marks_find(struct address_marks *marks, uint64_t address,
                                       uint64_t size);

/** Notes a position for the addresses in a range of memory. Notes are kept and entered many
 * together: memory is slower than all else. */
void address_marks_note(struct address_marks *marks, struct address_note note);

/** Ends the noting: brings each note of many addresses to each of them. */
void address_marks_settle(struct address_marks *marks);

/** The latest position that was noted for an address, by its row; 0:0 if none was. After
 * address_marks_settle(). */
static inline struct ttd_position address_marks_latest(const struct address_marks *marks,
                                                       uint32_t row)
{
    return marks->latest[(size_t)row + marks->count];
}

#endif
