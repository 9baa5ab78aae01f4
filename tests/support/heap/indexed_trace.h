/* SPDX-License-Identifier: MIT */
/** A random trace in memory with an index, and the heap model's states at all its positions. */
#ifndef SUPPORT_INDEXED_TRACE_H
#define SUPPORT_INDEXED_TRACE_H

#include "support/heap/heap_model.h"
#include "travel/index.h"
#include "travel/replay_to.h"

/** The id of every such trace. */
#define INDEXED_TRACE_ID 77

struct indexed_trace {
    /** The decisions that made the trace; tests draw theirs from it as well. */
    struct entropy entropy;
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    /** The expected state at each tick. */
    struct heap_model states[HEAP_MODEL_TICKS];
    struct ttd_memory_output trace;
    struct ttd_memory_output sidecar;
    struct ttd_reader *reader;
    struct heap_keyframes keyframes;
    /** Batches of events that were read with indexed_trace_count_batch() as the hook. */
    size_t batches;
};

/** Writes and indexes the trace of a seed, and opens both. */
void indexed_trace_open(struct indexed_trace *indexed, uint64_t seed);
void indexed_trace_close(struct indexed_trace *indexed);

/** Writes an index of the trace, with that spacing, into the empty sidecar. */
struct heap_index_facts indexed_trace_write_index(struct indexed_trace *indexed,
                                                  const struct heap_index_spacing *spacing);

/** A hook for batches: counts those of events in the size_t that is its context. */
enum ttd_status indexed_trace_count_batch(void *context, const struct ttd_batch *batch);

#endif
