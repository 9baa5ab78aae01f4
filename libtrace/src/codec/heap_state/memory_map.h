/* SPDX-License-Identifier: MIT */
/** Chunks of a memory map (spec, "Memory map"). */
#ifndef TTD_CODEC_HEAP_STATE_MEMORY_MAP_H
#define TTD_CODEC_HEAP_STATE_MEMORY_MAP_H

#include <ttdtrace/heap_state.h>

#include "base/buffer.h"
#include "base/cursor.h"

/** Appends the payload. The runs are valid and in the order of addresses. */
void ttd_encode_memory_map(struct ttd_buffer *buffer, const struct ttd_memory_map *map);
/** Decodes the payload. `map->count` is set before the call, and `runs` has room for as many. */
void ttd_decode_memory_map(struct ttd_cursor *cursor, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs);

#endif
