/* SPDX-License-Identifier: MIT */
/**
 * The reports about a trace as a file: their data, and the functions that write them in all
 * forms. Nothing is owned.
 */
#ifndef ANALYZER_REPORT_TRACE_TRACE_REPORTS_H
#define ANALYZER_REPORT_TRACE_TRACE_REPORTS_H

#include <ttdtrace/event.h>
#include <ttdtrace/redact.h>
#include <ttdtrace/verify.h>

#include "analyses/trace/trace_stats.h"
#include "report/sections/report.h"
#include "report/sections/sections.h"
#include "symbols/fingerprint.h"
#include "travel/islands.h"

/** The contents of a trace, for `info`. */
struct report_info {
    const struct heap_trace_stats *stats;
    const struct ttd_trace *trace;
    bool is_closed;
    const struct ttd_end *end;
    uint64_t file_bytes;
    /** Metadata, in the order of the file. */
    const struct ttd_metadata *metadata;
    size_t metadata_count;
    /** Losses behind the ones in the statistics, if they were kept. */
    const struct ttd_loss *losses;
    size_t loss_count;
};

/** The function of the program that has the largest share of something. */
struct report_owner {
    /** False if there is nothing that it could have a share of. */
    bool is_known;
    struct view_label function;
    /** The stack of the function that has most. */
    ttd_id stack;
    /** From 0 to 1. */
    double share;
    uint64_t blocks;
    uint64_t bytes;
    /** Positions of its first and last allocation, of blocks that are lost. */
    struct ttd_position first;
    struct ttd_position last;
};

/** Calls that are errors, of one kind. */
struct report_error_count {
    /** Static. */
    const char *kind;
    uint64_t calls;
    bool is_certain;
};

/** Blocks and bytes. */
struct report_sum {
    uint64_t blocks;
    uint64_t bytes;
};

/** The answers of several commands, each in a line or two, for `summary`. */
struct report_summary {
    /** Text has only errors, losses and the peak, each in one line. */
    bool is_brief;
    struct report_info info;
    /** Size 0 if unknown. */
    struct ttd_string command;
    /** The blocks that an attached process had, as text; size 0 if there are none, or unknown. They
     * count as allocated. */
    struct ttd_string before;
    const struct heap_choice *choice;
    struct report_sum allocated;
    /** Threads that made calls; and the programs that the process was, one after the other. */
    uint64_t threads;
    uint64_t programs;
    struct ttd_position peak_position;
    struct report_sum peak;
    /** Recording was off before: blocks of the peak may have been released then. */
    bool has_gap_before_peak;
    struct report_owner peak_owner;
    /** The groups that these owners are of, by stack, the largest first. */
    const struct heap_groups *peak_groups;
    const struct heap_groups *lost_groups;
    /** A snapshot shows the lost ones among the blocks that were never released; if there is none,
     * `lost` has all of them, and nothing hangs below them. */
    bool has_snapshot;
    struct report_sum lost;
    struct report_sum below;
    struct report_sum possible;
    struct report_sum stale;
    /** Blocks that may have been released in a gap of recording, and those that ended with a
     * program that the process was before; in none of these sums. */
    struct report_sum unknown;
    struct report_sum left;
    struct report_owner lost_owner;
    struct report_sum temporary;
    struct report_owner temporary_owner;
    /** Reallocations, those that moved the block, and the bytes that these copied: at least, and at
     * most. */
    uint64_t reallocs;
    uint64_t moved;
    uint64_t copied;
    uint64_t copied_at_most;
    struct report_owner moves_owner;
    const struct report_error_count *errors;
    size_t error_count;
    /** The signal that the process died of, or NULL. */
    const struct ttd_fatal_signal *fatal;
};

/** The sums of a digest: of each call site, and of the trace. */
enum report_digest_sum {
    DIGEST_ALLOCATIONS,
    DIGEST_ALLOCATED_BYTES,
    DIGEST_TEMPORARY,
    DIGEST_TEMPORARY_BYTES,
    DIGEST_LIVE_BLOCKS,
    DIGEST_LIVE_BYTES,
    /** From here on unknown without a snapshot. */
    DIGEST_LOST_BLOCKS,
    DIGEST_LOST_BYTES,
    DIGEST_POSSIBLE_BLOCKS,
    DIGEST_POSSIBLE_BYTES,
    DIGEST_SUMS
};

/** The stacks of a trace that have one fingerprint. */
struct report_digest_site {
    struct fingerprint fingerprint;
    /** One of the stacks. */
    ttd_id stack;
    uint64_t sums[DIGEST_SUMS];
    /** Its largest share of a sum of the trace, from 0 to 1. */
    double share;
    /** The program's own function, by its canonical name, and its module; size 0 if unknown. */
    struct ttd_string function;
    struct ttd_string module;
};

/** A trace in one line, for `digest`. */
struct report_digest {
    struct report_info info;
    /** Of the trace's first module; NULL if there is none. */
    const struct definition_module *program;
    uint64_t sums[DIGEST_SUMS];
    bool has_snapshot;
    struct report_sum peak;
    /** Reallocations, and those that moved the block; and bytes that these copied, at least. */
    uint64_t reallocs;
    uint64_t moved;
    uint64_t copied_bytes;
    /** Calls that are errors. */
    uint64_t errors;
    /** All sites, and how many of them are listed: the first ones. */
    const struct report_digest_site *sites;
    size_t site_count;
    size_t listed;
};

/** One trace of a recording: the facts of its first chunk, its End and its metadata. */
struct report_member {
    const char *path;
    struct ttd_trace trace;
    uint64_t file_bytes;
    bool is_closed;
    struct ttd_end end;
    /** The total of the End chunk; the events that are there, if the trace is not closed. */
    uint64_t events;
    /** Size 0 if unknown. */
    struct ttd_string command;
    /** Other processes of the recording that the trace says to have no trace. */
    uint64_t unrecorded;
};

/** The traces of one recording, for `info --group`. */
struct report_group {
    const struct ttd_group *id;
    const struct report_member *members;
    size_t count;
};

/** One process of a family: the sums of its findings. */
struct report_family_member {
    struct report_member info;
    uint64_t count;
    uint64_t bytes;
    /** Whether its trace was read to the end of the question, and the first reason why its findings
     * are uncertain; NULL if they are certain. */
    bool is_read;
    const char *reason;
};

/** A call site's share of one process. */
struct report_share {
    struct report_share *next;
    /** Index of the member. */
    size_t member;
    uint64_t count;
    uint64_t bytes;
};

/** The findings of all processes at one call site. */
struct report_family_site {
    /** Static; empty if there is one kind only. Its rank, and the number of the site by its first
     * occurrence, order them. */
    const char *kind;
    unsigned rank;
    uint32_t number;
    struct frame *frames;
    size_t frame_count;
    /** See report_stack_is_cut(). */
    bool is_cut;
    uint64_t count;
    uint64_t bytes;
    struct report_share *shares;
    size_t share_count;
};

/** The sums of the processes of one recording, for `leaks --group` and its like. */
struct report_family {
    /** What is counted, and whether bytes are; what the sums are, for text. Static. */
    const char *unit;
    bool has_bytes;
    const char *title;
    struct report_family_member *members;
    size_t member_count;
    struct report_family_site *sites;
    size_t site_count;
    uint64_t count;
    uint64_t bytes;
    /** Blocks that programs left when they executed others; in none of these sums. */
    uint64_t left_blocks;
    uint64_t left_bytes;
    /** Blocks or findings that options leave out. */
    uint64_t suppressed;
    uint64_t known;
    /** Damaged traces that may belong here, and processes whose parent has no trace here. */
    size_t unreadable;
    size_t missing_parents;
    /** Processes of the recording that have no trace. */
    uint64_t unrecorded;
    /** Processes without a snapshot that have blocks which were never released. */
    uint64_t unsearched;
    /** Why the question has no answer: see session->report.unjudged. */
    const char *unjudged;
};

/** The parts of an event that `events` shows. */
struct report_events {
    bool shows_parameters;
    bool shows_stacks;
    /** Wall times are known. */
    bool has_times;
};

/** An event, and the facts about it that are not among its members. */
struct report_event {
    const struct ttd_event *event;
    const struct report_events *options;
    /** No loss is known before it. */
    bool is_certain;
};

/** The outcome of `verify`. */
struct report_verification {
    /** Result of checking the trace, without its index. */
    struct ttd_verdict verdict;
    /** The index that was compared with the trace; NULL for none. */
    const char *index;
    bool is_index_wrong;
};

/** The outcome of `recover`. */
struct report_recovery {
    const struct ttd_verdict *verdict;
    /** Name of the file that was written. */
    const char *result;
};

/** The outcome of `redact`. */
struct report_redaction {
    const struct ttd_redaction *removed;
    /** Strings were kept. */
    bool has_strings;
    /** Name of the file that was written. */
    const char *result;
};

/** The outcome of `import`. */
struct report_import {
    uint64_t events;
    /** Lines of the text, and those among them that meant nothing. */
    uint64_t lines;
    uint64_t ignored;
    /** Name of the file that was written. */
    const char *result;
};

/** The outcome of `slice`, `merge` and `repack`. */
struct report_remake {
    /** Name of the file that was written. */
    const char *result;
    /** Traces that it was made of. */
    size_t traces;
    uint64_t events;
    /** Of these, events from before a slice. */
    uint64_t kept;
    /** Events, other records, and chunks of unknown kinds, that are not in the new trace. */
    uint64_t left_out;
    uint64_t records_left_out;
    uint64_t unknown_chunks;
    /** Sizes of the sources, and of the new trace, in bytes. */
    uint64_t source_bytes;
    uint64_t bytes;
};

/** The index that `index` made. */
struct report_index {
    const char *file;
    uint64_t events;
    uint64_t keyframes;
    uint64_t summaries;
    uint64_t bytes;
};

/** Sets report->frames to the frames of an owner's stack, and returns the frame of its function;
 * NULL if there is none. */
const struct frame *summary_frame(struct report *report, const struct report_owner *owner);

void report_summary(struct report *report, const struct report_summary *data);
/** Writes one line of JSON. */
void report_digest(struct report *report, const struct report_digest *data);
void report_family(struct report *report, const struct report_family *data);
void report_recording(struct report *report, const struct report_group *data);
void report_info(struct report *report, const struct report_info *data);
/** Writes the text form of report_info(). */
void text_info(struct report *report, const struct report_info *data);
void report_snapshots(struct report *report, const struct heap_snapshot_list *list);

/** Begins a list of marks, and writes one of them, with its wall time if times are known. */
void report_marks_begin(struct report *report);
void report_mark(struct report *report, bool has_times, const struct heap_mark *mark);

/** Begins a list of events, and writes one of them. */
void report_events_begin(struct report *report, const struct report_events *options);
void report_event(struct report *report, const struct report_event *data);

/** Begins a list of problems, writes one of them, and ends the list with the verdict. `index`
 * counts problems from 0. */
void report_verify_begin(struct report *report);
void report_problem(struct report *report, const struct ttd_problem *problem, uint64_t index);
void report_verify_end(struct report *report, const struct report_verification *data);

void report_recover(struct report *report, const struct report_recovery *data);
void report_redact(struct report *report, const struct report_redaction *data);
void report_import(struct report *report, const struct report_import *data);
void report_remake(struct report *report, const struct report_remake *data);
void report_index(struct report *report, const struct report_index *data);

/* Properties of an event: each exists only for some actions, and a report leaves the others empty.
 */

static inline bool event_has_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
}

static inline bool event_has_base_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
}

static inline bool event_has_previous_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_REALLOC;
}

/** A Free has a size only if the function takes it as an argument, such as sized operator delete.
 */
static inline bool event_has_size(const struct ttd_event *event)
{
    return event_has_address(event) || (event->action == TTD_ACTION_FREE && event->size);
}

/* ---- Values of `info` that its formats share. ---- */

#define INFO_TIME_SIZE 32

/** Returns one word for how the process of a closed trace ended. Static. */
const char *info_end_reason(const struct report_info *data);

/** Whether the end has a code: an exit status or a signal. */
bool info_has_end_code(const struct report_info *data);

/** Returns the name of a processor architecture. Static. */
const char *info_architecture(uint32_t architecture);

/** Writes tables of the clients and the activities that the program has named; nothing if there are
 * none. */
void info_text_clients(struct text_output *output, const struct heap_clients *clients);

/** Whether the first chunk was read; it describes the process and its recording. */
static inline bool info_has_origin(const struct ttd_trace *trace)
{
    return trace->time_unit != 0;
}

/** Whether the process and its start are known: not in a trace of another recorder's data. */
static inline bool info_has_process(const struct ttd_trace *trace)
{
    return info_has_origin(trace) && (trace->process_id || trace->start_time);
}

/** Writes when the recording began, such as "2024-02-29T12:00:00Z". */
void info_start_time(const struct report_info *data, char text[INFO_TIME_SIZE]);

/** Size of the header of a chunk of pages, in bytes. */
#define INFO_PAGES_HEADER 8

/** Returns the number of bytes of memory contents in the trace. A page that several snapshots share
 * is stored, and counts, once. */
uint64_t info_memory_bytes(const struct heap_trace_stats *stats);

/** Returns the stored bytes of event chunks per event. */
double info_bytes_per_event(const struct heap_trace_stats *stats);

/* Events as rows, written by themselves: the text is the same as of `query`, which is several
 * times slower. */

/** The columns of an event, in the order of the table: X(number, name, type). */
#define EVENT_COLUMNS(X)                                                                           \
    X(NUMBER, "number", INTEGER)                                                                   \
    X(POSITION, "position", POSITION)                                                              \
    X(ACTION, "action", TEXT)                                                                      \
    X(API, "api", TEXT)                                                                            \
    X(HEAP, "heap", ADDRESS)                                                                       \
    X(HEAP_ID, "heap_id", INTEGER)                                                                 \
    X(ADDRESS, "address", ADDRESS)                                                                 \
    X(PREVIOUS_ADDRESS, "previous_address", ADDRESS)                                               \
    X(BASE_ADDRESS, "base_address", ADDRESS)                                                       \
    X(SIZE, "size", INTEGER)                                                                       \
    X(FLAGS, "flags", ADDRESS)                                                                     \
    X(RESULT, "result", INTEGER)                                                                   \
    X(TIME_START, "time_start", POSITION)                                                          \
    X(TIME_END, "time_end", POSITION)                                                              \
    X(WALL_TIME, "wall_time_ns", INTEGER)                                                          \
    X(THREAD, "thread", INTEGER)                                                                   \
    X(STACK_ID, "stack_id", INTEGER)

#define EVENT_COLUMN_NUMBER(id, name, type) EVENTS_##id,
enum event_column { EVENT_COLUMNS(EVENT_COLUMN_NUMBER) EVENTS_COLUMNS };
#undef EVENT_COLUMN_NUMBER

/** A writer of rows. */
struct report_rows;

/**
 * Begins the rows: CSV with its header, or lines of JSON, by the form of the report.
 *
 * @param has_times  wall times are known
 * @return NULL without memory
 */
struct report_rows *report_rows_begin(struct report *report, bool has_times);

/** Writes an event. The definitions of the report must have its heap. */
void report_rows_add(struct report_rows *rows, const struct ttd_event *event);

/** Ends the rows, and releases the writer. */
void report_rows_end(struct report_rows *rows);

#endif
