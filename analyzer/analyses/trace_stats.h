/* SPDX-License-Identifier: MIT */
/** What is in a trace: counts, sizes and spans. */
#ifndef ANALYZER_ANALYSES_TRACE_STATS_H
#define ANALYZER_ANALYSES_TRACE_STATS_H

#include <ttdtrace/reader.h>

#include "base/map.h"
#include "travel/losses.h"

/** Kinds of chunks that are counted apart; others are counted in [0]. */
#define TRACE_STATS_KINDS (TTD_KIND_LAST + 1)

struct trace_stats_chunks {
    uint64_t chunks;
    uint64_t items;
    uint64_t stored_bytes;
    uint64_t raw_bytes;
};

struct trace_stats_thread {
    ttd_id id;
    uint64_t events;
    uint64_t allocs;
    uint64_t frees;
    uint64_t reallocs;
};

struct trace_stats {
    struct trace_stats_chunks kinds[TRACE_STATS_KINDS];
    struct trace_stats_chunks all;
    uint64_t events;
    /** By ttd_action; [0] for unknown ones. */
    uint64_t actions[TTD_ACTION_DESTROY + 1];
    uint64_t failed;
    uint64_t unfinished;
    uint64_t bytes_requested;
    uint64_t user_events;
    /** Smallest and largest of all begins and ends of calls. */
    struct ttd_position first;
    struct ttd_position last;
    uint64_t last_wall_time;
    /** In order of first event. */
    struct trace_stats_thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    struct hash_map thread_index;
    struct heap_losses losses;
};

void trace_stats_init(struct trace_stats *stats);
void trace_stats_free(struct trace_stats *stats);

void trace_stats_add_chunk(struct trace_stats *stats, const struct ttd_chunk *chunk);

/** Counts events and losses; other batches are ignored. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
/** Adds the loss of what may come after the last chunk, once the reader has come to it. */
void trace_stats_end(struct trace_stats *stats, const struct ttd_reader *reader);

enum ttd_status trace_stats_add_batch(struct trace_stats *stats, const struct ttd_batch *batch);

#endif
