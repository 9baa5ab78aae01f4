/* SPDX-License-Identifier: MIT */
/** A source: the trace that a command reads. Tolerant of damage, and reports it on standard
 * error. */
#ifndef ANALYZER_CLI_SOURCE_H
#define ANALYZER_CLI_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <ttdtrace/advanced.h>
#include <ttdtrace/io.h>
#include <ttdtrace/reader.h>

#include "base/grow.h"
#include "report/sections/report.h"
#include "report/trace/trace_reports.h"
#include "report/writers/out.h"
#include "symbols/trace_definitions.h"
#include "travel/heap_trace.h"
#include "travel/position_text.h"

/*
 * A clock: the wall times of positions, for people who read a report.
 *
 * Each pass notes when chunks begin, and the events that change the time as far as it is written.
 * In a long trace of many chunks their beginnings give the time of any position closely enough; in
 * a chunk that lasts longer, the changes do. Such a chunk is read again if no pass saw its end.
 * Positions that a pass skipped, with the help of an index, are looked up one by one. Both happen
 * as long as they are few: no time is given for the others.
 */

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

/* Progress of a long command, shown on standard error if that is a terminal. */

struct progress {
    bool is_wanted;
    bool is_shown;
    unsigned calls;
    /** Milliseconds of a monotonic clock, at the beginning and at the last display. */
    uint64_t begin;
    uint64_t last;
};

void progress_begin(struct progress *progress);

/** Notes that `done` of `total` bytes are read. Cheap. Nothing is shown in the first second. */
void progress_update(struct progress *progress, uint64_t done, uint64_t total);

/** Removes the display. */
void progress_end(struct progress *progress);

/** Limit on damage that is reported one by one. */
#define SOURCE_REPORTED_MAX 10

struct source {
    const char *path;
    struct ttd_reader *reader;
    /** See source_second_trace(); NULL if there is none. */
    struct ttd_reader *second;
    /** The blocks that the recorder has chosen, if it did. */
    struct heap_choice choice;
    /** Size in bytes when it was opened, for progress. */
    uint64_t size;
    /** Threads that net chunks; 0 for one on each processor. */
    uint64_t threads;
    /** Whether there is an End chunk, and its content. */
    bool is_closed;
    struct ttd_end end;
    /** Offsets of damage that was reported: every pass over the file meets the same. */
    uint64_t reported[SOURCE_REPORTED_MAX];
    size_t reported_count;
    bool reported_more;
    /** The trace ends within a chunk; and reading stopped before the end of the trace. */
    bool is_truncated;
    bool is_given_up;
    /** Number of readable events, if a position in percent was based on it because the trace does
     * not state its total; else 0. */
    uint64_t part_of;
    /** The sidecar index, if `has_keyframes`: see sidecar_use(). */
    struct heap_keyframes keyframes;
    bool has_keyframes;
    /** Making an index failed, and is not tried again. */
    bool has_no_index;
    /** There is an untrusted index, and it was reported. */
    bool has_refused_index;
    /** An index was used and contradicted the trace; this was reported. */
    bool has_refuted_index;
    /** The stamp of the file when it was opened. */
    struct stamp opened;
    /** source_is_intact() was called, and answered `is_intact`. */
    bool is_judged;
    bool is_intact;
    /** The same file was found intact by another reading: see source_take_intact(). */
    bool is_known_intact;
    /** Only a part is read, and the rest is not checked: no answer is certain. */
    bool is_partly_read;
    /** The trace was recovered, and says that parts of it are missing. */
    bool is_patched;
    struct progress progress;
    struct trace_clock clock;
};

/**
 * Opens a trace. Returns an exit status; on failure a message was printed.
 *
 * @param reads_whole_chunks  as whole_chunks of ttd_reader_options
 */
int source_open(struct source *source, const char *path, bool reads_whole_chunks);
void source_close(struct source *source);

/** Returns the trace for a query, without an index. Its hook shows progress and reports damage. */
struct heap_trace source_trace(struct source *source);

/**
 * Sets `trace` to the trace for a query that another thread makes at the same time as this one, by
 * a reader of its own, and without a hook: the reader of the source meets the same damage. The
 * other query must read the whole trace, too.
 *
 * @return false if there is no processor for it, or if two readers might not see the same: the
 *         trace is no file, or may be growing
 */
bool source_second_trace(struct source *source, struct heap_trace *trace);

/** Closes the second reader: nothing rests on its reading. */
void source_end_second(struct source *source);

/** Whether wall times are known: the first chunk (it has their unit) was not lost. */
static inline bool source_has_times(const struct source *source)
{
    return trace_has_times(ttd_reader_trace(source->reader));
}

/** Reports that the command needs wall times; returns the exit status. */
int source_fail_times(const struct source *source);

/** Whether the trace is intact as 'ttdanalyze verify' defines it; a certain verdict needs it.
 * Called after all findings. Reads the trace unless a pass has read all of it, or an index was
 * used: then the answer is not certain anyway. The result is kept for further calls. */
bool source_is_intact(struct source *source);

/** Takes over from a source of the same file that the file is intact, if it has found that. */
void source_take_intact(struct source *source, const struct source *other);

/** Reports that reading failed; returns the exit status. */
int source_fail(struct source *source, enum ttd_status status, const struct ttd_error *error);

/** Reports damage, once for each offset. */
void source_damaged(struct source *source, const struct ttd_error *error);

/** Reports, once, that the trace ends within a chunk, or was not read to its end. */
void source_truncated(struct source *source, const struct ttd_error *error);

/** Reads the whole trace and calls `hook` for each batch of `kinds`, and for losses. Unsupported
 * content ends the reading without a message, because the pass that needs it prints one. Returns
 * an exit status; on failure a message was printed. */
int source_read(struct source *source, uint32_t kinds, const struct heap_batch_hook *hook);

/** Reads like source_read(), but from the reader's position. The hook stops it with TTD_END. */
int source_read_on(struct source *source, const struct heap_batch_hook *hook);

/** Reads definitions of the kinds. Returns an exit status. */
int source_define(struct source *source, uint32_t kinds, struct definitions *definitions);

/* Positions on a command line: reading for one may find damage of the source. */

/** The forms of a position, for help texts. */
#define POSITION_SPEC_FORMS                                                                        \
    "  FAB:17B1    sequence and steps, in hexadecimal\n"                                           \
    "  start, end  the beginning and the end of the trace\n"                                       \
    "  '#1234'     event number 1234, counted from 0 (quote it for the shell)\n"                   \
    "  50%         when half of the events have happened\n"                                        \
    "  +1.5s       1.5 seconds after the start; also ns, us, ms, min, h\n"                         \
    "  mark:TEXT   the first mark with that text, see 'ttdanalyze marks'\n"                        \
    "A position need not exist: the nearest one before it is taken.\n"

/**
 * Finds the position. Leaves the reader at an undefined position.
 *
 * @return an exit status; on failure a message was printed
 */
int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position);

/** The message for a range whose bounds leave no position between them. */
#define POSITION_RANGE_EMPTY "the range is empty: --to is not after --from"

/** Whether a range has a position. Returns an exit status; if it has none, a message was printed.
 */
int position_range_check(const char *command, const struct source *source,
                         struct ttd_position begin, struct ttd_position end);

/* Opening the trace that a command line names. */

/** The trace that is read when none is named: ttdrecord's default. */
#define INPUT_DEFAULT "trace.bin"

/** Whether `path` stands for standard input. */
bool input_is_standard(const char *path);

/** The part of a path behind its folder. */
const char *input_name(const char *path);

/**
 * Opens a trace. "-" is standard input. An input that cannot be read at an offset, such as a pipe,
 * is first copied to a file without a name in $TMPDIR, readable by its owner only.
 *
 * @return TTD_OK, or the status with the reason in `error`.
 */
enum ttd_status input_open(const char *path, struct ttd_input *input, struct ttd_error *error);

/**
 * Reports why a trace cannot be read, and the type of a file that is no trace.
 *
 * @param error  the reason, if its status is `status` and it has a text
 * @return the exit status
 */
int input_fail(const char *path, enum ttd_status status, const struct ttd_error *error);

/** Recognizes a file that is no trace by its first bytes. Returns a static description such as "a
 * gzip file; unpack it first", or NULL. */
const char *input_recognise(const char *path);

/* A group: the traces that were recorded together, in one directory. */

struct group {
    struct report_member *members;
    size_t count;
    size_t capacity;
    /** Damaged files beside them that may be of the same recording; each was reported. */
    size_t unreadable;
    struct arena text;
};

/** Finds the trace `path` and all traces of its group in the same directory, whatever their names,
 * and sorts them by start. Indexes and unreadable files are left out. Returns an exit status; on
 * failure a message was printed. */
int group_find(const char *path, struct group *group);

void group_free(struct group *group);

#endif
