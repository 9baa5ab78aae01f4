/* SPDX-License-Identifier: MIT */
/* ttdanalyze referrers */
#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "commands/findings.h"
#include "report/reachability/reachability_reports.h"

static const char help[] =
    "Usage: ttdanalyze referrers [--address A | --group N] [OPTIONS] [TRACE]\n"
    "\n"
    "Shows who points at the block that the address A lies in, who points at those, and so\n"
    "on up to the variables, stacks, registers and mappings that hold it; the shortest path\n"
    "first. It takes a snapshot of references: the newest at the position or before.\n"
    "\n"
    "      --at POSITION  as of that position; the end if not given\n"
    "      --address A    the address\n"
    "      --group N      the first block of group N of 'leaks', with the same options as\n"
    "                     below; if neither is given group 1, or if 'leaks' lists\n"
    "                     none the largest group of live blocks\n"
    "      --depth N      at most N levels (32)\n"
    "      --limit N      at most N pointers to the block (8), and on each level above half\n"
    "                     as many, but one at least\n"
    "\n"
    "What leaks takes, and chooses its groups by: --show, --by, --skip, --include,\n"
    "--exclude, --suppressions, --baseline, --client and --activity.\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

#define WIDTH_MAX 65536

struct referrers_options {
    struct position_spec at;
    struct given_number address;
    uint64_t group;
    struct heap_island_filter island;
    /** Kinds of blocks, for the group; 0 if not given. */
    unsigned kinds;
    uint64_t depth;
    uint64_t limit;
};

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct referrers_options, at),
    OWN_OPTION("address", option_given, struct referrers_options, address),
    OWN_NUMBER("group", option_number, struct referrers_options, group, 1, UINT32_MAX),
    OWN_OPTION("show", leaks_parse_kinds, struct referrers_options, kinds),
    ISLAND_OPTIONS(struct referrers_options, island),
    OWN_NUMBER("depth", option_number, struct referrers_options, depth, 1,
               HEAP_REFERRERS_DEPTH_MAX),
    OWN_NUMBER("limit", option_number, struct referrers_options, limit, 1, WIDTH_MAX),
    OWN_OPTIONS_END};

/* Whether an option is given that chooses groups. */
static bool chooses_groups(const struct session *session, const struct referrers_options *options)
{
    const struct view_options *view = &session->options.view;
    return options->kinds || heap_island_filter_is_given(&options->island) ||
           view_has_filter(view) || view->skip.count || view->by != VIEW_BY_STACK ||
           known_findings_are_needed(&session->known_findings);
}

/* An option that has no effect is refused. */
static int referrers_check(const struct session *session, const struct referrers_options *options)
{
    const struct known_findings_options *known = &session->options.known_findings;
    if (options->address.is_given && options->group)
        return message_usage("referrers", "either --address or --group: not both");
    if (options->address.is_given && chooses_groups(session, options))
        return message_usage("referrers", "options that choose groups are for --group, and do "
                                          "not apply to --address");
    if (known->written_baseline || known->fails_on_growth)
        return message_usage("referrers", "--write-baseline and --fail-on-growth are for leaks");
    return STATUS_OK;
}

/* Finds the address of the first block of the group. */
static int referrers_find_address(struct session *session, const struct referrers_options *options,
                                  struct report_referrers *data, struct heap_group *group)
{
    struct leaks_choice choice = {&options->at, &options->island,
                                  options->kinds ? options->kinds : leaks_default_kinds()};
    data->address = options->address.value;
    if (options->address.is_given)
        return STATUS_OK;
    data->number = options->group || !chooses_groups(session, options) ? options->group : 1;
    int status = leaks_find_group(session, &choice, &data->number, group);
    data->group = group;
    data->address = group->address;
    return status;
}

static int referrers_print(struct session *session, struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    certainty_add_snapshot(&session->report.certainty, &referrers->reach.snapshot,
                           referrers->reach.misplaced);
    int status = session_begin_report(session, referrers->target != GRAPH_NONE);
    if (status == STATUS_OK)
        report_referrers(&session->report, data);
    return status;
}

static int referrers_execute(struct session *session, const void *context)
{
    const struct referrers_options *options = context;
    struct question question;
    struct report_referrers data = {.group = NULL};
    struct heap_group group = {.address = 0};
    int status = referrers_check(session, options);
    if (status == STATUS_OK)
        status = referrers_find_address(session, options, &data, &group);
    if (status == STATUS_OK)
        status = session_ask_runtime(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_referrers_options query = {.at = question.at,
                                           .address = data.address,
                                           .depth = (size_t)options->depth,
                                           .width = (size_t)options->limit};
    struct heap_referrers referrers;
    enum ttd_status result =
        heap_referrers_find(&question.trace, &query, &referrers, &question.error);
    status = session_answer(session, &question, result, &referrers.outcome);
    if (status != STATUS_OK)
        return status;
    data.referrers = &referrers;
    status = referrers_print(session, &data);
    heap_referrers_free(&referrers);
    return status;
}

static const struct referrers_options defaults = {
    .at = {.kind = POSITION_SPEC_END}, .depth = 32, .limit = 8};

const struct command command_referrers = {
    .name = "referrers",
    .summary = "pointers to a block, up to the root that holds it",
    .help = help,
    .shares = COMMAND_FILTERS | COMMAND_KEYS | COMMAND_KNOWN_FINDINGS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = referrers_execute,
};
