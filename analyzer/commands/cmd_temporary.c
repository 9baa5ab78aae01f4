/* SPDX-License-Identifier: MIT */
/* ttdanalyze temporary */
#include "cli/options/own_options.h"
#include "commands/cmd_usage.h"
#include "report/activity/activity_reports.h"

static const char help[] =
    "Usage: ttdanalyze temporary [OPTIONS] [TRACE]\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap call\n"
    "of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N           with at most N other calls of the thread between "
    "(0)\n" ISLAND_OPTIONS_HELP VIEW_HELP COMMAND_COMMON_HELP;

struct temporary_options {
    struct heap_island_filter island;
    /** Calls between the two of a temporary block. */
    uint64_t steps;
};

static const struct own_option own_options[] = {
    OWN_OPTION("steps", option_number, struct temporary_options, steps),
    ISLAND_OPTIONS(struct temporary_options, island), OWN_OPTIONS_END};

static int temporary_execute(struct session *session, const void *context)
{
    const struct temporary_options *options = context;
    return rank_usage(session, &(struct usage_question){.query = {.steps = options->steps,
                                                                  .order = HEAP_RANK_BY_TEMPORARY},
                                                        .island = options->island,
                                                        .unit = "temporary block",
                                                        .weight = "temporary blocks",
                                                        .print = report_temporary});
}

static const struct temporary_options defaults = {.steps = 0};

const struct command command_temporary = {
    .name = "temporary",
    .summary = "blocks freed as soon as they were allocated",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = temporary_execute,
};
