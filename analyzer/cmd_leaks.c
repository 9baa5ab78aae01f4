/* SPDX-License-Identifier: MIT */
/* ttdanalyze leaks */
#include "cli/exit.h"
#include "cli/position_spec.h"
#include "cli/numbers.h"
#include "cli/session.h"
#include "cli/sidecar.h"
#include "analyses/errors.h"

enum { OPTION_AT = OPTION_FIRST, OPTION_ERROR, OPTION_RUNTIME };

static const struct option own_options[] = {
    {"at", required_argument, NULL, OPTION_AT},
    {"error-exitcode", required_argument, NULL, OPTION_ERROR},
    {"show-runtime", no_argument, NULL, OPTION_RUNTIME},
    {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze leaks [OPTIONS] [TRACE]\n"
    "\n"
    "Lists the blocks that were never released, grouped by the stack that allocated\n"
    "them, those with the most bytes first.\n"
    "\n"
    "      --at POSITION       what was live at that moment instead of at the end\n"
    "      --show-runtime      list as well what the C and C++ runtimes keep for\n"
    "                          themselves until the end, which is not a leak\n"
    "      --error-exitcode N  exit with status N if there are leaks\n" KNOWN_FINDINGS_HELP
        VIEW_HELP COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS "\n"
    "If events were lost, or the trace is incomplete, a block that seems leaked may have\n"
    "been released: lines that begin with \"Uncertain\" say so.\n";

struct leaks_options {
    bool has_at;
    struct position_spec at;
    uint64_t error_status;
    bool shows_runtime;
};

static bool parse_option(void *context, int option, const char *argument)
{
    struct leaks_options *options = context;
    switch (option) {
    case OPTION_AT:
        options->has_at = true;
        return position_spec_parse(argument, &options->at);
    case OPTION_ERROR:
        return number_parse(argument, &options->error_status) && options->error_status < 256;
    default:
        options->shows_runtime = true;
        return true;
    }
}

/* Leaves out what is known. */
static int judge_groups(struct session *session, struct heap_groups *groups)
{
    size_t kept = 0;
    int status = STATUS_OK;
    if (!known_findings_are_needed(&session->known_findings))
        return STATUS_OK;
    for (size_t i = 0; i < groups->count && status == STATUS_OK; i++) {
        const struct heap_group *group = &groups->items[i];
        struct finding finding = {.kind = SUPPRESS_LEAK,
                                  .api = group->api,
                                  .stacks = {group->key.stack},
                                  .count = group->blocks,
                                  .amount = group->bytes};
        bool is_new = false;
        status = session_judge(session, &finding, &is_new);
        if (is_new)
            groups->items[kept++] = *group;
    }
    groups->count = kept;
    struct heap_site_table sites = heap_groups_site_table(groups);
    sites.recount(groups);
    return status == STATUS_OK ? session_end_known_findings(session) : status;
}

/* Groups the leaks as the options say, and what the runtimes keep in the same way. */
static int view_groups(struct session *session, const struct leaks_options *options,
                       struct heap_leaks *leaks)
{
    struct heap_site_table groups = heap_groups_site_table(&leaks->groups);
    int status = session_runtime(session, &leaks->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = session_filter(session, &groups);
    if (status == STATUS_OK)
        status = judge_groups(session, &leaks->groups);
    return status == STATUS_OK ? session_group(session, &groups) : status;
}

static int print(struct session *session, const struct leaks_options *options,
                 struct heap_leaks *leaks, struct ttd_position at)
{
    session_outcome(session, &leaks->outcome, at);
    int status = view_groups(session, options, leaks);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status != STATUS_OK || session_print_tree(session, "block", "bytes"))
        return status;
    struct report_leaks data = {.leaks = leaks,
                                .limit = session->options.view.limit,
                                .is_at_end = ttd_position_compare(at, ttd_position_max()) == 0,
                                .has_early_blocks = heap_has_early_blocks(session->source.reader)};
    session->options.format->leaks(&session->report, &data);
    return STATUS_OK;
}

static int execute(struct session *session, const void *context)
{
    const struct leaks_options *options = context;
    struct ttd_position at;
    session->needs_known_patterns = options->error_status;
    int status = position_spec_resolve(&options->at, POSITION_FOR_STATE, &session->source, &at);
    if (status != STATUS_OK)
        return status;
    struct heap_leaks leaks;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace;
    status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use(session, at);
    struct heap_leaks_options query = {.at = at, .split = view_split(&session->options.view)};
    enum ttd_status result = heap_leaks_find(&trace, &query, &leaks, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    status = print(session, options, &leaks, at);
    if (status == STATUS_OK)
        status = known_findings_exit(&session->known_findings, leaks.groups.blocks,
                                     options->error_status);
    heap_leaks_free(&leaks);
    return status;
}

static const struct leaks_options defaults = {.at = {.kind = POSITION_SPEC_END}};

const struct command command_leaks = {
    .name = "leaks",
    .summary = "blocks that were never released, by stack",
    .help = help,
    .shares = COMMAND_VIEWS | COMMAND_KNOWN_FINDINGS,
    .own_options = own_options,
    .parse_option = parse_option,
    .own_defaults = &defaults,
    .own_size = sizeof defaults,
    .execute = execute,
};
