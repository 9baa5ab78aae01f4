/* SPDX-License-Identifier: MIT */
/* ttdanalyze moves */
#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "commands/findings.h"
#include "report/activity/activity_reports.h"
#include "report/sections/section_tree.h"

/* More of the worst chains than these are not kept. */
#define CHAINS_MAX 10000

static const char help[] =
    "Usage: ttdanalyze moves [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the cost of reallocations: how often they moved the block, and how many bytes\n"
    "were copied, for each calling stack; and the blocks that were reallocated most.\n"
    "\n"
    "      --chains N          show at most N blocks (10)\n" ISLAND_OPTIONS_HELP VIEW_HELP
        COMMAND_COMMON_HELP "\n"
    "A stack that grows blocks linearly, by the same number of bytes each time, and whose\n"
    "blocks move, copies in total the square of the final size: let it grow by a factor.\n"
    "\n"
    "Apart, and inferred: where a container of C++ seems to grow, because a larger block\n"
    "is allocated and, a few calls later, a smaller one of the same stack released.\n";

struct moves_options {
    struct heap_island_filter island;
    uint64_t chains;
};

static const struct own_option own_options[] = {
    OWN_NUMBER("chains", option_number, struct moves_options, chains, 0, CHAINS_MAX),
    ISLAND_OPTIONS(struct moves_options, island), OWN_OPTIONS_END};

/* Writes inferred growth as folded stacks of their own. */
static int print_folded(struct session *session, const struct heap_site_table *sites)
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
    if (session_print_tree(session, "reallocation", "bytes copied"))
        return print_folded(session, &regrown);
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

static const struct moves_options defaults = {.chains = MOVES_CHAINS};

const struct command command_moves = {
    .name = "moves",
    .summary = "cost of reallocations, by stack and by block",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = moves_execute,
};
