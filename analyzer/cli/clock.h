/* SPDX-License-Identifier: MIT */
/**
 * A clock: the wall times of positions, for people who read a report.
 *
 * Each pass notes one time a chunk, which costs nothing. In a long trace of many chunks that gives
 * the time of any position closely enough; a chunk that takes a large part of the whole time is
 * read again. Positions that a pass skipped, with the help of an index, are looked up one by one as
 * long as they are few.
 */
#ifndef ANALYZER_CLI_CLOCK_H
#define ANALYZER_CLI_CLOCK_H

#include <stdbool.h>

#include <ttdtrace/reader.h>

/** Size of any text that clock_text() writes. */
#define CLOCK_TEXT 32

struct clock_event {
    struct ttd_position position;
    uint64_t time;
};

/** A chunk of events, as its first event describes it. */
struct clock_chunk {
    struct clock_event first;
    struct ttd_position last;
    /** Numbers of the first event, and of the one after the last. */
    uint64_t first_event;
    uint64_t next_event;
    /** Time at which the next chunk begins; TTD_UNKNOWN if that was not seen. */
    uint64_t next_time;
    /** All events, once they were needed; else NULL. */
    struct clock_event *events;
    size_t count;
};

struct trace_clock {
    /** Chunks in the order of positions, perhaps with gaps. */
    struct clock_chunk *chunks;
    size_t count;
    size_t capacity;
    /** Time of the newest event that was seen. */
    uint64_t newest;
    /** Number of chunks that were looked up. */
    unsigned lookups;
    /** Memory was short: no times are given. */
    bool has_failed;
};

/** A clock of zeros has seen nothing. */
void clock_free(struct trace_clock *clock);

/** Notes the time of a batch. Batches of later passes over the same trace change nothing. */
void clock_see(struct trace_clock *clock, const struct ttd_batch *batch);

/**
 * Writes the time of a position, such as "+1.25s". The number of digits is what is known and
 * meaningful, and does not depend on what was seen. May read from `reader`.
 *
 * @param duration  of the whole trace in nanoseconds; 0 if that is not known
 * @return false if the time is not known
 */
bool clock_text(struct trace_clock *clock, struct ttd_reader *reader, uint64_t duration,
                struct ttd_position at, char text[CLOCK_TEXT]);

#endif
