/* SPDX-License-Identifier: MIT */
/** Random traces in memory of a program's calls, with faults as often as wanted; and a comparison
 * of the states to which two ways through a trace lead. */
#ifndef SUPPORT_RANDOM_CALLS_H
#define SUPPORT_RANDOM_CALLS_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "heap/replay.h"
#include "support/entropy.h"

#define RANDOM_CALLS_ADDRESSES_MAX 600
/** The number of addresses of most traces. */
#define RANDOM_CALLS_ADDRESSES 40
/** Heaps have the ids from 1 to this. */
#define RANDOM_CALLS_HEAPS 2

/** The faults of a trace, in thousandths of its events. */
struct random_faults {
    unsigned other_heap;
    unsigned destruction;
    unsigned error;
    unsigned never;
    unsigned loss;
    /** An address is used before the call that acquires a block there ends. */
    unsigned early;
    /** Not a fault: a reallocation overlaps later calls. */
    unsigned overlap;
    /** Nor this: a call has flags, another result than 1, or no effect on blocks. */
    unsigned oddity;
    /** Nor this: the clock moves on, or now and then back. */
    unsigned clock;
    bool has_parent;
    /** No fault either: each heap has its share of the addresses. */
    bool has_halves;
};

/** Must not be moved while it is open. */
struct random_calls {
    struct entropy entropy;
    struct random_faults faults;
    struct ttd_memory_output file;
    struct ttd_writer *writer;
    struct ttd_position now;
    uint64_t wall_time;
    /** At most RANDOM_CALLS_ADDRESSES_MAX. */
    size_t addresses;
    bool is_live[RANDOM_CALLS_ADDRESSES_MAX];
    /** A block in flight is not used before. */
    struct ttd_position ready[RANDOM_CALLS_ADDRESSES_MAX];
    /** Number of events. */
    uint64_t written;
};

/** Opens a trace in memory, and writes its definitions. Returns whether that was possible, as all
 * functions below. */
bool random_calls_open(struct random_calls *calls, struct entropy entropy,
                       const struct random_faults *faults, size_t addresses,
                       uint32_t events_per_chunk);

/** Writes a call, or none if no address is fit for it; and perhaps a destruction or a loss. */
bool random_calls_step(struct random_calls *calls);

/** Writes an event at the present, which moves on. Its action, heap, properties are set. */
bool random_calls_event(struct random_calls *calls, struct ttd_event *event);

/** Completes the trace, which then is in `calls->file`: release it with ttd_memory_output_free().
 */
bool random_calls_close(struct random_calls *calls);

/** Opens a trace of the size that a seed gives. One of 16 is larger, so that its chunks spell out
 * an address more than once. */
bool random_calls_open_seed(struct random_calls *calls, uint64_t seed,
                            const struct random_faults *faults);

/** Completes the trace, and opens a tolerant reader of it; NULL if that is not possible. */
struct ttd_reader *random_calls_read(struct random_calls *calls);

/** Writes a whole trace, and reads it as random_calls_read() does. */
struct ttd_reader *random_calls_trace(struct random_calls *calls, uint64_t seed,
                                      const struct random_faults *faults);

/** Returns a static description of the first difference between the live blocks, the counts and the
 * positions of two replays, or NULL. */
const char *random_calls_difference(const struct heap_replay *replay,
                                    const struct heap_replay *expected);

#endif
