/* SPDX-License-Identifier: MIT */
/** The order of snapshots and their parts (spec, "Snapshots"). */
#ifndef TTD_CODEC_SNAPSHOTS_ORDER_H
#define TTD_CODEC_SNAPSHOTS_ORDER_H

#include <stdbool.h>

#include <ttdtrace/snapshot.h>

/** The snapshots so far. */
struct ttd_snapshot_order {
    /** Number of the last snapshot all of which was there. */
    uint32_t finished;
    /** Number of the snapshot whose parts came last. */
    uint32_t number;
    /** The parts of that snapshot: number of regions and of references, and the last reference,
     * whose region is 0 if there is none. */
    uint32_t regions;
    uint64_t references;
    uint32_t region;
    uint64_t offset;
};

/* Each takes in what its name says, and returns what is wrong with its place, or NULL. What is
 * wrong is taken in as well as possible, so that it is found once. */

/** Any part of the snapshot with this number. */
const char *ttd_snapshot_order_part(struct ttd_snapshot_order *order, uint32_t number);

/** Regions; there are some. `*redefines` is set to whether there were such numbers before. */
const char *ttd_snapshot_order_regions(struct ttd_snapshot_order *order,
                                       const struct ttd_regions *regions, bool *redefines);

/** References, which have an order among themselves; there are some. */
const char *ttd_snapshot_order_references(struct ttd_snapshot_order *order,
                                          const struct ttd_references *references);

/** The end of a snapshot, whose numbers of regions and references are then those of `order`.
 * `*redefines` is set to whether its number was used before. */
const char *ttd_snapshot_order_finish(struct ttd_snapshot_order *order, uint32_t number,
                                      bool *redefines);

#endif
