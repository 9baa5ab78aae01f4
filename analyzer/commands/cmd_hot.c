/* SPDX-License-Identifier: MIT */
/* ttdanalyze hot */
#include "cli/options/own_options.h"
#include "commands/cmd_usage.h"
#include "report/activity/activity_reports.h"

#include <string.h>

static const char help[] =
    "Usage: ttdanalyze hot [OPTIONS] [TRACE]\n"
    "\n"
    "Shows which stacks allocate most: number of calls, bytes, and bytes times the seconds\n"
    "for which they lived.\n"
    "\n"
    "      --sort ORDER        the order: most calls, bytes (the default) or "
    "lifetime\n" ISLAND_OPTIONS_HELP VIEW_HELP COMMAND_COMMON_HELP;

struct hot_options {
    struct heap_island_filter island;
    enum heap_rank_order order;
};

/* Names of orders, by heap_rank_order. */
static const char *const orders[] = {"calls", "bytes", "lifetime"};

static bool parse_order(const char *argument, void *order)
{
    size_t index = 0;
    bool is_known = option_name(argument, orders, sizeof orders / sizeof orders[0], &index);
    *(enum heap_rank_order *)order = (enum heap_rank_order)index;
    return is_known;
}

static const struct own_option own_options[] = {
    OWN_OPTION("sort", parse_order, struct hot_options, order),
    ISLAND_OPTIONS(struct hot_options, island), OWN_OPTIONS_END};

static int hot_execute(struct session *session, const void *context)
{
    const struct hot_options *options = context;
    session->uses_times = true;
    return rank_usage(session, &(struct usage_question){.query = {.order = options->order},
                                                        .island = options->island,
                                                        .unit = "call",
                                                        .weight = orders[options->order],
                                                        .print = report_hot});
}

static const struct hot_options defaults = {.order = HEAP_RANK_BY_BYTES};

const struct command command_hot = {
    .name = "hot",
    .summary = "which stacks allocate most",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = hot_execute,
};
