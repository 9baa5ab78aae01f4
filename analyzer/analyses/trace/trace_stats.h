/* SPDX-License-Identifier: MIT */
/** Statistics of a trace: counts, sizes and spans, and a list of its snapshots. */
#ifndef ANALYZER_ANALYSES_TRACE_TRACE_STATS_H
#define ANALYZER_ANALYSES_TRACE_TRACE_STATS_H

#include <ttdtrace/reader.h>
#include <ttdtrace/snapshot.h>

#include "base/hash_map.h"
#include "travel/islands.h"
#include "travel/pass.h"

/* The clients and the activities that the marks of a trace name. */

/** Number of clients, and of activities, that are kept: a trace may name any number. */
#define HEAP_CLIENTS_MAX 4096

/** A client; or an activity of a client, or of none. */
struct heap_client {
    /** Zeros for none. */
    uint8_t client[16];
    /** 0 for a client. */
    uint64_t activity;
    /** Number of marks of a client, or of islands that an activity began. */
    uint64_t count;
    /** Positions of the first and the last of these. */
    struct ttd_position first;
    struct ttd_position last;
};

/** Sorted by client, then by activity. */
struct heap_client_list {
    struct heap_client *items;
    size_t count;
    size_t capacity;
    /** There are more; they did not fit. */
    bool is_cut;
};

/** All zero when empty; release with heap_clients_free(). */
struct heap_clients {
    struct heap_client_list clients;
    /** Islands of activity 0 as well. */
    struct heap_client_list activities;
};

/** Adds the client that a mark names. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_clients_add(struct heap_clients *clients, const struct heap_mark *mark);
void heap_clients_free(struct heap_clients *clients);

/** Length of an array of counts by kind of chunk. Element 0 counts unknown kinds. */
#define HEAP_TRACE_STATS_KINDS (TTD_KIND_LAST + 1)

struct heap_trace_stats_chunks {
    uint64_t chunks;
    uint64_t records;
    uint64_t stored_bytes;
    uint64_t raw_bytes;
};

struct heap_trace_stats_thread {
    ttd_id id;
    uint64_t events;
    /** By enum ttd_action. */
    uint64_t actions[TTD_ACTION_DESTROY + 1];
};

struct heap_trace_stats {
    struct heap_outcome outcome;
    struct heap_trace_stats_chunks kinds[HEAP_TRACE_STATS_KINDS];
    struct heap_trace_stats_chunks all;
    uint64_t events;
    /** Events by enum ttd_action; element 0 counts unknown actions. */
    uint64_t actions[TTD_ACTION_DESTROY + 1];
    uint64_t failed;
    uint64_t unfinished;
    uint64_t bytes_requested;
    uint64_t user_events;
    struct heap_memory_samples memory;
    struct heap_clients clients;
    /** Smallest and largest position where a call begins or ends. */
    struct ttd_position first;
    struct ttd_position last;
    uint64_t last_wall_time;
    /** See heap_trace_stats_watch(). */
    bool omits_calls;
    /** In order of their first events. */
    struct heap_trace_stats_thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    struct hash_map thread_index;
    /** The last fatal signal, without its registers, if there is any. */
    bool has_fatal_signal;
    struct ttd_fatal_signal fatal_signal;
    /** The End chunk is intact and is the last chunk. */
    bool has_end;
    /** The reading stopped at an unsupported chunk, as outcome.error says. Only the chunks before
     * it have been counted. */
    bool is_unsupported;
};

/** Returns the number of references in all snapshots. */
static inline uint64_t heap_trace_stats_references(const struct heap_trace_stats *stats)
{
    return stats->kinds[TTD_KIND_REFERENCES].records +
           stats->kinds[TTD_KIND_PACKED_REFERENCES].records;
}

struct heap_trace_stats_options {
    /** Kinds of chunks to be passed to the trace's hook, in addition to those that are counted. */
    uint32_t kinds;
};

/**
 * Reads and checks the whole trace. Nothing is replayed, so the counts of the outcome are 0.
 *
 * @param stats  set on TTD_OK; release with heap_trace_stats_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, or the hook's status.
 */
enum ttd_status heap_trace_stats_find(const struct heap_trace *trace,
                                      const struct heap_trace_stats_options *options,
                                      struct heap_trace_stats *stats, struct ttd_error *error);

/**
 * Makes the statistics a part of a checked pass to the end of the trace.
 *
 * @param omits_calls  counts no more of the calls than their number: there are no threads, and no
 * first and last position
 * @param stats   release with heap_trace_stats_free(), also on failure; stays where it is
 * @param reader  read before the pass
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_trace_stats_watch(struct heap_trace_stats *stats, bool omits_calls,
                                       struct ttd_reader *reader, struct heap_pass *pass,
                                       struct ttd_error *error);
void heap_trace_stats_free(struct heap_trace_stats *stats);

/* The snapshots of a trace, and the amounts that each one stores. */

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
 * Makes the list a part of a checked pass to the end of the trace. The outcome comes with the
 * statistics of the pass.
 *
 * @param list  release with heap_snapshot_list_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_snapshot_list_watch(struct heap_snapshot_list *list, struct heap_pass *pass);
void heap_snapshot_list_free(struct heap_snapshot_list *list);

#endif
