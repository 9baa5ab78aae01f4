/* SPDX-License-Identifier: MIT */
/** Snapshots all their parts but references, and their order (spec, "Snapshots" to "Fatal
 * signals"). */
#ifndef TTD_CODEC_SNAPSHOTS_SNAPSHOTS_H
#define TTD_CODEC_SNAPSHOTS_SNAPSHOTS_H

#include <stdbool.h>
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
/** Decodes everything but the addresses; ttd_decode_frame_addresses() is called next for them. */
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
/** Decodes everything but the registers; ttd_decode_registers() is called next for them. */
void ttd_decode_fatal_signal(struct ttd_cursor *cursor, struct ttd_fatal_signal *signal);
void ttd_decode_registers(struct ttd_cursor *cursor, struct ttd_register *registers, size_t count);

/* The order of snapshots and their parts (spec, "Snapshots"). */

/** The state of a check of the order of snapshots and their parts. */
struct ttd_snapshot_order {
    /** Number of the last snapshot that was complete. */
    uint32_t finished;
    /** Number of the snapshot that the last part belongs to. */
    uint32_t number;
    /** The parts of that snapshot so far: number of regions and of references; and region and
     * offset of the last reference, 0 if there is none. */
    uint32_t regions;
    uint64_t references;
    uint32_t region;
    uint64_t offset;
};

/* Each of these functions checks a part against the state, updates the state, and returns a static
 * description of the first violation, or NULL. A violation is reported once: the state is updated
 * as far as possible, so that correct parts behind it are not violations as well. */

/** Handles a part of any kind of the snapshot with this number. */
const char *ttd_snapshot_order_part(struct ttd_snapshot_order *order, uint32_t number);

/** Handles regions, at least one. Sets `*redefines` to whether their numbers were used before. */
const char *ttd_snapshot_order_regions(struct ttd_snapshot_order *order,
                                       const struct ttd_regions *regions, bool *redefines);

/** References that have an order among themselves. */
struct ttd_reference_range {
    uint32_t snapshot;
    const struct ttd_reference *first;
    const struct ttd_reference *last;
    size_t count;
};

/** Handles references. */
const char *ttd_snapshot_order_references(struct ttd_snapshot_order *order,
                                          const struct ttd_reference_range *range);

/** Handles the end of a snapshot. Afterwards `order` has its numbers of regions and references.
 * Sets
 * `*redefines` to whether its number was used before. */
const char *ttd_snapshot_order_finish(struct ttd_snapshot_order *order, uint32_t number,
                                      bool *redefines);

#endif
