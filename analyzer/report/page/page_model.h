/* SPDX-License-Identifier: MIT */
/**
 * The model of a page: the text that it is made of before compression. It has parts, each with a
 * name in a line of its own that begins with '#', and a JSON text behind it. Parts named like a
 * command are its output with `--format json`.
 */
#ifndef ANALYZER_REPORT_PAGE_PAGE_MODEL_H
#define ANALYZER_REPORT_PAGE_PAGE_MODEL_H

#include "analyses/activity/ticks.h"
#include "analyses/activity/usage.h"
#include "analyses/reachability/leaks.h"
#include "report/page/page_calls.h"
#include "report/page/sites.h"
#include "report/sections/sections.h"
#include "travel/islands.h"

/** The facts about a page that its parts do not have. */
struct page_facts {
    /** NULL for the trace's own. */
    const char *title;
    /** The names of all traces of the page, and the number of this one among them, from 1. */
    const char *const *paths;
    size_t path_count;
    size_t number;
    /** The options of the command, for the commands that the page names. */
    const struct view_options *filters;
    const struct heap_island_filter *island;
    struct ttd_position from;
    struct ttd_position last;
    bool reaches_end;
    bool has_times;
    /** The page has its trace in it. */
    bool is_exact;
    /** A snapshot at the end of the range or before shows which words point at which block. */
    bool has_snapshot;
};

/** Begins a part. */
void page_begin_part(struct text_output *output, const char *name);

/** Writes the part `facts`. */
void page_write_facts(struct report *report, const struct page_facts *facts);

struct page_heap {
    const struct heap_ticks *ticks;
    const struct heap_usage *usage;
    /** At the end of the range. */
    const struct heap_leaks *leaks;
    /** The tree that receives the frames of call sites. Written last, when all parts have added
     * theirs. */
    struct page_calls *calls;
    /** Limit on the call sites: PAGE_SITES_MAX, or SIZE_MAX. */
    size_t sites_max;
};

/**
 * Writes the part `heap`: ticks, series and call sites.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status page_write_heap(struct report *report, const struct page_heap *heap);

/**
 * Writes the part `stacks`, of an exact page: all stacks of the trace, with their numbers in the
 * tree.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status page_write_stacks(struct report *report, struct page_calls *calls);

/** Internals of the model. */

/** Writes changes as members: their records, as differences from one to the next, with the name
 * `key`; and their bytes and blocks. */
void page_changes_json(struct row *row, const char *key, const struct heap_tick_change *changes,
                       size_t count);

/** Writes the members `ticks`, `peak`, `spans` and `series`; the records of the series by stack are
 * call sites. */
void page_ticks_json(struct row *row, const struct heap_ticks *ticks);
enum ttd_status page_series_json(struct row *row, const struct heap_ticks *ticks,
                                 struct page_sites *sites);

/** Write members: the amounts that call sites have in the whole trace; the live sums at the peak,
 * as its tick and the differences from the tick's end; and the blocks that are lost, by kind, null
 * if no snapshot shows it. */
enum ttd_status page_usage_json(struct row *row, const struct heap_usage *usage,
                                struct page_sites *sites);
enum ttd_status page_peak_json(struct row *row, const struct heap_ticks *ticks,
                               struct page_sites *sites);
enum ttd_status page_lost_json(struct row *row, const struct heap_leaks *leaks,
                               struct page_sites *sites);

#endif
