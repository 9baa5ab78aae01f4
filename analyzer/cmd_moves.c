/* SPDX-License-Identifier: MIT */
/* ttdanalyze moves */
#include "cli/exit.h"
#include "cli/numbers.h"
#include "cli/session.h"

/* More of the worst chains than these are not kept. */
#define CHAINS_MAX 10000

enum { OPTION_LIMIT = OPTION_FIRST, OPTION_CHAINS };

static const struct option own_options[] = {{"limit", required_argument, NULL, OPTION_LIMIT},
                                            {"chains", required_argument, NULL, OPTION_CHAINS},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze moves [OPTIONS] TRACE\n"
    "\n"
    "Tells what reallocations cost: how often they moved the block, and how many bytes\n"
    "were copied, for each calling stack; and the blocks that were reallocated most.\n"
    "\n"
    "      --limit N   show at most N stacks (20; 0 for all). Totals count all\n"
    "      --chains N  show at most N blocks (10)\n" COMMAND_COMMON_HELP "\n"
    "A stack that grows blocks linearly, by the same number of bytes each time, and whose\n"
    "blocks move, copies in total the square of the final size: let it grow by a factor.\n";

typedef struct moves_options {
    uint64_t limit;
    uint64_t chains;
} moves_options;

static bool take(void *context, int option, const char *argument)
{
    moves_options *options = context;
    if (option == OPTION_LIMIT)
        return number_parse(argument, &options->limit);
    return number_parse(argument, &options->chains) && options->chains <= CHAINS_MAX;
}

static int print(session *work, const moves_options *options, const heap_moves *moves)
{
    session_doubts(work, &moves->losses, &moves->counts, ttd_position_max(), true, moves->position);
    int status = STATUS_OK;
    if (moves->group_count)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status != STATUS_OK)
        return status;
    report_moves data = {.moves = moves,
                         .limit = options->limit ? (size_t)options->limit : SIZE_MAX};
    work->options.format->moves(&work->report, &data);
    return STATUS_OK;
}

static int find(session *work, const moves_options *options)
{
    heap_moves moves;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found =
        heap_moves_find(work->trace.reader, (size_t)options->chains, &hook, &moves, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    if (moves.truncated)
        source_truncated(&work->trace, &moves.error);
    int status = print(work, options, &moves);
    heap_moves_free(&moves);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    moves_options options = {.limit = 20, .chains = 10};
    common common_options;
    int status =
        command_options(&common_options, which, count, arguments, own_options, take, &options);
    if (status >= 0)
        return status;
    session work;
    status = session_open(&work, &common_options);
    if (status != STATUS_OK)
        return status;
    return session_close(&work, find(&work, &options), false);
}

const command command_moves = {"moves", "what reallocations cost, by stack and by block", help,
                               run};
