/* SPDX-License-Identifier: MIT */
/**
 * The reports about contents of memory: their data, and the functions that write them in all
 * forms. Nothing is owned.
 */
#ifndef ANALYZER_REPORT_MEMORY_MEMORY_REPORTS_H
#define ANALYZER_REPORT_MEMORY_MEMORY_REPORTS_H

#include "analyses/memory/heap_memory.h"
#include "analyses/reachability/referrers.h"
#include "report/sections/sections.h"

/** The memory that `memory` shows. */
struct report_memory {
    struct heap_memory *memory;
    /** The report reads pages: set to its first failure. */
    enum ttd_status status;
    struct ttd_error error;
};

/** The findings of `find`. */
struct report_search {
    const struct heap_search *search;
    const struct heap_search_options *options;
    /** The words that point at the block by a snapshot of references; NULL if there is none. */
    const struct heap_referrers *referrers;
};

/** Adds the reasons why contents of memory may be of different moments, or be missing: the
 * snapshots that cover the range, or would if they were complete. */
void report_judge_contents(struct certainty *certainty, const struct heap_memory *memory);

void report_memory(struct report *report, struct report_memory *data);
void report_matches(struct report *report, const struct report_search *data);

#endif
