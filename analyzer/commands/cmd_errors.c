/* SPDX-License-Identifier: MIT */
/* ttdanalyze errors */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyses/reachability/places.h"
#include "cli/options/command.h"
#include "cli/process/message.h"
#include "commands/family.h"
#include "commands/findings.h"
#include "reach/reach.h"
#include "report/errors/error_reports.h"
#include "report/sections/sections.h"
#include "view/function_names.h"

static const char help[] =
    "Usage: ttdanalyze errors [OPTIONS] [TRACE]\n"
    "\n"
    "Finds calls that the program should not have made, each with the calls that it\n"
    "conflicts with: blocks released twice, by a function that does not fit, or never\n"
    "allocated; heaps used after their end; locks that do not match; calls that\n"
    "failed. Calls with the same stacks are one finding.\n"
    "\n"
    "First comes what explains a death: headers of blocks that were overwritten, as\n"
    "the newest snapshot shows; and the call in which the process died of a fault,\n"
    "such as an abort() in free(), with the blocks beside the one it was given. Then\n"
    "the signal that the program died of, with the blocks that its fault address and\n"
    "the registers point at: live ones, released ones, or those beside it. Then all\n"
    "other findings.\n"
    "\n"
    "      --limit N           show at most N findings (20; 0 for all). Totals count\n"
    "                          all\n"
    "      --remember N        keep N released blocks in mind (262144), of which a\n"
    "                          second release is known; beyond that, the oldest are\n"
    "                          forgotten\n"
    "      --error-exitcode N  exit with status N if there are findings, other than\n"
    "                          inconsistencies of the trace and those that missing\n"
    "                          calls may explain, or a fatal signal\n" FAMILY_HELP
        ISLAND_OPTIONS_HELP KNOWN_FINDINGS_HELP VIEW_FILTERS_HELP COMMAND_COMMON_HELP "\n"
    "A trace-inconsistency is a block that was allocated where another was still\n"
    "live: the trace lacks something, the program is not to blame.\n";

struct errors_options {
    size_t limit;
    uint64_t remembered;
    uint64_t error_status;
    bool is_group;
    struct heap_island_filter island;
};

static const struct own_option own_options[] = {
    OWN_OPTION("limit", option_limit, struct errors_options, limit),
    OWN_NUMBER("remember", option_size, struct errors_options, remembered, 1, HEAP_FREED_MAX),
    OWN_NUMBER("error-exitcode", option_number, struct errors_options, error_status, 0, 255),
    OWN_OPTION("group", option_flag, struct errors_options, is_group),
    ISLAND_OPTIONS(struct errors_options, island),
    OWN_OPTIONS_END};

static ttd_id cmd_errors_stack_of(const struct heap_call *call)
{
    return heap_call_is_known(call) ? call->stack : TTD_NONE;
}

/* Sets `is_wanted` to whether a finding is reported: the filters let the stack of its call through,
 * and it is no known finding. */
static int errors_judge_finding(struct session *session, const struct heap_finding *finding,
                                bool *is_wanted)
{
    struct finding judged = {.kind = finding->kind,
                             .api = finding->call.api,
                             .stacks = {finding->call.stack,
                                        cmd_errors_stack_of(&finding->allocated),
                                        cmd_errors_stack_of(&finding->released),
                                        cmd_errors_stack_of(&finding->conflict)},
                             .count = 1,
                             .amount = finding->count};
    int status = session_wants(session, finding->call.stack, is_wanted);
    if (status == STATUS_OK && *is_wanted && known_findings_are_needed(&session->known_findings))
        status = session_judge(session, &judged, is_wanted);
    return status;
}

/* Merges findings whose stacks differ only in modules that were loaded more than once. */
static int cmd_errors_merge_same(struct session *session, struct heap_errors *errors)
{
    bool has_any = false;
    enum ttd_status status = TTD_OK;
    if (errors->count > 1)
        status = view_has_same(&session->view, &has_any);
    if (status == TTD_OK && has_any)
        status = heap_errors_merge(errors, view_find_same, &session->view);
    return session_check(session, status);
}

/* Drops the findings that are not reported, and counts the calls of the others anew: totals and
 * exit status must not include findings that the user has excluded. */
static int cmd_errors_judge_all(struct session *session, struct heap_errors *errors)
{
    size_t kept = 0;
    int status = STATUS_OK;
    errors->calls = errors->omitted;
    for (size_t i = 0; i < errors->count && status == STATUS_OK; i++) {
        struct heap_finding *finding = &errors->findings[i];
        bool is_wanted = false, pairs = false;
        status =
            session_check(session, finding_pairs_operators(&session->definitions, finding, &pairs));
        if (status == STATUS_OK && !pairs)
            status = errors_judge_finding(session, finding, &is_wanted);
        if (!is_wanted)
            continue;
        errors->calls += finding->count;
        errors->findings[kept++] = *finding;
    }
    errors->count = kept;
    return status == STATUS_OK ? session_end_known_findings(session) : status;
}

/* Sets `is_wanted` to whether the fatal signal is reported: the filters let the stack of its thread
 * through. Its target is certain only in an intact trace. */
static int cmd_errors_judge_fatal(struct session *session, struct heap_fatal *fatal,
                                  bool *is_wanted)
{
    bool is_intact = source_is_intact(&session->source);
    fatal->is_certain = is_intact;
    for (size_t i = 0; i < fatal->pointer_count; i++) {
        fatal->pointers[i].is_certain &= is_intact;
        fatal->is_certain &= fatal->pointers[i].is_register || fatal->pointers[i].is_certain;
    }
    *is_wanted = false;
    return fatal->count ? session_wants(session, fatal->signal.stack, is_wanted) : STATUS_OK;
}

/* Places of addresses that lie in no block, by a snapshot. */
struct address_names {
    struct heap_reach reach;
    struct heap_places places;
    bool are_known;
};

/* Whether some address is in no block: then a snapshot may identify it. */
static bool cmd_errors_has_stray_address(const struct heap_errors *errors,
                                         const struct heap_fatal *fatal)
{
    bool has_one = fatal && fatal->has_address && !fatal->pointers[0].block_address;
    for (size_t i = 0; i < errors->count && !has_one; i++)
        has_one = errors->findings[i].kind == HEAP_ERROR_INVALID_FREE &&
                  !errors->findings[i].block_address;
    return has_one;
}

/* Finds the newest snapshot of references; leaves `snapshot` as it is if there is none. */
static enum ttd_status errors_find_snapshot(const struct heap_trace *trace,
                                            struct ttd_snapshot *snapshot, struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *newest =
        heap_snapshots_before(&snapshots, ttd_position_max(), TTD_SNAPSHOT_REFERENCES);
    if (newest)
        *snapshot = *newest;
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

/* Reads the names of addresses from the snapshot at the fatal signal, or from the newest one. */
static int errors_find_names(struct session *session, const struct heap_fatal *fatal,
                             struct address_names *names)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    struct ttd_snapshot snapshot = fatal->snapshot;
    enum ttd_status status = TTD_OK;
    if (!snapshot.number)
        status = errors_find_snapshot(&trace, &snapshot, &error);
    if (status == TTD_OK && !snapshot.number)
        return STATUS_OK;
    if (status == TTD_OK)
        status = heap_reach_read_regions(&trace, &snapshot, &names->reach, &error);
    if (status == TTD_OK)
        status = heap_places_read(&trace, &names->reach, &names->places, &error);
    names->are_known = status == TTD_OK;
    return status == TTD_OK ? STATUS_OK : source_fail(&session->source, status, &error);
}

int errors_judge(struct session *session, struct heap_errors *errors, struct heap_fatal *fatal,
                 bool *has_fatal)
{
    for (size_t i = 0; i < errors->count; i++)
        errors->findings[i].is_certain &= source_is_intact(&session->source);
    bool needs_names = errors->count || fatal->count || view_has_filter(&session->options.view);
    int status = session_names(session, needs_names);
    if (status == STATUS_OK)
        status = cmd_errors_merge_same(session, errors);
    if (status == STATUS_OK)
        status = cmd_errors_judge_all(session, errors);
    if (status == STATUS_OK)
        status = cmd_errors_judge_fatal(session, fatal, has_fatal);
    return status;
}

/* Whether a finding fails a test. Calls that are missing in the trace may have released a block, or
 * allocated one, and a function on top of the allocator may have kept one: then the program is not
 * to blame for sure. */
static bool cmd_errors_counts(const struct heap_finding *finding)
{
    return finding->kind != HEAP_ERROR_TRACE_INCONSISTENCY && !finding->may_lack_calls &&
           !finding->may_be_deferred;
}

/* Returns whether the trace shows errors that count, a fatal signal or a finding: then there is an
 * answer, whatever is missing. Otherwise there is none if it shows others. Sets the report's reason
 * for having none.
 */
static bool cmd_errors_judge_findings(struct session *session, const struct heap_errors *errors,
                                      bool has_fatal)
{
    bool has_any = has_fatal, has_others = false, has_deferred = false;
    for (size_t i = 0; i < errors->count; i++) {
        const struct heap_finding *finding = &errors->findings[i];
        has_any |= cmd_errors_counts(finding);
        has_others |= finding->may_lack_calls && finding->kind != HEAP_ERROR_TRACE_INCONSISTENCY;
        has_deferred |= finding->may_be_deferred;
    }
    if (has_any)
        session->report.unjudged = NULL;
    else if (has_others)
        session->report.unjudged = "calls are missing that may explain the findings";
    else if (has_deferred)
        session->report.unjudged = "an allocator on top of another may explain the findings";
    return has_any;
}

/* Judges the certainty. Without the calls up to the end nothing is known of errors in them; a loss
 * is a reason then. */
static void errors_outcome(struct session *session, const struct heap_outcome *outcome)
{
    struct report *report = &session->report;
    session_outcome(session, outcome, ttd_position_max());
    report->unjudged = NULL;
    if (report->ending == ENDING_NO_CALLS)
        report->unjudged = session_unrecorded(session);
    else if (report->ending >= ENDING_CUT)
        report->unjudged = report_early_end(report->ending);
}

static void errors_list_at(const void *context, size_t index, struct listed_finding *finding)
{
    const struct report_errors *data = context;
    char times[48] = "";
    if (data->fatal && index == 0) {
        *finding = (struct listed_finding){.rule = "fatal-signal",
                                           .is_error = true,
                                           .is_certain = true,
                                           .stack = data->fatal->signal.stack};
        const char *name = report_signal_name(data->fatal->signal.signal);
        snprintf(finding->text, sizeof finding->text, "the program died of %s",
                 name ? name : "a signal");
        return;
    }
    const struct heap_finding *found = &data->errors->findings[index - (data->fatal != NULL)];
    *finding = (struct listed_finding){.rule = heap_error_name(found->kind),
                                       .is_error = cmd_errors_counts(found),
                                       .is_certain = found->is_certain,
                                       .stack = found->call.stack};
    if (found->count > 1)
        snprintf(times, sizeof times, ", %" PRIu64 " times", found->count);
    snprintf(finding->text, sizeof finding->text, "%s(0x%" PRIx64 ")%s",
             ttd_api_name(found->call.api), found->address, times);
}

static void errors_report(struct session *session, const struct report_errors *data)
{
    const struct listed_findings findings = {
        "errors",       "call", data->errors->count + (data->fatal != NULL),
        errors_list_at, data,   &session->functions};
    if (report_form_lists_findings(session->options.form))
        report_findings(&session->report, &findings);
    else
        report_errors(&session->report, data);
}

/* Judges and prints the findings. Sets `has_errors` to whether the program made any. */
static int errors_print_findings(struct session *session, size_t limit, struct heap_errors *errors,
                                 struct heap_fatal *fatal, bool *has_errors)
{
    bool has_fatal = false;
    struct address_names names = {.are_known = false};
    errors_outcome(session, &errors->outcome);
    int status = errors_judge(session, errors, fatal, &has_fatal);
    if (status == STATUS_OK)
        *has_errors = cmd_errors_judge_findings(session, errors, has_fatal);
    if (status == STATUS_OK && cmd_errors_has_stray_address(errors, has_fatal ? fatal : NULL))
        status = errors_find_names(session, fatal, &names);
    if (status == STATUS_OK)
        status = session_output(session, true);
    struct report_errors data = {.errors = errors,
                                 .fatal = has_fatal ? fatal : NULL,
                                 .places = names.are_known ? &names.places : NULL};
    session->report.limit = limit;
    if (status == STATUS_OK)
        errors_report(session, &data);
    heap_places_free(&names.places);
    heap_reach_free(&names.reach);
    return status;
}

int errors_print(struct session *session, size_t limit, struct heap_errors *errors,
                 struct heap_fatal *fatal)
{
    bool has_errors = false;
    return errors_print_findings(session, limit, errors, fatal, &has_errors);
}

static int errors_find(struct session *session, const struct errors_options *options,
                       struct heap_errors *errors, struct heap_fatal *fatal)
{
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    struct heap_errors_options query = {.remembered = (uint32_t)options->remembered,
                                        .fatal = fatal,
                                        .has_choice = trace.choice.is_made,
                                        .is_merged = trace.choice.is_merged};
    int status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_fatal_find(&trace, fatal, &error);
    if (result == TTD_OK)
        result = heap_errors_find(&trace, &query, errors, &error);
    return result == TTD_OK ? STATUS_OK : source_fail(&session->source, result, &error);
}

static int errors_execute(struct session *session, const void *context)
{
    const struct errors_options *options = context;
    struct heap_errors errors;
    struct heap_fatal fatal;
    session->needs_known_patterns = options->error_status;
    int status = errors_find(session, options, &errors, &fatal);
    if (status != STATUS_OK)
        return status;
    bool has_errors = false;
    status = errors_print_findings(session, options->limit, &errors, &fatal, &has_errors);
    if (status == STATUS_OK)
        status = session_exit(session, has_errors, options->error_status);
    heap_errors_free(&errors);
    return status;
}

/* The fatal signal as the first of the findings. */
static int cmd_errors_collect_fatal(struct session *session, struct family *family,
                                    const struct ttd_fatal_signal *signal)
{
    struct family_finding finding = {.kind = "fatal-signal", .stacks = {signal->stack}, .count = 1};
    int status = session_names(session, true);
    return status == STATUS_OK ? session_check(session, family_add(family, session, &finding))
                               : status;
}

/* Adds the findings of one process, by kind and all their stacks. */
static int errors_add_member(struct session *session, const void *options, struct family *family,
                             bool *is_error)
{
    struct heap_errors errors;
    struct heap_fatal fatal;
    int status = errors_find(session, options, &errors, &fatal);
    if (status != STATUS_OK)
        return status;
    errors_outcome(session, &errors.outcome);
    bool has_fatal = false;
    status = errors_judge(session, &errors, &fatal, &has_fatal);
    if (status == STATUS_OK && has_fatal)
        status = cmd_errors_collect_fatal(session, family, &fatal.signal);
    bool is_certain = true;
    for (size_t i = 0; i < errors.count && status == STATUS_OK; i++) {
        const struct heap_finding *found = &errors.findings[i];
        struct family_finding finding = {.kind = heap_error_name(found->kind),
                                         .rank = 1 + found->kind,
                                         .stacks = {found->call.stack,
                                                    cmd_errors_stack_of(&found->allocated),
                                                    cmd_errors_stack_of(&found->released),
                                                    cmd_errors_stack_of(&found->conflict)},
                                         .count = found->count};
        is_certain &= found->is_certain;
        status = session_check(session, family_add(family, session, &finding));
    }
    if (status == STATUS_OK)
        *is_error = cmd_errors_judge_findings(session, &errors, has_fatal);
    if (!is_certain)
        certainty_add_reason(&session->report.certainty, "some findings: see 'errors' of it alone");
    heap_errors_free(&errors);
    return status;
}

static const struct errors_options defaults = {.limit = 20, .remembered = HEAP_FREED_DEFAULT};

static int errors_run(const struct command *command, int count, char **arguments)
{
    static const struct family_question question = {
        .unit = "call", .title = "errors", .collect = errors_add_member};
    struct errors_options options = defaults;
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    /* Other commands have their limit among the options of views. */
    common.view.limit = options.limit;
    return options.is_group ? family_run(&common, &question, &options, options.error_status)
                            : session_execute(&common, &options);
}

const struct command command_errors = {
    .name = "errors",
    .summary = "calls that the program should not have made",
    .help = help,
    .shares = COMMAND_KNOWN_FINDINGS | COMMAND_FILTERS,
    .own = {own_options, &defaults, sizeof defaults},
    .run = errors_run,
    .execute = errors_execute,
};
