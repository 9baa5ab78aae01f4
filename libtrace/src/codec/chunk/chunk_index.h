/* SPDX-License-Identifier: MIT */
/** Index chunks (spec, "Index"). */
#ifndef TTD_CODEC_CHUNK_CHUNK_INDEX_H
#define TTD_CODEC_CHUNK_CHUNK_INDEX_H

#include <ttdtrace/position.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "codec/chunk/header.h"

/** A link to an index chunk: its place, and the begin of the chunks that it covers. */
struct ttd_index_link {
    uint64_t offset;
    /** Number and effect position of the first event at or after the first chunk covered. */
    uint64_t first_event;
    struct ttd_position position;
};

/** Links of an index chunk: itself, then those 1, 2, 4, … index chunks before it. */
struct ttd_index_links {
    size_t count;
    struct ttd_index_link links[TTD_INDEX_LINKS_MAX];
};

/** Appends the links; the entries, headers as they are in the file, follow. */
void ttd_encode_index_links(struct ttd_buffer *buffer, const struct ttd_index_links *links);

/** Reads the links; the rest of the cursor is `entries` entries of TTD_HEADER_SIZE bytes. */
void ttd_decode_index_links(struct ttd_cursor *cursor, struct ttd_index_links *links,
                            uint32_t entries);

#endif
