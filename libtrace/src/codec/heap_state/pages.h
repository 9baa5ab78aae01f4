/* SPDX-License-Identifier: MIT */
/** Chunks of pages (spec, "Pages"). Their count and first_page are in the chunk's header. */
#ifndef TTD_CODEC_HEAP_STATE_PAGES_H
#define TTD_CODEC_HEAP_STATE_PAGES_H

#include <ttdtrace/heap_state.h>

#include "base/buffer.h"
#include "base/cursor.h"

/** Appends the payload. */
void ttd_encode_pages(struct ttd_buffer *buffer, const struct ttd_pages *pages);
/** Decodes the payload, into which `pages->data` then points. `count` and `first_page` are set
 * before the call. */
void ttd_decode_pages(struct ttd_cursor *cursor, struct ttd_pages *pages);
/** Whether the format allows pages of this size in bytes. */
bool ttd_page_size_is_valid(uint64_t size);

#endif
