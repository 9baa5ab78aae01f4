/* SPDX-License-Identifier: MIT */
/** Ranking call sites for ttdanalyze hot and temporary. */
#ifndef ANALYZER_COMMANDS_CMD_USAGE_H
#define ANALYZER_COMMANDS_CMD_USAGE_H

#include "analyses/activity/usage.h"
#include "cli/session/session.h"

struct usage_question {
    /** The criterion of the ranking; its split and its islands are ignored, since the options
     * determine them. */
    struct heap_usage_options query;
    struct heap_island_filter island;
    /** See session_print_tree(). */
    const char *unit;
    const char *weight;
    /** The report of the format that is used where the options ask for no tree. */
    void (*print)(struct report *report, const struct heap_usage *usage);
};

/** Ranks the call sites and prints them. Returns the exit status. */
int rank_usage(struct session *session, const struct usage_question *asked);

#endif
