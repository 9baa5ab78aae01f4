/* SPDX-License-Identifier: MIT */
/* ttdanalyze fragmentation */
#include "cli/exit.h"
#include "cli/position_spec.h"
#include "cli/session.h"
#include "cli/sidecar.h"

static const char help[] =
    "Usage: ttdanalyze fragmentation [OPTIONS] [TRACE]\n"
    "\n"
    "Shows how densely the live blocks lie in memory: the regions that they are in, how\n"
    "much of them is used, and the gaps between blocks. What the allocator itself needs\n"
    "between blocks is part of the gaps.\n"
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

static int print(struct session *session, const struct fragmentation_options *options,
                 const struct heap_fragmentation *fragmentation)
{
    struct report_fragmentation data = {.fragmentation = fragmentation, .limit = options->limit};
    int status = session_output(session, true);
    if (status == STATUS_OK)
        session->options.format->fragmentation(&session->report, &data);
    return status;
}

static int execute(struct session *session, const void *context)
{
    const struct fragmentation_options *options = context;
    struct ttd_position at;
    int status = position_spec_resolve(&options->at, POSITION_FOR_STATE, &session->source, &at);
    if (status != STATUS_OK)
        return status;
    struct heap_trace trace = source_trace(&session->source);
    struct heap_fragmentation_options query = {.at = at, .gap = options->gap};
    struct heap_fragmentation fragmentation;
    struct ttd_error error = {.what = NULL};
    trace.keyframes = sidecar_use(session, at);
    enum ttd_status result = heap_fragmentation_find(&trace, &query, &fragmentation, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &fragmentation.outcome, at);
    status = print(session, options, &fragmentation);
    heap_fragmentation_free(&fragmentation);
    return status;
}

static const struct fragmentation_options defaults = {
    .at = {.kind = POSITION_SPEC_END}, .gap = UINT64_C(1) << 20, .limit = 50};

const struct command command_fragmentation = {
    .name = "fragmentation",
    .summary = "how densely live blocks lie in memory",
    .help = help,
    .own_options = own_options,
    .own_defaults = &defaults,
    .own_size = sizeof defaults,
    .execute = execute,
};
