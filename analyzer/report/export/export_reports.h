/* SPDX-License-Identifier: MIT */
/** Blocks by stack as a profile for the viewers of other projects. */
#ifndef ANALYZER_REPORT_EXPORT_EXPORT_REPORTS_H
#define ANALYZER_REPORT_EXPORT_EXPORT_REPORTS_H

#include "analyses/activity/timeline.h"
#include "analyses/reachability/referrers.h"
#include "analyses/reachability/retained.h"
#include "heap/replay.h"
#include "report/sections/report.h"
#include "report/sections/sections.h"
#include "travel/islands.h"
#include "view/tree.h"

/** The blocks of a profile. */
enum report_measure { REPORT_LIVE, REPORT_PEAK, REPORT_ALLOCATED, REPORT_TEMPORARY };

/** Blocks by stack, and the trace that they are of. Nothing is owned. */
struct report_profile {
    const struct heap_groups *groups;
    const struct ttd_trace *trace;
    enum report_measure measure;
    /** The tree of calls of the groups, for formats that are one; else NULL. */
    const struct view_tree *tree;
};

/** Returns the blocks in words: "live", "live at the peak", "allocated", "temporary". Static. */
const char *report_measure_words(enum report_measure measure);

/** Writes a profile.proto of pprof, not compressed. */
void report_profile_pprof(struct report *report, const struct report_profile *data);

/** Writes speedscope's JSON: a profile of bytes and one of blocks. */
void report_profile_speedscope(struct report *report, const struct report_profile *data);

/** Writes the tree as a flame graph: an SVG without scripts. */
void report_profile_svg(struct report *report, const struct report_profile *data);

/** Writes the tree as a profile for the Firefox Profiler. */
void report_profile_firefox(struct report *report, const struct report_profile *data);

/** Writes costs of functions and calls for callgrind_annotate and KCachegrind. */
void report_profile_callgrind(struct report *report, const struct report_profile *data);

/* The frames of a profile, each of them once: internals of the formats that have such a table. */

/** The frames of one address: `count` from `first` on, innermost first. */
struct profile_site {
    struct ttd_stack stack;
    size_t first;
    size_t count;
};

/** Addresses and their frames, numbered in the order in which they are met; and the addresses of
 * the stack that was walked last, innermost first. All zero but for `report` when empty, with
 * map_init() of the map. */
struct profile_table {
    struct report *report;
    struct hash_map by_address;
    struct profile_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    uint32_t *path;
    size_t path_count;
    size_t path_capacity;
    struct frame_list scratch;
};

void profile_free(struct profile_table *table);

/** Sets the path to the addresses of a stack; a stack that is not defined ends it. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
enum ttd_status profile_walk(struct profile_table *table, ttd_id id);

/* The memory of a program in the course of time. */

/** A timeline, and the tree of calls at the peak, from the allocating function outward. */
struct report_course {
    const struct ttd_trace *trace;
    const struct heap_timeline *timeline;
    struct ttd_position peak;
    /** For massif. */
    const struct view_tree *tree;
    /** Without times, a point of the timeline begins with the number of an event. */
    bool has_times;
};

/** Levels that the tree for massif may have: ms_print is recursive. */
#define REPORT_MASSIF_LEVELS 90

/** Writes snapshots for ms_print and Massif-Visualizer; the peak's has the tree. */
void report_profile_massif(struct report *report, const struct report_course *data);

/** Write trace events for Perfetto and Chrome: counters and threads, then marks, one after the
 * other, then the end. With times only. */
void report_chrome_begin(struct report *report, const struct report_course *data);
void report_chrome_mark(struct report *report, const struct ttd_trace *trace,
                        const struct heap_mark *mark);
void report_chrome_end(struct report *report);

/* The blocks of a snapshot. */

/** A dominator tree, or the pointers to the block at an address: the other one is NULL. */
struct report_graph {
    const struct heap_retained *retained;
    const struct heap_referrers *referrers;
    uint64_t address;
};

/** Writes a graph for Graphviz; its levels are at most HEAP_RETAINED_DEPTH_MAX. */
void report_graphviz(struct report *report, const struct report_graph *graph);

/* A trace in the format of heaptrack, as heaptrack_print and heaptrack_gui read it: every
 * allocation and every release, with time. */

struct heaptrack_writer;

/** The choice of the blocks that are written. */
struct heaptrack_choice {
    /** Heaps with a parent are left out: their blocks lie in blocks that are written. Set before
     * the first effect. */
    const struct heap_parents *parents;
    /** NULL if the blocks of all stacks are wanted. */
    heap_stack_filter filter;
    void *filter_context;
};

/** Begins the file. @return NULL without memory. */
struct heaptrack_writer *report_heaptrack_begin(struct report *report,
                                                const struct heaptrack_choice *choice);

/** Writes an effect; for an observer of all effects, whose context is the writer. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or the filter's status. */
enum ttd_status report_heaptrack_effect(void *context, const struct heap_effect *effect);

/** Completes the file, with the certainty of the report if it is complete, and releases the
 * writer. */
void report_heaptrack_end(struct heaptrack_writer *writer, bool is_complete);

#endif
