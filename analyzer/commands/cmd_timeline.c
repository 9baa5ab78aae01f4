/* SPDX-License-Identifier: MIT */
/* ttdanalyze timeline */
#include <string.h>

#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "cli/session/session.h"
#include "report/activity/activity_reports.h"

#define POINTS_MAX 1000000

static const char help[] =
    "Usage: ttdanalyze timeline [OPTIONS] [TRACE]\n"
    "\n"
    "Plots how many bytes were live in the course of the trace, with the number of\n"
    "allocations and releases; or how much was allocated per second.\n"
    "\n"
    "      --over AXIS  time (the default): seconds from the start; or position: as many\n"
    "                   events in each point, with the position where it begins\n"
    "      --points N   at most N points (50), so many that each covers a round number;\n"
    "                   each shows the most that was live until the next\n"
    "      --plot WHAT  live (the default): bytes; allocations: calls per second; or\n"
    "                   allocated: bytes per second. JSON and CSV have all\n" ISLAND_OPTIONS_HELP
        VIEW_FILTERS_HELP COMMAND_COMMON_HELP;

struct timeline_options {
    struct heap_island_filter island;
    enum heap_axis axis;
    uint64_t points;
    enum timeline_plot plot;
};

static bool parse_plot(const char *argument, void *plot)
{
    static const char *const names[] = {
        [TIMELINE_LIVE] = "live",
        [TIMELINE_ALLOCATIONS] = "allocations",
        [TIMELINE_ALLOCATED] = "allocated",
    };
    size_t index = 0;
    bool is_known = option_name(argument, names, sizeof names / sizeof names[0], &index);
    *(enum timeline_plot *)plot = (enum timeline_plot)index;
    return is_known;
}

static bool parse_axis(const char *argument, void *axis)
{
    bool is_position = strcmp(argument, "position") == 0;
    *(enum heap_axis *)axis = is_position ? HEAP_AXIS_POSITION : HEAP_AXIS_TIME;
    return is_position || strcmp(argument, "time") == 0;
}

static const struct own_option own_options[] = {
    OWN_OPTION("over", parse_axis, struct timeline_options, axis),
    OWN_NUMBER("points", option_number, struct timeline_options, points, 2, POINTS_MAX),
    OWN_OPTION("plot", parse_plot, struct timeline_options, plot),
    ISLAND_OPTIONS(struct timeline_options, island), OWN_OPTIONS_END};

static enum ttd_status timeline_wants_stack(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

static int timeline_execute(struct session *session, const void *context)
{
    const struct timeline_options *options = context;
    /* Names come at the end of a trace, but decide which blocks count. */
    bool has_filter = view_has_filter(&session->options.view);
    int status = session_names(session, has_filter);
    if (status != STATUS_OK)
        return status;
    /* Amounts a second need times on either axis. */
    bool uses_times = options->axis == HEAP_AXIS_TIME || options->plot != TIMELINE_LIVE;
    if (uses_times && !source_has_times(&session->source))
        return source_fail_times(&session->source);
    struct heap_timeline timeline;
    struct question question = session_ask_all(session);
    struct heap_timeline_options query = {.axis = options->axis,
                                          .max = (size_t)options->points,
                                          .filter = has_filter ? timeline_wants_stack : NULL,
                                          .filter_context = session};
    status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result =
        heap_timeline_find(&question.trace, &query, &timeline, &question.error);
    status = session_answer(session, &question, result, &timeline.outcome);
    if (status != STATUS_OK)
        return status;
    status = session_output(session, true);
    struct report_timeline data = {.timeline = &timeline,
                                   .axis = options->axis,
                                   .plot = options->plot,
                                   .has_times = source_has_times(&session->source)};
    if (status == STATUS_OK)
        report_timeline(&session->report, &data);
    heap_timeline_free(&timeline);
    return status;
}

static const struct timeline_options defaults = {.axis = HEAP_AXIS_TIME, .points = 50};

const struct command command_timeline = {
    .name = "timeline",
    .summary = "how much was live in the course of time",
    .help = help,
    .shares = COMMAND_FILTERS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = timeline_execute,
};
