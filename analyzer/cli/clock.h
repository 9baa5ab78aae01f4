/* SPDX-License-Identifier: MIT */
/**
 * Wall times of positions, for people: when something happened beside where.
 *
 * A pass takes note of one time a chunk, which costs nothing. That tells the time of a position
 * closely enough in a long trace, of many chunks; a chunk that takes a large part of the whole
 * time is read again. Positions that a pass has skipped, with the help of an index, are looked up
 * one by one, as long as they are few.
 */
#ifndef ANALYZER_CLI_CLOCK_H
#define ANALYZER_CLI_CLOCK_H

#include <stdbool.h>

#include <ttdtrace/reader.h>

/** Enough for any time that clock_text() writes. */
#define CLOCK_TEXT 32

struct clock_event {
    struct ttd_position position;
    uint64_t time;
};

/** A chunk of events, by the first of them. */
struct clock_chunk {
    struct clock_event first;
    struct ttd_position last;
    /** Numbers of its first event, and of the one after its last. */
    uint64_t first_event;
    uint64_t next_event;
    /** The time at which the next one begins; TTD_UNKNOWN if that was not seen. */
    uint64_t next_time;
    /** All of its events, once they were needed. */
    struct clock_event *events;
    size_t count;
};

struct trace_clock {
    /** In the order of positions, perhaps with holes. */
    struct clock_chunk *chunks;
    size_t count;
    size_t capacity;
    /** The time of the newest event that was seen. */
    uint64_t newest;
    /** Chunks that were looked up. */
    unsigned lookups;
    /** There was no memory: no times are told. */
    bool has_failed;
};

/** A clock of zeros knows nothing. */
void clock_free(struct trace_clock *clock);

/** Takes note of a batch; those of later passes over the same trace change nothing. */
void clock_see(struct trace_clock *clock, const struct ttd_batch *batch);

/**
 * Writes the time of a position, such as "+1.25s", in as many digits as are known and tell
 * something: the same ones whatever was seen. May read from `reader`.
 *
 * @param duration  of the whole trace in nanoseconds; 0 if that is not known
 * @return false if the time is not known
 */
bool clock_text(struct trace_clock *clock, struct ttd_reader *reader, uint64_t duration,
                struct ttd_position at, char text[CLOCK_TEXT]);

#endif
