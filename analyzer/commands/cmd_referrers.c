/* SPDX-License-Identifier: MIT */
/* ttdanalyze referrers */
#include "cli/exit.h"
#include "cli/message.h"
#include "cli/numbers.h"
#include "cli/position_spec.h"
#include "cli/session.h"
#include "cli/sidecar.h"

enum { OPTION_AT = OPTION_FIRST, OPTION_ADDRESS, OPTION_LEVELS, OPTION_LIMIT };

static const struct option own_options[] = {{"at", required_argument, NULL, OPTION_AT},
                                            {"address", required_argument, NULL, OPTION_ADDRESS},
                                            {"depth", required_argument, NULL, OPTION_LEVELS},
                                            {"limit", required_argument, NULL, OPTION_LIMIT},
                                            {NULL, 0, NULL, 0}};

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
    uint64_t address;
    bool has_address;
    uint64_t depth;
    uint64_t limit;
};

static bool parse_option(void *context, int option, const char *argument)
{
    struct referrers_options *options = context;
    switch (option) {
    case OPTION_AT:
        return position_spec_parse(argument, &options->at);
    case OPTION_ADDRESS:
        options->has_address = true;
        return number_parse(argument, &options->address);
    case OPTION_LEVELS:
        return number_parse(argument, &options->depth) && options->depth &&
               options->depth <= HEAP_REFERRERS_DEPTH_MAX;
    default:
        return number_parse(argument, &options->limit) && options->limit &&
               options->limit <= WIDTH_MAX;
    }
}

static int print(struct session *session, const struct referrers_options *options,
                 const struct heap_referrers *referrers)
{
    struct report_referrers data = {.referrers = referrers, .address = options->address};
    certainty_add_snapshot(&session->report.certainty, &referrers->reach.snapshot,
                           referrers->reach.misplaced);
    int status = session_names(session, referrers->target != GRAPH_NONE);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status == STATUS_OK)
        session->options.format->referrers(&session->report, &data);
    return status;
}

static int execute(struct session *session, const void *context)
{
    const struct referrers_options *options = context;
    struct ttd_position at;
    if (!options->has_address)
        return message_usage("referrers", "no address is given: use --address");
    int status = position_spec_resolve(&options->at, POSITION_FOR_STATE, &session->source, &at);
    if (status != STATUS_OK)
        return status;
    struct heap_trace trace = source_trace(&session->source);
    struct heap_referrers_options query = {.at = at,
                                           .address = options->address,
                                           .depth = (size_t)options->depth,
                                           .width = (size_t)options->limit};
    struct heap_referrers referrers;
    struct ttd_error error = {.what = NULL};
    trace.keyframes = sidecar_use(session, at);
    enum ttd_status result = heap_referrers_find(&trace, &query, &referrers, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &referrers.outcome, at);
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
    .own_options = own_options,
    .parse_option = parse_option,
    .own_defaults = &defaults,
    .own_size = sizeof defaults,
    .execute = execute,
};
