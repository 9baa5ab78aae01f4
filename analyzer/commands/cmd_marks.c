/* SPDX-License-Identifier: MIT */
/* ttdanalyze marks */
#include <string.h>

#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/traces/position_spec.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze marks [OPTIONS] [TRACE]\n"
    "\n"
    "Lists the marks of a trace, in the order of the file: events that the program added by\n"
    "the live API, where it switched recording of a thread off and on, and the texts of\n"
    "'ttdrecord mark'. 'mark:TEXT' is the position of the first mark with that text,\n"
    "wherever a position is accepted.\n"
    "\n"
    "      --from POSITION    not before this position\n"
    "      --to POSITION      before this position\n"
    "      --thread N         of the thread with this number in the trace; 0 for global ones\n"
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

static const struct own_option own_options[] = {
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

static bool is_of_activity(const struct heap_mark *mark, uint64_t activity)
{
    return mark->kind >= HEAP_MARK_STARTED && mark->kind <= HEAP_MARK_RESET &&
           mark->activity == activity;
}

static bool marks_passes(struct lister *lister, const struct heap_mark *mark)
{
    const struct marks_options *options = lister->options;
    const struct heap_island_filter *island = &options->island;
    bool is_thread = !options->thread.is_given || mark->event->thread == options->thread.value;
    bool is_client =
        !island->has_client || !memcmp(mark->client, island->client, sizeof mark->client);
    bool is_activity = !island->has_activity || is_of_activity(mark, island->activity);
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
static void check_names(const struct lister *lister)
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
        check_names(lister);
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
        options->from.kind != POSITION_SPEC_START &&
        ttd_position_compare(lister.from, ttd_position_max()) != 0)
        status = position_range_check("marks", &session->source, lister.from, lister.to);
    if (status == STATUS_OK)
        status = session_output(session, true);
    return status == STATUS_OK ? marks_list(&lister) : status;
}

static const struct marks_options defaults = {.from = {.kind = POSITION_SPEC_START},
                                              .to = {.kind = POSITION_SPEC_END}};

const struct command command_marks = {
    .name = "marks",
    .summary = "moments that the program and its user have marked",
    .help = help,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = marks_execute,
};
