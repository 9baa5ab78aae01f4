/* SPDX-License-Identifier: MIT */
/* ttdanalyze fragmentation */
#include "cli/process/exit.h"
#include "cli/session/session.h"
#include "report/state/state_reports.h"

static const char help[] =
    "Usage: ttdanalyze fragmentation [OPTIONS] [TRACE]\n"
    "\n"
    "Shows how densely the live blocks lie in memory: the regions that they are in, how\n"
    "much of them is used, and the gaps between blocks. What the allocator itself needs\n"
    "between blocks is part of the gaps. Pages of 4,096 bytes with less than a quarter in\n"
    "blocks are sparse: the call sites whose blocks keep most of them come last.\n"
    "\n"
    "      --at POSITION  at that position; the end if not given\n"
    "      --gap N        a gap of N bytes or more separates regions (1M)\n"
    "      --limit N      show at most N regions (50; 0 for all). Totals count "
    "all\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct fragmentation_options {
    struct position_spec at;
    uint64_t gap;
    size_t limit;
};

static const struct own_option own_options[] = {
    OWN_OPTION("at", option_position, struct fragmentation_options, at),
    OWN_NUMBER("gap", option_size, struct fragmentation_options, gap, 1, UINT64_MAX),
    OWN_OPTION("limit", option_limit, struct fragmentation_options, limit), OWN_OPTIONS_END};

static int fragmentation_print(struct session *session, const struct fragmentation_options *options,
                               struct heap_fragmentation *fragmentation)
{
    session->report.limit = options->limit;
    struct heap_site_table sites = heap_sparse_site_table(&fragmentation->sparse);
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status == STATUS_OK)
        report_fragmentation(&session->report, fragmentation);
    return status;
}

static int fragmentation_execute(struct session *session, const void *context)
{
    const struct fragmentation_options *options = context;
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_fragmentation_options query = {.at = question.at, .gap = options->gap};
    struct heap_fragmentation fragmentation;
    enum ttd_status result =
        heap_fragmentation_find(&question.trace, &query, &fragmentation, &question.error);
    status = session_answer(session, &question, result, &fragmentation.outcome);
    if (status != STATUS_OK)
        return status;
    status = fragmentation_print(session, options, &fragmentation);
    heap_fragmentation_free(&fragmentation);
    return status;
}

static const struct fragmentation_options defaults = {
    .at = {.kind = POSITION_SPEC_END}, .gap = UINT64_C(1) << 20, .limit = 50};

const struct command command_fragmentation = {
    .name = "fragmentation",
    .summary = "how densely live blocks lie in memory",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = fragmentation_execute,
};
