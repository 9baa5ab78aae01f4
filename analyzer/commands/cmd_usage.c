/* SPDX-License-Identifier: MIT */
/* Ranking call sites for ttdanalyze hot and temporary. */
#include "commands/cmd_usage.h"

#include "cli/process/exit.h"

int rank_usage(struct session *session, const struct usage_question *asked)
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
