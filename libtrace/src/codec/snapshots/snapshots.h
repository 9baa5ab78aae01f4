/* SPDX-License-Identifier: MIT */
/** Snapshots and all their parts but references (spec, "Snapshots" to "Fatal signals"). */
#ifndef TTD_CODEC_SNAPSHOTS_SNAPSHOTS_H
#define TTD_CODEC_SNAPSHOTS_SNAPSHOTS_H

#include <ttdtrace/snapshot.h>

#include "base/buffer.h"
#include "base/cursor.h"

/** Smallest encoded size of a region, and of a class, in bytes. */
#define TTD_REGION_BYTES_MIN       6
#define TTD_CLASS_BYTES_MIN        2
#define TTD_BLOCK_HEADER_BYTES_MIN 1

/* Each ttd_check_…() returns a static description of the first violation, or NULL. */

void ttd_encode_snapshot(struct ttd_buffer *buffer, const struct ttd_snapshot *snapshot);
void ttd_decode_snapshot(struct ttd_cursor *cursor, struct ttd_snapshot *snapshot);
const char *ttd_check_snapshot(const struct ttd_snapshot *snapshot);

/** Appends the payload of a chunk. */
void ttd_encode_regions(struct ttd_buffer *buffer, const struct ttd_regions *regions);
/** Decodes the payload. `list->count` is set before the call and not 0, and `regions` has room for
 * as many. */
void ttd_decode_regions(struct ttd_cursor *cursor, struct ttd_regions *list,
                        struct ttd_region *regions);
/** Checks a list of regions, and each region. */
const char *ttd_check_regions(const struct ttd_regions *regions);

/** `offset` is the previous variable's, 0 before the first. */
void ttd_encode_variable(struct ttd_buffer *buffer, const struct ttd_variable *variable,
                         uint64_t *offset);
void ttd_decode_variable(struct ttd_cursor *cursor, struct ttd_variable *variable,
                         uint64_t *offset);

void ttd_encode_frames(struct ttd_buffer *buffer, const struct ttd_frames *frames);
/** Decodes everything but the addresses, for which ttd_decode_frame_addresses() is called next. */
void ttd_decode_frames(struct ttd_cursor *cursor, struct ttd_frames *frames);
void ttd_decode_frame_addresses(struct ttd_cursor *cursor, uint64_t *addresses, size_t count);

/** Appends the payload of a chunk. */
void ttd_encode_classes(struct ttd_buffer *buffer, const struct ttd_classes *classes);
/** Decodes the payload. `list->count` is set before the call, and `classes` has room for as many.
 */
void ttd_decode_classes(struct ttd_cursor *cursor, struct ttd_classes *list,
                        struct ttd_class *classes);

/** As for classes. */
void ttd_encode_block_headers(struct ttd_buffer *buffer, const struct ttd_block_headers *list);
void ttd_decode_block_headers(struct ttd_cursor *cursor, struct ttd_block_headers *list,
                              uint64_t *headers);
/** Checks a list of headers. */
const char *ttd_check_block_headers(const struct ttd_block_headers *list);

void ttd_encode_fatal_signal(struct ttd_buffer *buffer, const struct ttd_fatal_signal *signal);
/** Decodes everything but the registers, for which ttd_decode_registers() is called next. */
void ttd_decode_fatal_signal(struct ttd_cursor *cursor, struct ttd_fatal_signal *signal);
void ttd_decode_registers(struct ttd_cursor *cursor, struct ttd_register *registers, size_t count);

#endif
