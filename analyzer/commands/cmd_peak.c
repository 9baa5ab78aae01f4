/* SPDX-License-Identifier: MIT */
/* ttdanalyze peak */
#include "analyses/state/peak.h"
#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"
#include "commands/family.h"
#include "report/state/state_reports.h"

static const char help[] =
    "Usage: ttdanalyze peak [OPTIONS] [TRACE]\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n"
    "      --show-runtime      list also the blocks that the C and C++ runtimes keep for\n"
    "                          themselves until the end\n" FAMILY_HELP ISLAND_OPTIONS_HELP VIEW_HELP
        COMMAND_COMMON_HELP;

struct peak_options {
    struct heap_island_filter island;
    bool is_group;
    bool shows_runtime;
};

static const struct own_option own_options[] = {
    OWN_OPTION("group", option_flag, struct peak_options, is_group),
    OWN_OPTION("show-runtime", option_flag, struct peak_options, shows_runtime),
    ISLAND_OPTIONS(struct peak_options, island), OWN_OPTIONS_END};

static int peak_print(struct session *session, const struct peak_options *options,
                      struct heap_peak_state *state)
{
    struct heap_site_table sites = heap_groups_site_table(&state->groups);
    int status = session_runtime(session, &state->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    session_lead_with_functions(session);
    if (status == STATUS_OK && !session_print_tree(session, "block", "bytes"))
        report_peak(&session->report, state);
    return status;
}

static int peak_ask(struct session *session, const struct peak_options *options,
                    struct heap_peak_state *peak)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace;
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    struct heap_peak_state_options query = {.split = view_split(&session->options.view)};
    status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_peak_state_find(&trace, &query, peak, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &peak->outcome, ttd_position_max());
    return STATUS_OK;
}

static int peak_execute(struct session *session, const void *context)
{
    const struct peak_options *options = context;
    struct heap_peak_state peak;
    int status = session_refuse_in_tree(session, options->shows_runtime, "--show-runtime");
    if (status == STATUS_OK)
        status = peak_ask(session, options, &peak);
    if (status != STATUS_OK)
        return status;
    status = peak_print(session, options, &peak);
    heap_peak_state_free(&peak);
    return status;
}

/* Adds the blocks that one process had at its own peak. */
static int peak_add_member(struct session *session, const void *options, struct family *family,
                           bool *is_error)
{
    struct heap_peak_state peak;
    int status = peak_ask(session, options, &peak);
    (void)is_error;
    if (status != STATUS_OK)
        return status;
    struct heap_site_table sites = heap_groups_site_table(&peak.groups);
    status = session_view(session, &sites);
    for (size_t i = 0; i < peak.groups.count && status == STATUS_OK; i++) {
        const struct heap_group *group = &peak.groups.items[i];
        struct family_finding finding = {.kind = "",
                                         .stacks = {group->key.stack},
                                         .count = group->blocks,
                                         .bytes = group->bytes};
        status = session_check(session, family_add(family, session, &finding));
    }
    heap_peak_state_free(&peak);
    return status;
}

static const struct peak_options defaults = {.shows_runtime = false};

static int peak_run(const struct command *command, int count, char **arguments)
{
    static const struct family_question question = {.unit = "block",
                                                    .has_bytes = true,
                                                    .title = "each at its own peak, at most",
                                                    .collect = peak_add_member};
    struct peak_options options = defaults;
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    if (options.is_group && options.shows_runtime)
        return message_usage("peak", "--show-runtime is for one trace, not for --group");
    return options.is_group ? family_run(&common, &question, &options, 0)
                            : session_execute(&common, &options);
}

const struct command command_peak = {
    .name = "peak",
    .summary = "when most bytes were live, and whose",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own = {own_options, &defaults, sizeof defaults},
    .run = peak_run,
    .execute = peak_execute,
};
