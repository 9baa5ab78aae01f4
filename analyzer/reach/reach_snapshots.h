/* SPDX-License-Identifier: MIT */
/** The snapshots that a trace has. */
#ifndef ANALYZER_REACH_REACH_SNAPSHOTS_H
#define ANALYZER_REACH_REACH_SNAPSHOTS_H

#include <stddef.h>

#include <ttdtrace/snapshot.h>

#include "travel/heap_trace.h"

/** Complete snapshots, in the order of the file. All zero when empty. */
struct heap_snapshots {
    struct ttd_snapshot *snapshots;
    size_t count;
    size_t capacity;
};

/**
 * Finds the snapshots of a trace, going from header to header. A snapshot that was cut short has no
 * record, and is not among them.
 *
 * @param snapshots  set on TTD_OK; release with heap_snapshots_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_snapshots_find(const struct heap_trace *trace,
                                    struct heap_snapshots *snapshots, struct ttd_error *error);
void heap_snapshots_free(struct heap_snapshots *snapshots);

/** The newest snapshot at or before a position that stores all of `contents`, a sum of
 * ttd_snapshot_contents; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_before(const struct heap_snapshots *snapshots,
                                                 struct ttd_position position, uint32_t contents);

/** The oldest such snapshot at a position or after; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_after(const struct heap_snapshots *snapshots,
                                                struct ttd_position position, uint32_t contents);

/** The snapshot of a number; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_get(const struct heap_snapshots *snapshots,
                                              uint32_t number);

#endif
