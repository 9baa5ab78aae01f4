/* SPDX-License-Identifier: MIT */
/** The order of snapshots and their parts (spec, "Snapshots"). */
#ifndef TTD_CODEC_SNAPSHOTS_ORDER_H
#define TTD_CODEC_SNAPSHOTS_ORDER_H

#include <stdbool.h>

#include <ttdtrace/snapshot.h>

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
