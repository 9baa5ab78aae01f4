/* SPDX-License-Identifier: MIT */
/** A source: the trace that a command reads. Tolerant of damage, and reports it on standard
 * error. */
#ifndef ANALYZER_CLI_SOURCE_H
#define ANALYZER_CLI_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <ttdtrace/reader.h>

#include "cli/traces/clock.h"
#include "symbols/trace_definitions.h"
#include "travel/heap_trace.h"
#include "travel/position_text.h"

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

#endif
