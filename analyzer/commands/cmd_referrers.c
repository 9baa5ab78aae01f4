/* SPDX-License-Identifier: MIT */
/* ttdanalyze referrers */
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"

static const char help[] =
    "Usage: ttdanalyze referrers --address A [OPTIONS] [TRACE]\n"
    "\n"
    "Shows who points at the block that the address A lies in, who points at those, and so\n"
    "on up to the variables, stacks, registers and mappings that hold it; the shortest path\n"
    "first. It takes a snapshot of references: the newest at the position or before.\n"
    "\n"
    "      --at POSITION  as of that position; the end if not given\n"
    "      --address A    the address\n"
    "      --depth N      at most N levels (32)\n"
    "      --limit N      at most N pointers to the block (8), and on each level above half\n"
    "                     as many, but one at least\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

#define WIDTH_MAX 65536

struct referrers_options {
    struct position_spec at;
    struct given_number address;
    uint64_t depth;
    uint64_t limit;
};

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct referrers_options, at),
    OWN_OPTION("address", option_given, struct referrers_options, address),
    OWN_NUMBER("depth", option_number, struct referrers_options, depth, 1,
               HEAP_REFERRERS_DEPTH_MAX),
    OWN_NUMBER("limit", option_number, struct referrers_options, limit, 1, WIDTH_MAX),
    OWN_OPTIONS_END};

static int print(struct session *session, const struct referrers_options *options,
                 const struct heap_referrers *referrers)
{
    struct report_referrers data = {.referrers = referrers, .address = options->address.value};
    certainty_add_snapshot(&session->report.certainty, &referrers->reach.snapshot,
                           referrers->reach.misplaced);
    int status = session_begin_report(session, referrers->target != GRAPH_NONE);
    if (status == STATUS_OK)
        session->options.format->referrers(&session->report, &data);
    return status;
}

static int execute(struct session *session, const void *context)
{
    const struct referrers_options *options = context;
    struct question question;
    if (!options->address.is_given)
        return message_usage("referrers", "no address is given: use --address");
    int status = session_ask_runtime(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_referrers_options query = {.at = question.at,
                                           .address = options->address.value,
                                           .depth = (size_t)options->depth,
                                           .width = (size_t)options->limit};
    struct heap_referrers referrers;
    enum ttd_status result =
        heap_referrers_find(&question.trace, &query, &referrers, &question.error);
    status = session_answer(session, &question, result, &referrers.outcome);
    if (status != STATUS_OK)
        return status;
    status = print(session, options, &referrers);
    heap_referrers_free(&referrers);
    return status;
}

static const struct referrers_options defaults = {
    .at = {.kind = POSITION_SPEC_END}, .depth = 32, .limit = 8};

const struct command command_referrers = {
    .name = "referrers",
    .summary = "who points at a block, up to what holds it",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = execute,
};
