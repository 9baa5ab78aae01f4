/* SPDX-License-Identifier: MIT */
/** Index chunks (spec, "Index"). */
#ifndef TTD_CODEC_INDEX_H
#define TTD_CODEC_INDEX_H

#include <ttdtrace/position.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "codec/header.h"

/** Where an index chunk is and where what it covers begins. */
typedef struct ttd_index_link {
    uint64_t offset;
    /** Number and effect position of the first event at or after the first chunk covered. */
    uint64_t first_event;
    ttd_position position;
} ttd_index_link;

/** Links of an index chunk: itself, then those 1, 2, 4, … index chunks before it. */
typedef struct ttd_index_links {
    size_t count;
    ttd_index_link links[TTD_INDEX_LINKS_MAX];
} ttd_index_links;

/** Appends the links; the entries, headers as they are in the file, follow. */
void ttd_encode_index_links(ttd_buffer *out, const ttd_index_links *links);

/** Reads the links; what is left of the cursor is `entries` entries of TTD_HEADER_SIZE bytes. */
void ttd_decode_index_links(ttd_cursor *in, ttd_index_links *links, uint32_t entries);

#endif
