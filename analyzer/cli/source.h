/* SPDX-License-Identifier: MIT */
/** The trace that a command reads: tolerant of damage, which it reports on standard error. */
#ifndef ANALYZER_CLI_SOURCE_H
#define ANALYZER_CLI_SOURCE_H

#include <ttdtrace/reader.h>

#include "cli/clock.h"
#include "cli/progress.h"
#include "cli/stamp.h"
#include "travel/trace.h"
#include "symbols/definitions.h"

/** Damaged places that are reported one by one. */
#define SOURCE_REPORTED_MAX 10

struct source {
    const char *path;
    struct ttd_reader *reader;
    /** In bytes, when it was opened; for progress. */
    uint64_t size;
    /** Whether there is an End chunk, and what it says. */
    bool is_closed;
    struct ttd_end end;
    /** Offsets of damage that was reported; the same is met in every pass over the file. */
    uint64_t reported[SOURCE_REPORTED_MAX];
    size_t reported_count;
    bool reported_more;
    /** The trace ends within a chunk; or it was not read to its end. */
    bool is_truncated;
    bool is_given_up;
    /** A position was asked for in percent, and the trace does not say of how many events: those
     * that are readable; else 0. */
    uint64_t part_of;
    /** The sidecar index, once it was asked for and if there is one; see sidecar_use(). */
    struct heap_keyframes keyframes;
    bool has_keyframes;
    /** Making one has failed: it is not tried again. */
    bool has_no_index;
    /** One is there that is not believed, which was said. */
    bool has_refused_index;
    /** The stamp of the file when it was opened. */
    struct stamp opened;
    /** Once source_is_intact() was asked. */
    bool is_judged;
    bool is_intact;
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

/** The trace for a query, whose hook shows progress and reports damage; without an index. */
struct heap_trace source_trace(struct source *source);

/** Whether wall times are known: the first chunk, which has their unit, was not lost. */
static inline bool source_has_times(const struct source *source)
{
    return ttd_reader_trace(source->reader)->time_unit != 0;
}

/** Reports that what was asked for depends on them; returns the exit status. */
int source_fail_times(const struct source *source);

/**
 * Whether the trace is what 'ttdanalyze verify' calls intact: what a certain verdict rests on.
 * Called when all was found: where that has not taken reading everything anyway, or an index of
 * this very file, everything is read now. Asked again, it says the same.
 */
bool source_is_intact(struct source *source);

/** Reports that reading failed; returns the exit status. */
int source_fail(struct source *source, enum ttd_status status, const struct ttd_error *error);

/** Reports damage, each place once. */
void source_damaged(struct source *source, const struct ttd_error *error);

/** Reports, once, that the trace ends within a chunk, or was not read to its end. */
void source_truncated(struct source *source, const struct ttd_error *error);

/**
 * Reads the whole trace and calls `hook` for each batch of the kinds, and of losses.
 * Unsupported content ends the reading without a message: the pass that needs it gives one.
 * Returns an exit status; on failure a message was printed.
 */
int source_read(struct source *source, uint32_t kinds, const struct heap_batch_hook *hook);

/** As source_read(), but checks all other chunks on the way as well: see source_is_intact(). */
int source_read_checked(struct source *source, uint32_t kinds, const struct heap_batch_hook *hook);

/** As source_read(), from where the reader is. The hook stops the reading with TTD_END. */
int source_read_on(struct source *source, const struct heap_batch_hook *hook);

/** Reads definitions of the kinds. Returns an exit status. */
int source_define(struct source *source, uint32_t kinds, struct definitions *definitions);

#endif
