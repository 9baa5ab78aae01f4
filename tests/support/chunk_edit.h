/* SPDX-License-Identifier: MIT */
/** Changing the chunks of a trace in memory, and making them look right again. */
#ifndef SUPPORT_CHUNK_EDIT_H
#define SUPPORT_CHUNK_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "layout.h"

/** The size in the file of the chunk at `bytes`, as its header says; 0 if `size` has no header. */
uint64_t chunk_edit_size(const uint8_t *bytes, size_t size);

/** The offset of the chunk `number` places after the first; `size` if there is none. */
size_t chunk_edit_find(const uint8_t *bytes, size_t size, size_t number);

/** The offset of the first chunk of the kind; `size` if there is none. */
size_t chunk_edit_find_kind(const uint8_t *bytes, size_t size, unsigned kind);

uint64_t chunk_edit_hash(const void *data, size_t size);

/** Makes the header's hash right. */
void chunk_edit_seal_header(uint8_t *chunk);

/** Makes the payload's and the header's hash right, if the chunk is there as a whole. */
void chunk_edit_seal(uint8_t *chunk, size_t size);

/**
 * Makes magics, trace_ids, numbers, offsets and hashes of all chunks right, as far as one follows
 * another. What has no room for a header is left alone.
 */
void chunk_edit_seal_all(uint8_t *bytes, size_t size);

#endif
