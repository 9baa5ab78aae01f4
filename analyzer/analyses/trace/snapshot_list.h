/* SPDX-License-Identifier: MIT */
/** The snapshots of a trace, and the amounts that each one stores. */
#ifndef ANALYZER_ANALYSES_TRACE_SNAPSHOT_LIST_H
#define ANALYZER_ANALYSES_TRACE_SNAPSHOT_LIST_H

#include <ttdtrace/snapshot.h>

#include "travel/pass.h"

/** The amounts that a snapshot stores in the trace. */
struct heap_snapshot_parts {
    /** Number of the snapshot; 0 while no part has been read that has it. */
    uint32_t number;
    /** Bytes that its chunks take in the file, compressed. */
    uint64_t stored_bytes;
    uint64_t regions;
    uint64_t references;
    uint64_t classes;
    /** Bytes of memory in its maps; and bytes of the pages stored with it. The other pages of its
     * maps were stored with earlier snapshots, or are zero. */
    uint64_t mapped_bytes;
    uint64_t page_bytes;
};

struct heap_listed_snapshot {
    struct ttd_snapshot snapshot;
    struct heap_snapshot_parts parts;
};

struct lister;

struct heap_snapshot_list {
    struct heap_outcome outcome;
    struct heap_listed_snapshot *snapshots;
    size_t count;
    size_t capacity;
    /** Number of snapshots that were cut short: they have parts but no end, and are not used. */
    uint64_t cut_short;
    /** In a pass. */
    struct lister *lister;
};

/**
 * Reads the whole trace and checks it.
 *
 * @param list  set on TTD_OK; release with heap_snapshot_list_free()
 * @return as heap_trace_stats_find().
 */
enum ttd_status heap_snapshot_list_find(const struct heap_trace *trace,
                                        struct heap_snapshot_list *list, struct ttd_error *error);

/**
 * Makes the list a part of a pass to the end of the trace, which must be a checked one. The outcome
 * comes with the statistics of the pass.
 *
 * @param list  release with heap_snapshot_list_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_snapshot_list_watch(struct heap_snapshot_list *list, struct heap_pass *pass);
void heap_snapshot_list_free(struct heap_snapshot_list *list);

#endif
