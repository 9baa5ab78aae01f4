/* SPDX-License-Identifier: MIT */
/* Commands about activity over time: hot, temporary, lifetimes, moves, timeline. */
#include <string.h>

#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "analyses/activity/usage.h"
#include "commands/findings.h"
#include "report/activity/activity_reports.h"
#include "report/sections/sections.h"

/* Ranking call sites for ttdanalyze hot and temporary. */

struct usage_question {
    /** The criterion of the ranking; its split and its islands are ignored, since the options
     * determine them. */
    struct heap_usage_options query;
    struct heap_island_filter island;
    /** See session_print_tree(). */
    const char *unit;
    const char *weight;
    /** The report of the format that is used where the options ask for no tree. */
    void (*print)(struct report *report, const struct heap_usage *usage);
};

/* Ranks the call sites and prints them. Returns the exit status. */
static int activity_rank_usage(struct session *session, const struct usage_question *asked)
{
    struct heap_usage usage;
    struct question question = session_ask_all(session);
    struct heap_usage_options query = asked->query;
    query.split = view_split(&session->options.view);
    int status = session_islands(session, &asked->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_usage_find(&question.trace, &query, &usage, &question.error);
    status = session_answer(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    struct heap_site_table sites = heap_usage_site_table(&usage);
    status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    /* There are no shares of lifetimes. */
    if (asked->query.order != HEAP_RANK_BY_LIFETIME)
        session_lead_with_functions(session);
    if (status == STATUS_OK && !session_print_tree(session, asked->unit, asked->weight))
        asked->print(&session->report, &usage);
    heap_usage_free(&usage);
    return status;
}

/* ttdanalyze hot */

static const char hot_help[] =
    "Usage: ttdanalyze hot [OPTIONS] [TRACE]\n"
    "\n"
    "Shows which stacks allocate most: number of calls, bytes, and bytes times the\n"
    "seconds for which they lived.\n"
    "\n"
    "      --sort ORDER        the order: most calls, bytes (the default) or "
    "lifetime\n" ISLAND_OPTIONS_HELP VIEW_HELP COMMAND_COMMON_HELP;

struct hot_options {
    struct heap_island_filter island;
    enum heap_rank_order order;
};

/* Names of orders, by heap_rank_order. */
static const char *const hot_orders[] = {"calls", "bytes", "lifetime"};

static bool hot_parse_order(const char *argument, void *order)
{
    size_t index = 0;
    bool is_known =
        option_name(argument, hot_orders, sizeof hot_orders / sizeof hot_orders[0], &index);
    *(enum heap_rank_order *)order = (enum heap_rank_order)index;
    return is_known;
}

static const struct own_option hot_own[] = {
    OWN_OPTION("sort", hot_parse_order, struct hot_options, order),
    ISLAND_OPTIONS(struct hot_options, island), OWN_OPTIONS_END};

static int hot_execute(struct session *session, const void *context)
{
    const struct hot_options *options = context;
    session->uses_times = true;
    return activity_rank_usage(session,
                               &(struct usage_question){.query = {.order = options->order},
                                                        .island = options->island,
                                                        .unit = "call",
                                                        .weight = hot_orders[options->order],
                                                        .print = report_hot});
}

static const struct hot_options hot_defaults = {.order = HEAP_RANK_BY_BYTES};

const struct command command_hot = {
    .name = "hot",
    .summary = "which stacks allocate most",
    .help = hot_help,
    .shares = COMMAND_VIEWS,
    .own = {hot_own, &hot_defaults, sizeof hot_defaults},
    .execute = hot_execute,
};

/* ttdanalyze temporary */

static const char temporary_help[] =
    "Usage: ttdanalyze temporary [OPTIONS] [TRACE]\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap\n"
    "call of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N           with at most N other calls of the thread between "
    "(0)\n" ISLAND_OPTIONS_HELP VIEW_HELP COMMAND_COMMON_HELP;

struct temporary_options {
    struct heap_island_filter island;
    /** Calls between the two of a temporary block. */
    uint64_t steps;
};

static const struct own_option temporary_own[] = {
    OWN_OPTION("steps", option_number, struct temporary_options, steps),
    ISLAND_OPTIONS(struct temporary_options, island), OWN_OPTIONS_END};

static int temporary_execute(struct session *session, const void *context)
{
    const struct temporary_options *options = context;
    return activity_rank_usage(session,
                               &(struct usage_question){.query = {.steps = options->steps,
                                                                  .order = HEAP_RANK_BY_TEMPORARY},
                                                        .island = options->island,
                                                        .unit = "temporary block",
                                                        .weight = "temporary blocks",
                                                        .print = report_temporary});
}

static const struct temporary_options temporary_defaults = {.steps = 0};

const struct command command_temporary = {
    .name = "temporary",
    .summary = "blocks freed as soon as they were allocated",
    .help = temporary_help,
    .shares = COMMAND_VIEWS,
    .own = {temporary_own, &temporary_defaults, sizeof temporary_defaults},
    .execute = temporary_execute,
};

/* ttdanalyze lifetimes */

static const char lifetimes_help[] =
    "Usage: ttdanalyze lifetimes [OPTIONS] [TRACE]\n"
    "\n"
    "Shows how long blocks live: how many, and how many bytes, by time and by the\n"
    "number of heap calls from their allocation to their release. A reallocation\n"
    "releases a block and allocates another.\n"
    "\n" ISLAND_OPTIONS_HELP VIEW_FILTERS_HELP COMMAND_COMMON_HELP;

struct lifetimes_options {
    struct heap_island_filter island;
};

static const struct own_option lifetimes_own[] = {ISLAND_OPTIONS(struct lifetimes_options, island),
                                                  OWN_OPTIONS_END};

int lifetimes_print(struct session *session, struct heap_usage *usage)
{
    session->uses_times = true;
    session_outcome(session, &usage->outcome, ttd_position_max());
    struct heap_site_table sites = heap_usage_site_table(usage);
    int status = session_filter(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status == STATUS_OK)
        report_lifetimes(&session->report, usage);
    return status;
}

static enum ttd_status lifetimes_wants_stack(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

static int lifetimes_execute(struct session *session, const void *context)
{
    const struct lifetimes_options *options = context;
    struct heap_usage usage;
    bool has_filter = view_has_filter(&session->options.view);
    int status = session_names(session, has_filter);
    if (status != STATUS_OK)
        return status;
    struct question question = session_ask_all(session);
    struct heap_usage_options query = {.order = HEAP_RANK_BY_BYTES,
                                       .has_lifetimes = true,
                                       .filter = has_filter ? lifetimes_wants_stack : NULL,
                                       .filter_context = session};
    status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_usage_find(&question.trace, &query, &usage, &question.error);
    status = session_found(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    status = lifetimes_print(session, &usage);
    heap_usage_free(&usage);
    return status;
}

static const struct lifetimes_options lifetimes_defaults = {.island = {.has_client = false}};

const struct command command_lifetimes = {
    .name = "lifetimes",
    .summary = "how long blocks live",
    .help = lifetimes_help,
    .shares = COMMAND_FILTERS,
    .own = {lifetimes_own, &lifetimes_defaults, sizeof lifetimes_defaults},
    .execute = lifetimes_execute,
};

/* ttdanalyze moves */

/* More of the worst chains than these are not kept. */
#define CHAINS_MAX 10000

static const char moves_help[] =
    "Usage: ttdanalyze moves [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the cost of reallocations: how often they moved the block, and how many\n"
    "bytes were copied, for each calling stack; and the blocks that were reallocated\n"
    "most.\n"
    "\n"
    "      --chains N          show at most N blocks (10)\n" ISLAND_OPTIONS_HELP VIEW_HELP
        COMMAND_COMMON_HELP "\n"
    "A stack that grows blocks linearly, by the same number of bytes each time, and\n"
    "whose blocks move, copies in total the square of the final size: let it grow by\n"
    "a factor.\n"
    "\n"
    "Apart, and inferred: where a container of C++ seems to grow, because a larger\n"
    "block is allocated and, a few calls later, a smaller one of the same stack\n"
    "released.\n";

struct moves_options {
    struct heap_island_filter island;
    uint64_t chains;
};

static const struct own_option moves_own[] = {
    OWN_NUMBER("chains", option_number, struct moves_options, chains, 0, CHAINS_MAX),
    ISLAND_OPTIONS(struct moves_options, island), OWN_OPTIONS_END};

/* Writes inferred growth as folded stacks of their own. */
static int moves_print_folded(struct session *session, const struct heap_site_table *sites)
{
    if (session->options.form != REPORT_FOLDED || !*sites->count)
        return STATUS_OK;
    view_tree_free(&session->tree);
    int status = session_view(session, sites);
    if (status != STATUS_OK)
        return status;
    struct report_tree data = {
        .tree = &session->tree, .options = &session->options.view, .root = "[inferred]"};
    report_tree(&session->report, &data);
    return STATUS_OK;
}

int moves_print(struct session *session, struct heap_moves *moves)
{
    struct heap_site_table sites = heap_move_site_table(&moves->reallocs);
    struct heap_site_table regrown = heap_move_site_table(&moves->regrown);
    int status = STATUS_OK;
    session_outcome(session, &moves->outcome, ttd_position_max());
    if (!session_has_tree(session))
        status = session_view(session, &regrown);
    if (status == STATUS_OK)
        status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status != STATUS_OK)
        return status;
    session_lead_with_functions(session);
    if (session_print_tree(session, "reallocation", "bytes copied"))
        return moves_print_folded(session, &regrown);
    report_moves(&session->report, moves);
    return STATUS_OK;
}

static int moves_execute(struct session *session, const void *context)
{
    const struct moves_options *options = context;
    struct heap_moves moves;
    struct question question = session_ask_all(session);
    struct heap_moves_options query = {.chains = (size_t)options->chains,
                                       .split = view_split(&session->options.view)};
    int status = session_refuse_in_tree(session, options->chains != MOVES_CHAINS, "--chains");
    if (status == STATUS_OK)
        status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_moves_find(&question.trace, &query, &moves, &question.error);
    status = session_found(session, &question, result, &moves.outcome);
    if (status != STATUS_OK)
        return status;
    status = moves_print(session, &moves);
    heap_moves_free(&moves);
    return status;
}

static const struct moves_options moves_defaults = {.chains = MOVES_CHAINS};

const struct command command_moves = {
    .name = "moves",
    .summary = "cost of reallocations, by stack and by block",
    .help = moves_help,
    .shares = COMMAND_VIEWS,
    .own = {moves_own, &moves_defaults, sizeof moves_defaults},
    .execute = moves_execute,
};

/* ttdanalyze timeline */

#define POINTS_MAX 1000000

static const char timeline_help[] =
    "Usage: ttdanalyze timeline [OPTIONS] [TRACE]\n"
    "\n"
    "Plots how many bytes were live in the course of the trace, of the memory that\n"
    "the process had, with the number of allocations and releases; or how much was\n"
    "allocated per second.\n"
    "\n"
    "      --over AXIS  time (the default): seconds from the start; or position: as\n"
    "                   many events in each point, with the position where it begins\n"
    "      --points N   at most N points (50), so many that each covers a round\n"
    "                   number; each shows the most that was live until the next\n"
    "      --plot WHAT  live (the default): bytes; allocations: calls per second;\n"
    "                   allocated: bytes per second; or resident: the memory of the\n"
    "                   process, heap or not. JSON and CSV have all\n" ISLAND_OPTIONS_HELP
        VIEW_FILTERS_HELP COMMAND_COMMON_HELP;

struct timeline_options {
    struct heap_island_filter island;
    enum heap_axis axis;
    uint64_t points;
    enum timeline_plot plot;
};

static bool timeline_parse_plot(const char *argument, void *plot)
{
    static const char *const names[] = {
        [TIMELINE_LIVE] = "live",
        [TIMELINE_ALLOCATIONS] = "allocations",
        [TIMELINE_ALLOCATED] = "allocated",
        [TIMELINE_RESIDENT] = "resident",
    };
    size_t index = 0;
    bool is_known = option_name(argument, names, sizeof names / sizeof names[0], &index);
    *(enum timeline_plot *)plot = (enum timeline_plot)index;
    return is_known;
}

static bool timeline_parse_axis(const char *argument, void *axis)
{
    bool is_position = strcmp(argument, "position") == 0;
    *(enum heap_axis *)axis = is_position ? HEAP_AXIS_POSITION : HEAP_AXIS_TIME;
    return is_position || strcmp(argument, "time") == 0;
}

static const struct own_option timeline_own[] = {
    OWN_OPTION("over", timeline_parse_axis, struct timeline_options, axis),
    OWN_NUMBER("points", option_number, struct timeline_options, points, 2, POINTS_MAX),
    OWN_OPTION("plot", timeline_parse_plot, struct timeline_options, plot),
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
    bool is_rate = options->plot == TIMELINE_ALLOCATIONS || options->plot == TIMELINE_ALLOCATED;
    bool uses_times = options->axis == HEAP_AXIS_TIME || is_rate;
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
                                   .is_part = query.filter || query.islands,
                                   .has_times = source_has_times(&session->source)};
    if (status == STATUS_OK)
        report_timeline(&session->report, &data);
    heap_timeline_free(&timeline);
    return status;
}

static const struct timeline_options timeline_defaults = {.axis = HEAP_AXIS_TIME, .points = 50};

const struct command command_timeline = {
    .name = "timeline",
    .summary = "how much was live in the course of time",
    .help = timeline_help,
    .shares = COMMAND_FILTERS,
    .own = {timeline_own, &timeline_defaults, sizeof timeline_defaults},
    .execute = timeline_execute,
};
