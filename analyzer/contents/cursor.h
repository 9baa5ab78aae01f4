/* SPDX-License-Identifier: MIT */
/** Going through a range of memory, as far as it is known. */
#ifndef ANALYZER_CONTENTS_CURSOR_H
#define ANALYZER_CONTENTS_CURSOR_H

#include "contents/extents.h"
#include "contents/pages.h"

enum contents_state {
    /** No snapshot tells. */
    CONTENTS_UNKNOWN,
    /** The snapshot could not read it. */
    CONTENTS_UNREADABLE,
    /** The trace is damaged where the page should be. */
    CONTENTS_DAMAGED,
    CONTENTS_ZERO,
    CONTENTS_BYTES
};

/** Returns the name of a state, such as "unknown". Static. */
const char *contents_state_name(enum contents_state state);

/** Addresses of which the same is known, from one snapshot; at most a page if they have bytes. */
struct contents_part {
    enum contents_state state;
    uint64_t first;
    uint64_t last;
    /** Index of the snapshot; without meaning if unknown. */
    uint32_t snapshot;
    /** The bytes, valid until the next part is taken; NULL if there are none. */
    const uint8_t *data;
};

struct contents_cursor {
    const struct contents_extents *extents;
    struct contents_pages *pages;
    /** The next address, up to the last one; all were passed if `is_over`. */
    uint64_t next;
    uint64_t last;
    bool is_over;
    size_t extent;
};

struct contents_cursor contents_cursor_begin(const struct contents_extents *extents,
                                             struct contents_pages *pages, uint64_t first,
                                             uint64_t last);

/**
 * Takes the next part.
 *
 * @return TTD_OK; TTD_END; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status contents_cursor_next(struct contents_cursor *cursor, struct contents_part *part,
                                     struct ttd_error *error);

#endif
