/* SPDX-License-Identifier: MIT */
/* Commands about the trace itself: info, snapshots, marks, verify. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "cli/process/output.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "commands/findings.h"
#include "report/trace/trace_reports.h"

/* Facts of the recording that are kept; the format allows any number. */
#define METADATA_MAX 4096

#define INFO_KINDS                                                                                 \
    (TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_MODULES) |                             \
     TTD_KIND_BIT(TTD_KIND_THREADS) | TTD_KIND_BIT(TTD_KIND_METADATA))

static const char info_help[] =
    "Usage: ttdanalyze info [OPTIONS] [TRACE]\n"
    "\n"
    "Shows the contents of a trace: the recorded process, how it ended, how many\n"
    "events of which threads there are, how many were lost, the clients and the\n"
    "activities of the live API, the modules, and how well the file is compressed.\n"
    "\n"
    "      --group               list the traces that were recorded together with it,\n"
    "                            and are beside it: of the program and its "
    "children\n" COMMAND_COMMON_HELP;

/* Copies a text: in a batch it is valid only until the next one. */
static enum ttd_status info_keep_text(struct info_findings *findings, struct ttd_string string,
                                      struct ttd_string *copy)
{
    copy->size = string.size;
    copy->data = arena_copy(&findings->text, string.data, string.size);
    return copy->data ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* A crafted trace may have any number of metadata, so no more than METADATA_MAX are kept. */
static enum ttd_status info_add_metadata(struct info_findings *findings,
                                         const struct ttd_metadata *record)
{
    if (findings->metadata_count == METADATA_MAX)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&findings->metadata, &findings->metadata_capacity,
                                        findings->metadata_count + 1, sizeof *findings->metadata);
    if (status != TTD_OK)
        return status;
    struct ttd_metadata *kept_record = &findings->metadata[findings->metadata_count];
    status = info_keep_text(findings, record->key, &kept_record->key);
    if (status == TTD_OK)
        status = info_keep_text(findings, record->value, &kept_record->value);
    if (status == TTD_OK)
        findings->metadata_count++;
    return status;
}

/* Keeps the losses that the statistics only count. Their number depends on the file only. */
static enum ttd_status info_add_losses(struct info_findings *findings,
                                       const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        if (findings->loss_seen++ < HEAP_LOSSES_KEPT)
            continue;
        status = grow_array((void **)&findings->losses, &findings->loss_capacity,
                            findings->loss_count + 1, sizeof *findings->losses);
        if (status == TTD_OK)
            findings->losses[findings->loss_count++] = batch->u.losses[i];
    }
    return status;
}

/* Collects names and facts of the recording in the same reading that counts. */
static enum ttd_status info_see_batch(void *context, const struct ttd_batch *batch)
{
    struct info_findings *findings = context;
    enum ttd_status status = TTD_OK;
    if (findings->definitions)
        status = definitions_add(findings->definitions, batch);
    for (size_t i = 0; batch->kind == TTD_KIND_METADATA && i < batch->count; i++) {
        if (status == TTD_OK)
            status = info_add_metadata(findings, &batch->u.metadata[i]);
    }
    if (status == TTD_OK && batch->kind == TTD_KIND_LOSSES && findings->keeps_losses)
        status = info_add_losses(findings, batch);
    return status;
}

static void info_begin(struct session *session, struct info_findings *findings)
{
    *findings =
        (struct info_findings){.definitions = session->has_names ? NULL : &session->definitions,
                               .keeps_losses = session->report.sink != NULL};
}

void info_watch(struct session *session, struct info_findings *findings, struct heap_pass *pass)
{
    struct heap_watcher watcher = {.observer.context = findings,
                                   .to = ttd_position_max(),
                                   .batch = info_see_batch,
                                   .kinds = INFO_KINDS};
    info_begin(session, findings);
    heap_pass_add(pass, &watcher);
}

int info_print(struct session *session, const struct info_findings *findings)
{
    const struct heap_trace_stats *stats = &findings->stats;
    session_outcome(session, &stats->outcome, ttd_position_max());
    int status = session_output(session, true);
    if (status != STATUS_OK)
        return status;
    struct report_info data = {.stats = stats,
                               .trace = ttd_reader_trace(session->source.reader),
                               .is_closed = session->source.is_closed,
                               .end = &session->source.end,
                               .file_bytes = ttd_reader_size(session->source.reader),
                               .metadata = findings->metadata,
                               .metadata_count = findings->metadata_count,
                               .losses = findings->losses,
                               .loss_count = findings->loss_count};
    report_info(&session->report, &data);
    return STATUS_OK;
}

void info_free(struct info_findings *findings)
{
    heap_trace_stats_free(&findings->stats);
    free(findings->metadata);
    free(findings->losses);
    arena_free(&findings->text);
}

/* Chunks before the first unsupported one are reported all the same; the exit status still says
 * that the rest could not be read. */
static int info_report_stats(struct session *session, const struct info_findings *findings)
{
    const struct heap_trace_stats *stats = &findings->stats;
    int reading = STATUS_OK;
    if (stats->is_unsupported)
        reading = source_fail(&session->source, TTD_ERROR_UNSUPPORTED, &stats->outcome.error);
    session->source.is_closed = session->source.is_closed && stats->has_end;
    int status = info_print(session, findings);
    return status == STATUS_OK ? reading : status;
}

/* The hook of a reading that is no pass. */
struct collector {
    /** The hook of the source; it sees each batch first. */
    struct heap_batch_hook hook;
    struct info_findings *findings;
};

static enum ttd_status info_see_read(void *context, const struct ttd_batch *batch)
{
    struct collector *collector = context;
    enum ttd_status status = collector->hook.batch(collector->hook.context, batch);
    return status == TTD_OK ? info_see_batch(collector->findings, batch) : status;
}

static int info_execute(struct session *session, const void *options)
{
    (void)options;
    struct heap_trace trace = source_trace(&session->source);
    struct info_findings findings;
    struct collector collector = {.hook = trace.hook, .findings = &findings};
    struct heap_trace_stats_options query = {.kinds = INFO_KINDS};
    struct ttd_error error = {.what = NULL};
    info_begin(session, &findings);
    trace.hook = (struct heap_batch_hook){.context = &collector, .batch = info_see_read};
    enum ttd_status result = heap_trace_stats_find(&trace, &query, &findings.stats, &error);
    progress_end(&session->source.progress);
    int status = result == TTD_OK ? info_report_stats(session, &findings)
                                  : source_fail(&session->source, result, &error);
    info_free(&findings);
    return status;
}

/* Prints the traces of a recording. There is no session, because that belongs to one trace. */
static int info_print_group(const struct common_options *options, const struct group *group)
{
    struct output_file output;
    int status = output_open(&output, options->output, options->trace, options->has_pager);
    if (status != STATUS_OK)
        return status;
    struct report report = {.output = &output.text,
                            .form = options->form,
                            .path = options->trace,
                            .shows_all = options->has_full_stacks};
    struct report_group data = {&group->members[0].trace.group, group->members, group->count};
    report_recording(&report, &data);
    return output_close(&output, STATUS_OK, true);
}

static int info_list_group(const struct common_options *options)
{
    struct group group;
    int status = group_find(options->trace, &group);
    if (status == STATUS_OK)
        status = info_print_group(options, &group);
    group_free(&group);
    return status;
}

/* The one option: whether to list the traces that were recorded together. */
static const struct own_option info_own[] = {OWN_CHOICE("group", option_flag), OWN_OPTIONS_END};

static int info_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    bool is_group = false;
    int status = command_options(&options, command, count, arguments, &is_group);
    if (status >= 0)
        return status;
    if (is_group)
        return info_list_group(&options);
    struct session session;
    status = session_open(&session, &options);
    if (status != STATUS_OK)
        return status;
    status = info_execute(&session, NULL);
    return session_close(&session, status, session.has_output);
}

const struct command command_info = {
    .name = "info",
    .summary = "contents of a trace, and its end",
    .help = info_help,
    .own = {.table = info_own},
    .reads_whole_chunks = true,
    .run = info_run,
    .execute = info_execute,
};

/* ttdanalyze snapshots */

static const char snapshots_help[] =
    "Usage: ttdanalyze snapshots [OPTIONS] [TRACE]\n"
    "\n"
    "Lists the snapshots of a trace: when and why each was taken, its contents, for\n"
    "how long the program was held, and whether it is consistent and "
    "complete.\n" COMMAND_COMMON_HELP;

static int snapshots_execute(struct session *session, const void *context)
{
    (void)context;
    struct question question = session_ask_all(session);
    struct heap_snapshot_list list;
    enum ttd_status result = heap_snapshot_list_find(&question.trace, &list, &question.error);
    int status = session_answer(session, &question, result, &list.outcome);
    if (status != STATUS_OK)
        return status;
    status = session_output(session, true);
    if (status == STATUS_OK)
        report_snapshots(&session->report, &list);
    heap_snapshot_list_free(&list);
    return status;
}

const struct command command_snapshots = {
    .name = "snapshots",
    .summary = "the snapshots that a trace has",
    .help = snapshots_help,
    .execute = snapshots_execute,
};

/* ttdanalyze marks */

static const char marks_help[] =
    "Usage: ttdanalyze marks [OPTIONS] [TRACE]\n"
    "\n"
    "Lists the marks of a trace, in the order of the file: events that the program\n"
    "added by the live API, where it switched recording of a thread off and on, and\n"
    "the texts of 'ttdrecord mark'. 'mark:TEXT' is the position of the first mark\n"
    "with that text, wherever a position is accepted.\n"
    "\n"
    "      --from POSITION    not before this position\n"
    "      --to POSITION      before this position\n"
    "      --thread N         of the thread with this number in the trace; 0 for\n"
    "                         global ones\n"
    "      --client GUID      of this client\n"
    "      --activity N       where recording of this activity begins, ends or pauses\n"
    "      --limit N          stop after N marks (0 for all, the default)\n" COMMAND_COMMON_HELP
    "\n"
    "With --format json each mark is a line of its own.\n"
    "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct marks_options {
    struct position_spec from;
    struct position_spec to;
    struct given_number thread;
    struct heap_island_filter island;
    uint64_t limit;
};

static const struct own_option marks_own[] = {
    OWN_OPTION("from", option_position, struct marks_options, from),
    OWN_OPTION("to", option_position, struct marks_options, to),
    OWN_OPTION("thread", option_given, struct marks_options, thread),
    ISLAND_OPTIONS(struct marks_options, island),
    OWN_OPTION("limit", option_number, struct marks_options, limit),
    OWN_OPTIONS_END};

struct lister {
    struct session *session;
    const struct marks_options *options;
    struct ttd_position from;
    struct ttd_position to;
    uint64_t count;
    bool has_times;
    /** The trace has a mark of the thread, client or activity that the options name. */
    bool has_thread;
    bool has_client;
    bool has_activity;
};

static bool marks_passes(struct lister *lister, const struct heap_mark *mark)
{
    const struct marks_options *options = lister->options;
    const struct heap_island_filter *island = &options->island;
    bool is_thread = !options->thread.is_given || mark->event->thread == options->thread.value;
    bool is_client =
        !island->has_client || !memcmp(mark->client, island->client, sizeof mark->client);
    bool is_activity = !island->has_activity ||
                       (mark->kind >= HEAP_MARK_STARTED && mark->kind <= HEAP_MARK_RESET &&
                        mark->activity == island->activity);
    lister->has_thread |= is_thread;
    lister->has_client |= is_client;
    lister->has_activity |= is_activity;
    return is_thread && is_client && is_activity &&
           ttd_position_compare(mark->event->position, lister->from) >= 0 &&
           ttd_position_compare(mark->event->position, lister->to) < 0;
}

static enum ttd_status marks_see_batch(void *context, const struct ttd_batch *batch)
{
    struct lister *lister = context;
    struct session *session = lister->session;
    if (batch->kind != TTD_KIND_USER_EVENTS)
        return TTD_OK;
    for (size_t i = 0; i < batch->count; i++) {
        struct heap_mark mark = heap_mark_of(&batch->u.user_events[i]);
        if (mark.kind == HEAP_MARK_MEMORY || !marks_passes(lister, &mark))
            continue;
        report_mark(&session->report, lister->has_times, &mark);
        lister->count++;
        if (session->output.text.error || lister->count == lister->options->limit)
            return TTD_END;
    }
    return TTD_OK;
}

/* Warns of the options that name nothing in the trace: an empty list looks like an answer. */
static void marks_check_names(const struct lister *lister)
{
    const struct marks_options *options = lister->options;
    const struct {
        bool is_unknown;
        const char *option;
    } names[] = {{options->thread.is_given && !lister->has_thread, "--thread"},
                 {options->island.has_client && !lister->has_client, "--client"},
                 {options->island.has_activity && !lister->has_activity, "--activity"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].is_unknown)
            message("warning: %s: no mark of the trace matches %s", lister->session->source.path,
                    names[i].option);
}

/* Lists the marks. Each is written when it is read, so the trace is judged before: a damaged part
 * may have had a mark, but not where recording was off. */
static int marks_list(struct lister *lister)
{
    struct session *session = lister->session;
    struct heap_batch_hook hook = {.context = lister, .batch = marks_see_batch};
    struct heap_outcome outcome = {.reached_end = true};
    session_outcome(session, &outcome, ttd_position_max());
    session->output.text.room = UINT64_MAX;
    lister->has_times = source_has_times(&session->source);
    report_marks_begin(&session->report);
    int status = source_read(&session->source, TTD_KIND_BIT(TTD_KIND_USER_EVENTS), &hook);
    session->has_reasons = session->options.form == REPORT_TEXT;
    if (session->has_reasons)
        report_certainty_text(&session->report);
    if (!lister->count)
        marks_check_names(lister);
    return status;
}

static int marks_execute(struct session *session, const void *context)
{
    const struct marks_options *options = context;
    struct lister lister = {.session = session, .options = options};
    int status =
        position_spec_resolve(&options->from, POSITION_FOR_ORDER, &session->source, &lister.from);
    if (status == STATUS_OK)
        status =
            position_spec_resolve(&options->to, POSITION_FOR_ORDER, &session->source, &lister.to);
    if (status == STATUS_OK && options->to.kind != POSITION_SPEC_END &&
        options->from.kind != POSITION_SPEC_START && !heap_is_end(lister.from))
        status = position_range_check("marks", &session->source, lister.from, lister.to);
    if (status == STATUS_OK)
        status = session_output(session, true);
    return status == STATUS_OK ? marks_list(&lister) : status;
}

static const struct marks_options marks_defaults = {.from = {.kind = POSITION_SPEC_START},
                                                    .to = {.kind = POSITION_SPEC_END}};

const struct command command_marks = {
    .name = "marks",
    .summary = "moments that the program and its user have marked",
    .help = marks_help,
    .own = {marks_own, &marks_defaults, sizeof marks_defaults},
    .execute = marks_execute,
};

/* ttdanalyze verify */

static const char verify_help[] =
    "Usage: ttdanalyze verify [OPTIONS] [TRACE]\n"
    "\n"
    "Checks everything: every checksum, that nothing is missing, swapped or left\n"
    "over, that every part can be decoded and refers only to defined ids, and that\n"
    "the recording was closed. A line for each problem, then a line for the whole. An\n"
    "index TRACE.idx, or one that is named, is compared with the trace.\n"
    "\n"
    "Exit status 0: intact; 1: problems found. Every other command reads the intact\n"
    "parts of a damaged trace; 'ttdanalyze recover' makes a clean trace of "
    "it.\n" COMMAND_COMMON_HELP;

struct checker {
    struct report report;
    struct output_file output;
    uint64_t problems;
};

static bool verify_see_problem(void *context, const struct ttd_problem *problem)
{
    struct checker *checker = context;
    if (!checker->problems)
        report_verify_begin(&checker->report);
    report_problem(&checker->report, problem, checker->problems++);
    return !checker->output.text.error;
}

/* Names the trace and the index that belong together, `named` being one of them, in memory that is
 * freed by the caller. Returns false if there are not both. */
static bool verify_find_pair(const char *named, char **trace, char **index)
{
    static const char suffix[] = ".idx";
    size_t size = strlen(named);
    size_t kept = size > strlen(suffix) ? size - strlen(suffix) : 0;
    bool is_index = kept && strcmp(named + kept, suffix) == 0;
    *trace = strndup(named, is_index ? kept : size);
    *index = *trace ? sidecar_path(*trace) : NULL;
    if (!*index)
        return false;
    if (is_index && access(*trace, F_OK) != 0)
        message("warning: %s: is not compared with its trace: %s: %s", named, *trace,
                strerror(errno));
    return access(*index, F_OK) == 0 && access(*trace, F_OK) == 0;
}

/* Compares the index with the trace, and reports if it differs. */
static int verify_check_index(struct checker *checker, const char *trace, const char *index,
                              struct report_verification *result)
{
    enum sidecar_verdict verdict;
    struct ttd_problem problem = {.bytes = 0};
    const char *named = checker->report.path;
    int status = sidecar_check(trace, index, &verdict, &problem.error);
    if (status != STATUS_OK || verdict == SIDECAR_NONE)
        return status;
    result->index = index;
    result->is_index_wrong = verdict == SIDECAR_DIFFERS;
    checker->report.path = index;
    if (result->is_index_wrong)
        verify_see_problem(checker, &problem);
    checker->report.path = named;
    return STATUS_OK;
}

/* Ends the report of the verification, after the index. */
static int verify_finish(struct checker *checker, const struct common_options *options,
                         struct report_verification *result)
{
    char *trace = NULL;
    char *index = NULL;
    int status = STATUS_OK;
    if (result->verdict.ok && options->has_index &&
        verify_find_pair(options->trace, &trace, &index))
        status = verify_check_index(checker, trace, index, result);
    if (!checker->problems)
        report_verify_begin(&checker->report);
    report_verify_end(&checker->report, result);
    free(trace);
    free(index);
    if (status == STATUS_OK && (!result->verdict.ok || result->is_index_wrong))
        status = STATUS_FINDINGS;
    return output_close(&checker->output, status, true);
}

static int verify_verify(const struct common_options *options)
{
    struct ttd_input input;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = input_open(options->trace, &input, &error);
    if (status != TTD_OK)
        return input_fail(options->trace, status, &error);
    struct checker checker = {
        .report = {.output = &checker.output.text, .form = options->form, .path = options->trace}};
    int result = output_open(&checker.output, options->output, options->trace, false);
    if (result != STATUS_OK) {
        if (input.close)
            input.close(input.context);
        return result;
    }
    struct report_verification whole = {.index = NULL};
    error.status = TTD_OK;
    status = ttd_verify(&input, NULL, &(struct ttd_problem_observer){verify_see_problem, &checker},
                        &whole.verdict, &error);
    if (status == TTD_OK)
        return verify_finish(&checker, options, &whole);
    /* Closes a report that was begun, so that it can be parsed. */
    if (status != TTD_END && checker.problems)
        report_verify_end(&checker.report, &(struct report_verification){.index = NULL});
    if (status != TTD_END)
        input_fail(options->trace, status, &error);
    return output_close(&checker.output, exit_for(status), false);
}

static int verify_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    return status >= 0 ? status : verify_verify(&options);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check a trace completely",
    .help = verify_help,
    .run = verify_run,
};
