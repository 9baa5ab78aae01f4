/* SPDX-License-Identifier: MIT */
/** Comparing two heaps for ttdanalyze diff: of two traces, or of one at two positions. */
#ifndef ANALYZER_COMMANDS_CMD_COMPARE_H
#define ANALYZER_COMMANDS_CMD_COMPARE_H

#include "cli/options/command.h"
#include "cli/page/page_compress.h"
#include "cli/traces/position_spec.h"
#include "report/page/page_model.h"
#include "report/state/state_reports.h"
#include "travel/islands.h"

struct compare_options {
    /** Positions in the old and the new heap. */
    struct position_spec specs[HEAP_SIDES];
    /** Compares only blocks that were allocated in the islands that it selects. */
    struct heap_island_filter island;
    /** Changes to show at most; SIZE_MAX for all. */
    size_t limit;
    /** Blocks that the runtimes keep are compared as well. */
    bool shows_runtime;
    /** NULL to print; else set to the comparison as data of a page, packed, which belong to the
     * caller. They have groups that have not changed as well. */
    struct page_packed *page;
    /** The facts about that page. */
    const struct page_facts *facts;
};

/** With one trace it is compared with itself, by the identifiers of stacks. Returns the exit
 * status. */
int compare_heaps(const struct common_options *common, const struct compare_options *options);

#endif
