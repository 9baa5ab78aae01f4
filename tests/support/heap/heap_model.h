/* SPDX-License-Identifier: MIT */
/** Random calls, and a model of the heap that is too simple to be wrong. For Criterion's tests. */
#ifndef SUPPORT_HEAP_MODEL_H
#define SUPPORT_HEAP_MODEL_H

#include "heap/replay.h"
#include "support/entropy.h"

#define HEAP_MODEL_EVENTS_MAX 40
/** Ids are 1 to these; heaps and stacks may be 0 as well. */
#define HEAP_MODEL_HEAPS   3
#define HEAP_MODEL_THREADS 3
#define HEAP_MODEL_STACKS  4
/** Nothing happens from this tick on. */
#define HEAP_MODEL_TICKS 102

/** The position of a tick; ticks are in order. */
struct ttd_position heap_model_at(unsigned tick);

/**
 * Calls of all kinds in several threads: they overlap, fail, never return, and use the same few
 * addresses again and again, also while blocks are live there. In order, and numbered from 0.
 *
 * @return how many, at least 1
 */
size_t heap_model_events(struct entropy *entropy, struct ttd_event events[HEAP_MODEL_EVENTS_MAX]);

/** Some of them as a batch of the chunk, with the ordinals that they have. */
struct ttd_batch heap_model_batch(uint64_t chunk, const struct ttd_event *events, size_t count);

/** A call that takes effect at once at a tick: an Alloc of the address, or whatever releases it. */
struct ttd_event heap_model_call(unsigned tick, enum ttd_action action, uint64_t address,
                                 uint64_t size);

/** Such calls as a batch of the chunk at offset 0, which spells out these addresses. */
struct ttd_batch heap_model_calls(const struct ttd_event *events, size_t count,
                                  const uint64_t *addresses, size_t address_count);

/** Heap 2 lies in heap 1, and heap 3 in heap 2. */
void heap_model_learn(struct heap_parents *parents);
ttd_id heap_model_parent(ttd_id heap);

/** The state of the heap at a position. */
struct heap_model {
    /** The events that acquired what is live. */
    const struct ttd_event *live[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    /** Reallocations between their release and their acquisition. */
    size_t in_flight;
    /** Position of the last effect. */
    struct ttd_position position;
    struct heap_counts counts;
};

/** The states at all ticks, all effects at them included. */
void heap_model_run(struct heap_model states[HEAP_MODEL_TICKS], const struct ttd_event *events,
                    size_t count);

/** The first of the states with the largest number of bytes. */
const struct heap_model *heap_model_peak(const struct heap_model *states, unsigned count);

/** The blocks that are live in heaps without a parent, and their bytes. */
size_t heap_model_outer_count(const struct heap_model *state);
struct heap_sum heap_model_bytes(const struct heap_model *state);

/** Fails the test unless the replay has the model's counts and position. */
void heap_model_expect_progress(const struct heap_model *expected,
                                const struct heap_replay *replay);

/** The same, and its blocks and bytes. */
void heap_model_expect(const struct heap_model *expected, const struct heap_replay *replay);

#endif
