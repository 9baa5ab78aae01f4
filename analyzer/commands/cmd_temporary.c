/* SPDX-License-Identifier: MIT */
/* ttdanalyze temporary */
#include "commands/cmd_usage.h"

static const char help[] =
    "Usage: ttdanalyze temporary [OPTIONS] [TRACE]\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap call\n"
    "of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N           with at most N other calls of the thread between "
    "(0)\n" VIEW_HELP COMMAND_COMMON_HELP;

static const struct own_option own_options[] = {OWN_CHOICE("steps", option_number),
                                                OWN_OPTIONS_END};

static int execute(struct session *session, const void *context)
{
    const uint64_t *steps = context;
    return rank_usage(session, &(struct usage_question){
                                   .query = {.steps = *steps, .order = HEAP_RANK_BY_TEMPORARY},
                                   .unit = "temporary block",
                                   .weight = "temporary blocks",
                                   .print = session->options.format->temporary});
}

/* Calls between the two of a temporary block. */
static const uint64_t defaults = 0;

const struct command command_temporary = {
    .name = "temporary",
    .summary = "blocks freed as soon as they were allocated",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = execute,
};
