/* SPDX-License-Identifier: MIT */
#include "cli/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"
#include "heap/groups.h"
#include "reach/reach.h"
#include "report/sections/sections.h"
#include "symbols/frames.h"
#include "travel/replay_to.h"

/* Questions about the trace, from the position on the command line to the certainty of the answer.
 */

static int session_question_resolve(struct session *session, const struct position_spec *position,
                                    struct question *question)
{
    question->error = (struct ttd_error){.what = NULL};
    return position_spec_resolve(position, POSITION_FOR_STATE, &session->source, &question->at);
}

int session_ask(struct session *session, const struct position_spec *position,
                struct question *question)
{
    int status = session_question_resolve(session, position, question);
    if (status != STATUS_OK)
        return status;
    question->trace = source_trace(&session->source);
    /* After the position is known, since the start and the end of a trace need no index. */
    question->trace.keyframes = sidecar_use(session, question->at);
    return STATUS_OK;
}

int session_ask_runtime(struct session *session, const struct position_spec *position,
                        struct question *question)
{
    int status = session_question_resolve(session, position, question);
    if (status == STATUS_OK)
        status = session_trace(session, &question->trace);
    if (status == STATUS_OK)
        question->trace.keyframes = sidecar_use(session, question->at);
    return status;
}

struct question session_ask_all(struct session *session)
{
    return (struct question){.trace = source_trace(&session->source), .at = ttd_position_max()};
}

int session_found(struct session *session, const struct question *question, enum ttd_status result,
                  const struct heap_outcome *outcome)
{
    if (result != TTD_OK)
        return source_fail(&session->source, result, &question->error);
    if (outcome->has_refuted_index)
        /* Before anything else asks the trace: a later query must not use the index again. */
        sidecar_refute(&session->source);
    return STATUS_OK;
}

int session_answer(struct session *session, const struct question *question, enum ttd_status result,
                   const struct heap_outcome *outcome)
{
    int status = session_found(session, question, result, outcome);
    if (status == STATUS_OK)
        session_outcome(session, outcome, question->at);
    return status;
}

static bool session_tell_time(void *context, struct ttd_position position, char *text)
{
    struct source *source = context;
    uint64_t duration = source->is_closed ? source->end.wall_time : source->clock.newest;
    return source_has_times(source) &&
           clock_text(&source->clock, source->reader, duration, position, text);
}

static void session_tell_damage(void *context, const struct ttd_error *error)
{
    source_damaged(context, error);
}

int session_open(struct session *session, const struct common_options *options)
{
    session->options = *options;
    session->has_output = false;
    session->uses_times = false;
    session->has_reasons = options->form == REPORT_TEXT || options->form == REPORT_JSON;
    session->report = (struct report){.output = &session->output.text,
                                      .form = options->form,
                                      .limit = options->view.limit,
                                      .shows_all = options->has_full_stacks,
                                      .path = options->trace};
    int status = known_findings_open(&session->known_findings, &session->options.known_findings);
    if (status != STATUS_OK)
        return status;
    status = source_open(&session->source, options->trace, options->command->reads_whole_chunks);
    if (status != STATUS_OK) {
        known_findings_close(&session->known_findings);
        return status;
    }
    session->source.threads = options->threads;
    session->report.known_findings = &session->known_findings.summary;
    session->report.end = session->source.is_closed ? &session->source.end : NULL;
    /* Damage in stacks is found when a stack is looked up, perhaps long after its chunk was read.
     */
    definitions_init(&session->definitions);
    session->definitions.stacks.damage =
        (struct stack_damage){&session->source, session_tell_damage};
    session->steps = limits_steps();
    session->definitions.stacks.steps = &session->steps;
    session->report.definitions = &session->definitions;
    session->has_names = false;
    session->needs_known_patterns = false;
    session->is_member = false;
    session->tree = (struct view_tree){0};
    session->classes = (struct heap_block_classes){.count = 0};
    session->islands = (struct heap_islands){.count = 0};
    runtime_judge_init(&session->judge, &session->definitions);
    view_init(&session->view, &session->options.view, &session->definitions);
    struct view_options by_function = session->options.view;
    by_function.by = VIEW_BY_FUNCTION;
    view_init(&session->functions, &by_function, &session->definitions);
    session->report.view = &session->view;
    /* The number of digits of times depends on the duration, and only the End has it. */
    if (options->form == REPORT_TEXT && session->source.is_closed)
        clock_begin(&session->source.clock, session->source.end.wall_time);
    session->report.clock = (struct report_clock){&session->source, session_tell_time};
    return STATUS_OK;
}

/* Reports patterns that match no name: a misspelled one would silently exclude everything, or
 * nothing. */
static int session_check_patterns(struct session *session, const char *option,
                                  const struct view_patterns *patterns)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < patterns->count; i++) {
        bool is_known = false;
        int pattern_status =
            session_check(session, view_knows(&session->view, &patterns->patterns[i], &is_known));
        if (pattern_status != STATUS_OK)
            return pattern_status;
        if (is_known || session->is_member)
            continue;
        progress_end(&session->source.progress);
        message("%s%s: no function, file or module has the name of %s '%s'",
                session->needs_known_patterns ? "" : "warning: ", session->source.path, option,
                patterns->patterns[i].data);
        if (session->needs_known_patterns)
            status = STATUS_USAGE;
    }
    return status;
}

/* Reads the names once. A second call finds them, also after a failure: the first one has reported
 * it. */
int session_names(struct session *session, bool are_needed)
{
    if (!are_needed || session->has_names)
        return STATUS_OK;
    session->has_names = true;
    int status = source_define(&session->source, TTD_KINDS_DEFINITIONS, &session->definitions);
    if (status == STATUS_OK)
        status = session_check_patterns(session, "--include", &session->options.view.include);
    if (status == STATUS_OK)
        status = session_check_patterns(session, "--exclude", &session->options.view.exclude);
    if (status == STATUS_OK)
        status = session_check_patterns(session, "--skip", &session->options.view.skip);
    return status;
}

int session_check(struct session *session, enum ttd_status status)
{
    struct ttd_error error = {.what = NULL};
    return status == TTD_OK ? STATUS_OK : source_fail(&session->source, status, &error);
}

int session_run(const struct command *command, int count, char **arguments, void *own_values)
{
    struct common_options common_options;
    int status = command_options(&common_options, command, count, arguments, own_values);
    return status >= 0 ? status : session_execute(&common_options, own_values);
}

int session_execute(const struct common_options *options, const void *own_values)
{
    struct session session;
    int status = session_open(&session, options);
    if (status != STATUS_OK)
        return status;
    status = options->command->execute(&session, own_values);
    return session_close(&session, status, session.has_output);
}

int session_run_defaults(const struct command *command, int count, char **arguments)
{
    void *own_values = malloc(command->own.size + 1);
    if (!own_values)
        return message_status(command->name, TTD_ERROR_NO_MEMORY);
    if (command->own.size)
        memcpy(own_values, command->own.defaults, command->own.size);
    int status = session_run(command, count, arguments, own_values);
    free(own_values);
    return status;
}

int session_output(struct session *session, bool is_long)
{
    progress_end(&session->source.progress);
    /* For a part of a page, the output was opened by the command that makes the page. */
    if (session->has_output)
        return STATUS_OK;
    if (session->report.sink) {
        out_init(&session->output.text, -1, false);
        session->output.text.room = UINT64_MAX;
        return STATUS_OK;
    }
    bool pages = is_long && session->options.has_pager;
    int status =
        output_open(&session->output, session->options.output, session->options.trace, pages);
    session->has_output = status == STATUS_OK;
    session->output.text.room = limits_output();
    /* Only text has lines for people. */
    if (session->options.form != REPORT_TEXT)
        session->output.text.width = 0;
    return status;
}

void session_lead_with_functions(struct session *session)
{
    /* Only text for people leads with something else than the groups. */
    if (session->options.form == REPORT_TEXT && !session->options.view.is_by_given)
        session->report.functions = &session->functions;
}

int session_begin_report(struct session *session, bool needs_names)
{
    int status = session_names(session, needs_names);
    return status == STATUS_OK ? session_output(session, true) : status;
}

void session_outcome(struct session *session, const struct heap_outcome *outcome,
                     struct ttd_position position)
{
    struct source *source = &session->source;
    if (outcome->truncated)
        source_truncated(source, &outcome->error);
    struct certainty_facts facts = {.trace = ttd_reader_trace(source->reader),
                                    .is_closed = source->is_closed,
                                    .end = source->end,
                                    .has_choice = source->choice.is_made,
                                    .lacks_end_snapshot = source->choice.lacks_end_snapshot,
                                    .is_intact = source_is_intact(source),
                                    .is_patched = source->is_patched,
                                    .rests_on_index = source->has_keyframes,
                                    .rests_on_part = source->is_partly_read,
                                    .is_truncated = source->is_truncated,
                                    .is_given_up = source->is_given_up,
                                    .uses_times = session->uses_times,
                                    .outcome = outcome,
                                    .at = position,
                                    .part_of = source->part_of};
    progress_end(&source->progress);
    certainty_judge(&session->report.certainty, &facts);
    session->report.ending = certainty_find_ending(&facts);
    certainty_add_choice(&session->report.certainty, &source->choice);
    session->report.has_estimates = source->choice.sample != 0;
    session->report.unknown_before = outcome->unknown_before;
}

const char *session_unrecorded(struct session *session)
{
    const char *calls = session->source.choice.unrecorded;
    snprintf(session->unrecorded, sizeof session->unrecorded,
             "no allocation was recorded, and not all calls were%s%s%s",
             *calls ? " (missing: " : "", calls, *calls ? ")" : "");
    return session->unrecorded;
}

int session_exit(const struct session *session, bool has_findings, uint64_t error_status)
{
    int status = known_findings_exit(&session->known_findings, has_findings, error_status);
    if (has_findings || status != STATUS_OK || !error_status || !session->report.unjudged)
        return status;
    return message_unjudged(session->source.path, session->options.command->name,
                            session->report.unjudged);
}

/* Lists in CSV have no place for it. */
static void session_warn_of_limit(const struct session *session)
{
    if (session->report.left_out)
        message("warning: %s: %llu more records are not listed: see --limit in "
                "'ttdanalyze %s --help'",
                session->source.path, (unsigned long long)session->report.left_out,
                session->options.command->name);
}

/* An output that is not complete is removed, so that no script takes a part of a report for the
 * whole. */
int session_close(struct session *session, int status, bool keep)
{
    /* The reasons for uncertainty, if the report has no room for them. */
    for (size_t i = 0; !session->has_reasons && i < session->report.certainty.count; i++)
        message("warning: %s: uncertain: %s", session->source.path,
                session->report.certainty.reasons[i]);
    session_warn_of_limit(session);
    if (session->report.status == TTD_OK)
        session->report.status = session->judge.status;
    if (session->report.status != TTD_OK) {
        status = message_status(session->source.path, session->report.status);
        keep = false;
    }
    if (session->has_output)
        status = output_close(&session->output, status, keep || status < STATUS_USAGE);
    frame_list_free(&session->report.frames);
    view_tree_free(&session->tree);
    view_free(&session->view);
    view_free(&session->functions);
    heap_block_classes_free(&session->classes);
    heap_islands_free(&session->islands);
    runtime_judge_free(&session->judge);
    known_findings_close(&session->known_findings);
    definitions_free(&session->definitions);
    source_close(&session->source);
    return status;
}

/* Filters, groups and trees of a session, by its options. */

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
