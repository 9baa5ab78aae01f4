/* SPDX-License-Identifier: MIT */
/** What is in a trace: counts, sizes and spans. */
#ifndef ANALYZER_HEAP_SURVEY_H
#define ANALYZER_HEAP_SURVEY_H

#include <ttdtrace/reader.h>

#include "base/map.h"
#include "heap/losses.h"

/** Kinds of chunks that are counted apart; others are counted in [0]. */
#define SURVEY_KINDS (TTD_KIND_END + 1)

struct survey_chunks {
    uint64_t chunks;
    uint64_t items;
    uint64_t stored_bytes;
    uint64_t raw_bytes;
};

struct survey_thread {
    ttd_id id;
    uint64_t events;
    uint64_t allocs;
    uint64_t frees;
    uint64_t reallocs;
};

struct survey {
    struct survey_chunks kinds[SURVEY_KINDS];
    struct survey_chunks all;
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
    struct survey_thread *threads;
    size_t thread_count;
    size_t thread_capacity;
    struct hash_map thread_index;
    struct heap_losses losses;
};

void survey_init(struct survey *all);
void survey_free(struct survey *all);

void survey_add_chunk(struct survey *all, const struct ttd_chunk *chunk);

/** Counts events and losses; other batches are ignored. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
/** Adds the loss of what may come after the last chunk, once the reader has come to it. */
void survey_end(struct survey *all, const struct ttd_reader *reader);

enum ttd_status survey_add_batch(struct survey *all, const struct ttd_batch *batch);

#endif
