/* SPDX-License-Identifier: MIT */
/* Filters, groups and trees of a session, by its options. */
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "heap/groups.h"
#include "reach/reach.h"
#include "symbols/frames.h"
#include "travel/replay_to.h"
#include "view/function_names.h"
#include "report/sections/section_tree.h"

/* Finding the classes of blocks: the targets of their first words. */

static enum ttd_status number_blocks(const struct heap_reach *reach,
                                     struct heap_block_classes *classes)
{
    enum ttd_status status = TTD_OK;
    map_init(&classes->numbers);
    for (uint32_t node = 0; reach->node_classes && node < reach->nodes.count && status == TTD_OK;
         node++) {
        if (reach->node_classes[node])
            status = map_set(&classes->numbers, heap_nodes_address(&reach->nodes, node),
                             heap_nodes_get(&reach->nodes, node, HEAP_NODE_EVENT),
                             reach->node_classes[node]);
    }
    return status;
}

/**
 * Finds the classes of the blocks that are live at a snapshot: the newest one with references at a
 * position or before.
 *
 * @param classes  set on TTD_OK, empty if there is no such snapshot; release with
 *                 heap_block_classes_free()
 * @return as heap_replay_to().
 */
static enum ttd_status heap_find_classes(const struct heap_trace *trace,
                                         struct ttd_position position,
                                         struct heap_block_classes *classes,
                                         struct ttd_error *error)
{
    struct heap_reach_options options = {.at = position, .finds_classes_only = true};
    struct heap_reach reach;
    enum ttd_status status = heap_reach_find(trace, &options, &reach, error);
    if (status != TTD_OK)
        return status;
    *classes = (struct heap_block_classes){.snapshot = reach.snapshot,
                                           .misplaced = reach.misplaced,
                                           .classes = reach.classes,
                                           .count = reach.class_count};
    reach.classes = NULL;
    status = number_blocks(&reach, classes);
    heap_reach_free(&reach);
    if (status != TTD_OK)
        heap_block_classes_free(classes);
    return status;
}

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
    report_tree(&session->report, &data);
    return true;
}

/* Findings of a session that are listed apart: blocks that the runtimes keep, and known findings.
 */

/* Frames that show a block of thread-local storage: the frames of an allocator's caller in the
 * dynamic linker. */
#define JUDGED_FRAMES 4

/* Frames that include the allocating functions, behind wrappers of allocators. */
#define CALLER_FRAMES 16

/* GLib's header before a closure. */
#define CLOSURE_HEADER 32

static bool was_killed(const struct session *session)
{
    return session->source.is_closed && session->source.end.reason == TTD_END_REASON_SIGNALED;
}

/* Whether blocks of the runtimes may be among the leaks. A trace without a list of these blocks may
 * come from a writer that knows no runtimes; the recorder omits the list only if the program was
 * killed. */
static bool counts_runtime(const struct session *session, enum heap_runtime_list list)
{
    return list == HEAP_RUNTIME_CUT_SHORT || (list == HEAP_RUNTIME_UNKNOWN && was_killed(session));
}

static bool keeps_stack(void *context, ttd_id stack)
{
    struct session *session = context;
    struct frame_list *frames = &session->report.frames;
    uint32_t judged = map_get(&session->judged, stack, 0);
    if (judged != MAP_NONE)
        return judged;
    enum ttd_status status = frame_list_begin(frames, &session->definitions, stack, JUDGED_FRAMES);
    bool keeps = status == TTD_OK && runtime_is_thread_storage(frames);
    if (status == TTD_OK)
        status = map_set(&session->judged, stack, 0, keeps);
    if (status != TTD_OK)
        session->report.status = status;
    return keeps;
}

static bool wraps_allocator(struct session *session, const struct frame *frame)
{
    if (!frame->function.size)
        return false;
    uint32_t wraps = map_get(&session->wrappers, frame->name, 0);
    if (wraps != MAP_NONE)
        return wraps;
    wraps = allocators_have(frame->function) ||
            allocators_wrap(definitions_canonical(&session->definitions, frame->name));
    enum ttd_status status = map_set(&session->wrappers, frame->name, 0, wraps);
    if (status != TTD_OK)
        session->report.status = status;
    return wraps;
}

static bool has_part(struct ttd_string name, const char *part)
{
    return name.size && memmem(name.data, name.size, part, strlen(part));
}

/* A list is shorter, or empty, if memory or steps are short: then less is inferred from it. */
static void list_callers(void *context, ttd_id stack, struct heap_callers *callers)
{
    struct session *session = context;
    struct frame_list *frames = &session->report.frames;
    if (frame_list_begin(frames, &session->definitions, stack, CALLER_FRAMES) != TTD_OK)
        return;
    size_t first = 0;
    while (first < frames->count && wraps_allocator(session, &frames->frames[first]))
        first++;
    if (first)
        callers->wrapper = (struct heap_caller){frames->frames[0].module_id,
                                                frames->frames[0].offset, frames->frames[0].name};
    for (size_t i = first; i < frames->count && callers->count < HEAP_CALLERS; i++) {
        const struct frame *frame = &frames->frames[i];
        callers->items[callers->count++] =
            (struct heap_caller){frame->module_id, frame->offset, frame->name};
    }
    if (callers->count) {
        struct ttd_string symbol = frames->frames[first].symbol;
        callers->is_sds = has_part(symbol, "sdsnew") || has_part(symbol, "sdsMakeRoomFor");
        callers->is_hash_table = has_part(symbol, "hashbrown");
        callers->is_instance = has_part(symbol, "g_type_create_instance");
        callers->header = has_part(symbol, "g_closure_new_simple") ? CLOSURE_HEADER : 0;
    }
    /* A slice of its own comes from a wrapper only. */
    for (size_t i = first + 1; i < frames->count && !callers->is_slice_page; i++)
        callers->is_slice_page = has_part(frames->frames[i].symbol, "g_slice_alloc");
}

int session_trace(struct session *session, struct heap_trace *trace)
{
    int status = session_names(session, true);
    *trace = source_trace(&session->source);
    trace->hook.callers = (struct heap_stack_callers){session, list_callers};
    if (runtime_has_thread_storage(&session->definitions))
        trace->hook.judge = (struct heap_stack_judge){session, keeps_stack};
    return status;
}

int session_runtime(struct session *session, struct heap_runtime *runtime, bool is_shown)
{
    session->report.runtime =
        (struct report_runtime){.groups = &runtime->groups,
                                .is_shown = is_shown,
                                .has_option = !session_has_tree(session),
                                .is_counted = counts_runtime(session, runtime->list),
                                .was_killed = was_killed(session)};
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
