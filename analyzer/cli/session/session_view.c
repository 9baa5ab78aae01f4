/* SPDX-License-Identifier: MIT */
/* Filters, groups and trees of a session, by its options. */
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "reach/find_classes.h"

int session_classes(struct session *session, const struct heap_trace *trace,
                    struct ttd_position position, const struct heap_block_classes **classes)
{
    struct ttd_error error = {.what = NULL};
    *classes = NULL;
    if (session->options.view.by != VIEW_BY_CLASS)
        return STATUS_OK;
    enum ttd_status result = heap_find_classes(trace, position, &session->classes, &error);
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
    message("%s%s: nothing in the trace is what %s",
            session->needs_known_patterns ? "" : "warning: ", session->source.path,
            filter->has_client && filter->has_activity ? "--client and --activity name"
            : filter->has_client                       ? "--client names"
                                                       : "--activity names");
    return session->needs_known_patterns ? STATUS_USAGE : STATUS_OK;
}

/* Names are read even if there are no records to filter, because patterns that match no name in the
 * trace are reported. */
static bool needs_names(const struct session *session, const struct heap_site_table *sites)
{
    return *sites->count || view_has_filter(&session->options.view);
}

int session_filter(struct session *session, const struct heap_site_table *sites)
{
    int status = session_names(session, needs_names(session, sites));
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
    return session->options.format->needs_tree ? SIZE_MAX : session->options.view.limit;
}

int session_check_tree(struct session *session, enum ttd_status status)
{
    bool is_too_much = status == TTD_ERROR_LIMIT || status == TTD_ERROR_NO_MEMORY;
    int result = session_check(session, status);
    if (is_too_much && !session->options.view.depth)
        message("--depth makes the tree smaller");
    return result;
}

bool session_print_tree(struct session *session, const char *unit, const char *weight)
{
    if (!session_has_tree(session))
        return false;
    struct report_tree data = {
        .tree = &session->tree, .options = &session->options.view, .unit = unit, .weight = weight};
    session->options.format->tree(&session->report, &data);
    return true;
}
