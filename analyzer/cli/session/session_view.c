/* SPDX-License-Identifier: MIT */
/* Filters, groups and trees of a session, by its options. */
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "heap/groups.h"
#include "reach/reach.h"
#include "symbols/frames.h"
#include "travel/replay_to.h"
#include "report/sections/sections.h"

int session_classes(struct session *session, const struct heap_trace *trace,
                    struct ttd_position position, const struct heap_block_classes **classes)
{
    struct ttd_error error = {.what = NULL};
    *classes = NULL;
    if (session->options.view.by != VIEW_BY_CLASS)
        return STATUS_OK;
    enum ttd_status result = heap_classes_find(trace, position, &session->classes, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    if (!session->classes.snapshot.number) {
        progress_end(&session->source.progress);
        return message_usage(session->options.command->name,
                             "--by class needs a snapshot of references at the position or before: "
                             "ttdrecord takes one when the program ends, with --snapshot-every, "
                             "and with 'ttdrecord snapshot PID'");
    }
    session->view.classes = *classes = &session->classes;
    return STATUS_OK;
}

int session_islands(struct session *session, const struct heap_island_filter *filter,
                    const struct heap_islands **islands)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    *islands = NULL;
    if (!heap_island_filter_is_given(filter))
        return STATUS_OK;
    enum ttd_status result = heap_islands_read(&trace, filter, &session->islands, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    progress_end(&session->source.progress);
    *islands = &session->islands;
    if (heap_islands_have_any(&session->islands))
        return STATUS_OK;
    message("%s%s: nothing in the trace matches %s",
            session->needs_known_patterns ? "" : "warning: ", session->source.path,
            filter->has_client && filter->has_activity ? "--client and --activity"
            : filter->has_client                       ? "--client"
                                                       : "--activity");
    return session->needs_known_patterns ? STATUS_USAGE : STATUS_OK;
}

int session_filter(struct session *session, const struct heap_site_table *sites)
{
    /* Names are read even if there are no records to filter, because patterns that match no name in
     * the trace are reported. */
    int status = session_names(session, *sites->count || view_has_filter(&session->options.view));
    return status == STATUS_OK ? session_check(session, view_filter(&session->view, sites))
                               : status;
}

int session_filter_joined(struct session *session, struct heap_groups *groups)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    int status = session_filter(session, &sites);
    return status == STATUS_OK ? session_check(session, heap_groups_join(groups)) : status;
}

/* Without filters every stack passes, so no names need to be read. */
int session_wants(struct session *session, ttd_id stack, bool *is_wanted)
{
    *is_wanted = true;
    if (!view_has_filter(&session->options.view))
        return STATUS_OK;
    int status = session_names(session, true);
    return status == STATUS_OK
               ? session_check(session, view_wants(&session->view, stack, is_wanted))
               : status;
}

bool session_has_tree(const struct session *session)
{
    return session->options.view.shape != VIEW_FLAT;
}

int session_refuse_in_tree(const struct session *session, bool is_given, const char *option)
{
    if (!is_given || !session_has_tree(session))
        return STATUS_OK;
    return message_usage(session->options.command->name, "a tree has no place for %s", option);
}

int session_view(struct session *session, const struct heap_site_table *sites)
{
    int status = session_filter(session, sites);
    return status == STATUS_OK ? session_group(session, sites) : status;
}

int session_group(struct session *session, const struct heap_site_table *sites)
{
    if (!session_has_tree(session))
        return session_check(session, view_group(&session->view, sites));
    return session_check_tree(
        session,
        view_tree_build(&session->view, sites, session_tree_limit(session), &session->tree));
}

/* Folded stacks are read by programs that draw flame graphs; branches that are left out would make
 * the frames above them too small. So the limit is for text, JSON and CSV only. */
size_t session_tree_limit(const struct session *session)
{
    return session->options.form == REPORT_FOLDED ? SIZE_MAX : session->options.view.limit;
}

int session_check_tree(struct session *session, enum ttd_status status)
{
    bool is_too_much = status == TTD_ERROR_LIMIT || status == TTD_ERROR_NO_MEMORY;
    int result = session_check(session, status);
    bool has_option = session->options.command->shares & COMMAND_GROUPS;
    if (is_too_much && has_option && !session->options.view.depth)
        message("--depth makes the tree smaller");
    return result;
}

bool session_print_tree(struct session *session, const char *unit, const char *weight)
{
    if (!session_has_tree(session))
        return false;
    struct report_tree data = {
        .tree = &session->tree, .options = &session->options.view, .unit = unit, .weight = weight};
    report_tree(&session->report, &data);
    return true;
}

/* Findings of a session that are listed apart: blocks that the runtimes keep, and known findings.
 */

static bool session_view_was_killed(const struct session *session)
{
    return session->source.is_closed && session->source.end.reason == TTD_END_REASON_SIGNALED;
}

/* Whether blocks of the runtimes may be among the leaks. A trace without a list of these blocks may
 * come from a writer that knows no runtimes; the recorder omits the list only if the program was
 * killed. */
static bool session_view_counts_runtime(const struct session *session, enum heap_runtime_list list)
{
    return list == HEAP_RUNTIME_CUT_SHORT ||
           (list == HEAP_RUNTIME_UNKNOWN && session_view_was_killed(session));
}

int session_trace(struct session *session, struct heap_trace *trace)
{
    int status = session_names(session, true);
    *trace = source_trace(&session->source);
    runtime_judge_attach(&session->judge, trace);
    return status;
}

int session_runtime(struct session *session, struct heap_runtime *runtime, bool is_shown)
{
    session->report.runtime =
        (struct report_runtime){.groups = &runtime->groups,
                                .is_shown = is_shown,
                                .has_option = !session_has_tree(session),
                                .is_counted = session_view_counts_runtime(session, runtime->list),
                                .was_killed = session_view_was_killed(session)};
    struct heap_site_table sites = heap_groups_site_table(&runtime->groups);
    return session_has_tree(session) ? session_filter(session, &sites)
                                     : session_view(session, &sites);
}

int session_judge(struct session *session, const struct finding *finding, bool *is_new)
{
    int status = session_names(session, true);
    if (status != STATUS_OK)
        return status;
    return session_check(session, known_findings_judge(&session->known_findings,
                                                       &session->definitions, finding, is_new));
}

int session_end_known_findings(struct session *session)
{
    int status = session_check(session, known_findings_find_growth(&session->known_findings));
    if (status != STATUS_OK)
        return status;
    return known_findings_write(&session->known_findings, &session->definitions,
                                session->source.path);
}
