/* SPDX-License-Identifier: MIT */
/**
 * A clock: the wall times of positions, for people who read a report.
 *
 * Each pass notes when chunks begin, and the events that change the time as far as it is written.
 * In a long trace of many chunks their beginnings give the time of any position closely enough; in
 * a chunk that lasts longer, the changes do. Such a chunk is read again if no pass saw its end.
 * Positions that a pass skipped, with the help of an index, are looked up one by one. Both happen
 * as long as they are few: no time is given for the others.
 */
#ifndef ANALYZER_CLI_CLOCK_H
#define ANALYZER_CLI_CLOCK_H

#include <stdbool.h>

#include <ttdtrace/advanced.h>
#include <ttdtrace/reader.h>

#include "report/writers/out.h"

/** Size of any text that clock_text() writes. */
#define CLOCK_TEXT TIME_TEXT

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
    /** Time when the next chunk begins; TTD_UNKNOWN if that was not seen. */
    uint64_t next_time;
    /** Position where the next chunk begins, if next_time is known; the last one at the end. */
    struct ttd_position next_position;
    /** Events after `first` that change the time, of all events before number `noted`. */
    struct clock_event *events;
    size_t count;
    size_t capacity;
    uint64_t noted;
    /** Its times, and the times of all its events, were read; this is not tried again. */
    bool is_read;
    bool is_fine;
};

struct trace_clock {
    /** Chunks in the order of positions, perhaps with gaps; in any order and some of them twice
     * after clock_see_net(). */
    struct clock_chunk *chunks;
    size_t count;
    size_t capacity;
    bool is_unsorted;
    /** Index of the chunk whose batches are noted. */
    size_t current;
    /** Resolution of noted times, in nanoseconds; 0 if none are noted. */
    uint64_t unit;
    /** Number of changes that passes have noted. */
    size_t note_count;
    /** Time of the newest event that was seen. */
    uint64_t newest;
    /** Number of chunks that were looked up, that were read for their times, and for all of them.
     */
    unsigned lookups;
    unsigned reads;
    unsigned fine_reads;
    /** Memory was short: no times are given. */
    bool has_failed;
};

/** A clock of zeros has seen nothing, and notes only when chunks begin. */
void clock_free(struct trace_clock *clock);

/** Notes all times from now on that clock_text() needs for this duration; see there. */
void clock_begin(struct trace_clock *clock, uint64_t duration);

/** Notes the time of a batch. Batches of later passes over the same trace change nothing. */
void clock_see(struct trace_clock *clock, const struct ttd_batch *batch);

/** Notes the times of a chunk that is netted, in place of all its batches. */
void clock_see_net(struct trace_clock *clock, const struct ttd_chunk *chunk,
                   const struct ttd_netted *netted);

/**
 * Writes the time of a position, such as "+1.25s", rounded to three significant digits: a later
 * position never has an earlier time, unless its event has. Does not depend on earlier calls. May
 * read from `reader`.
 *
 * @param duration  of the whole trace in nanoseconds; 0 if that is not known
 * @return false if the time is not known
 */
bool clock_text(struct trace_clock *clock, struct ttd_reader *reader, uint64_t duration,
                struct ttd_position position, char text[CLOCK_TEXT]);

#endif
