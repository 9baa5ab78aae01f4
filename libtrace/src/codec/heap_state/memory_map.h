/* SPDX-License-Identifier: MIT */
/** Chunks of a memory map (spec, "Memory map"). */
#ifndef TTD_CODEC_HEAP_STATE_MEMORY_MAP_H
#define TTD_CODEC_HEAP_STATE_MEMORY_MAP_H

#include <ttdtrace/heap_state.h>

#include "base/buffer.h"
#include "base/cursor.h"

/* Chunks of pages (spec, "Pages"). Their count and first_page are in the chunk's header. */

/** Appends the payload. */
void ttd_encode_pages(struct ttd_buffer *buffer, const struct ttd_pages *pages);
/** Decodes the payload, into which `pages->data` then points. `count` and `first_page` are set
 * before the call. */
void ttd_decode_pages(struct ttd_cursor *cursor, struct ttd_pages *pages);
/** Whether the format allows pages of this size in bytes. */
bool ttd_page_size_is_valid(uint64_t size);

/** Appends the payload. The runs are valid and in the order of addresses. */
void ttd_encode_memory_map(struct ttd_buffer *buffer, const struct ttd_memory_map *map);
/** Decodes the payload. `map->count` is set before the call, and `runs` has room for as many. */
void ttd_decode_memory_map(struct ttd_cursor *cursor, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs);

#endif
