/* SPDX-License-Identifier: MIT */
/* ttdanalyze history */
#include "analyses/reachability/leaks.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "report/state/state_reports.h"

/* More blocks than these are not kept. */
#define OWNERS_MAX 1000000

static const char help[] =
    "Usage: ttdanalyze history --address A [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the history of an address: every block that ever covered it, when, where and by\n"
    "which thread it was allocated and released; and when it was lost, if a snapshot of\n"
    "references shows it.\n"
    "\n"
    "      --address A  the address\n"
    "      --size N     as well as the N - 1 addresses after it\n"
    "      --limit N    show the last N blocks (1000)\n" COMMAND_COMMON_HELP;

struct history_options {
    struct given_number address;
    uint64_t size;
    uint64_t limit;
};

static const struct own_option own_options[] = {
    OWN_OPTION("address", option_given, struct history_options, address),
    OWN_NUMBER("size", option_size, struct history_options, size, 1, UINT64_MAX),
    OWN_NUMBER("limit", option_number, struct history_options, limit, 1, OWNERS_MAX),
    OWN_OPTIONS_END};

static bool has_lost(const struct heap_history *history)
{
    for (size_t i = 0; i < history->count; i++)
        if (history->owners[i].lost)
            return true;
    return false;
}

static int history_print(struct session *session, const struct heap_history *history,
                         const struct heap_leaks *leaks)
{
    session_outcome(session, &history->outcome, ttd_position_max());
    if (has_lost(history))
        certainty_add_snapshot(&session->report.certainty, &leaks->snapshot, leaks->misplaced);
    int status = session_begin_report(session, history->count);
    if (status == STATUS_OK)
        report_history(&session->report, history);
    return status;
}

/* Finds out which of the blocks are lost, and prints them. */
static int print_with_lost(struct session *session, struct heap_history *history)
{
    struct heap_trace trace;
    struct heap_leaks leaks = {.snapshot = {.number = 0}};
    struct ttd_error error = {.what = NULL};
    if (!history->count)
        return history_print(session, history, &leaks);
    int status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_lost_owners_find(&trace, history, &leaks, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    status = history_print(session, history, &leaks);
    heap_leaks_free(&leaks);
    return status;
}

static int history_execute(struct session *session, const void *context)
{
    const struct history_options *options = context;
    if (!options->address.is_given)
        return message_usage("history", "no address is given: use --address");
    bool is_beyond = options->size - 1 > UINT64_MAX - options->address.value;
    struct heap_history_options query = {
        .first = options->address.value,
        .last = is_beyond ? UINT64_MAX : options->address.value + options->size - 1,
        .max = (size_t)options->limit};
    struct heap_history history;
    struct question question = session_ask_all(session);
    question.trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_history_find(&question.trace, &query, &history, &question.error);
    int status = session_found(session, &question, result, &history.outcome);
    if (status != STATUS_OK)
        return status;
    status = print_with_lost(session, &history);
    heap_history_free(&history);
    return status;
}

static const struct history_options defaults = {.size = 1, .limit = 1000};

const struct command command_history = {
    .name = "history",
    .summary = "every block that ever covered an address",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = history_execute,
};
