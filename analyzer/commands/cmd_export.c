/* SPDX-License-Identifier: MIT */
/* ttdanalyze export */
#include <string.h>
#include <unistd.h>

#include "analyses/activity/timeline.h"
#include "analyses/activity/usage.h"
#include "analyses/reachability/referrers.h"
#include "analyses/reachability/retained.h"
#include "analyses/state/peak.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "query/query.h"
#include "report/export/export_reports.h"
#include "report/trace/trace_reports.h"

/* Points in the course of time, at most. */
#define EXPORT_POINTS 200

/* A dominator tree: branches of the top, at most, half as many on each level below; and levels. */
#define EXPORT_BRANCHES 16
#define EXPORT_LEVELS   12

static const char export_help[] =
    "Usage: ttdanalyze export [OPTIONS] FORMAT [TRACE]\n"
    "\n"
    "Writes a trace for the viewer of another project. FORMAT is one of:\n"
    "\n"
    "Blocks by the stack that allocated them:\n"
    "  folded      folded stacks with their bytes, for flame graphs\n"
    "  svg         a flame graph, for any browser\n"
    "  pprof       for 'go tool pprof': blocks and bytes\n"
    "  speedscope  for speedscope.app: a profile of bytes and one of blocks\n"
    "  firefox     for profiler.firefox.com: bytes\n"
    "  callgrind   for callgrind_annotate and KCachegrind\n"
    "The whole trace:\n"
    "  massif      for ms_print and Massif-Visualizer: bytes over time, and the peak\n"
    "  heaptrack   for heaptrack_print and heaptrack_gui: all allocations and\n"
    "              releases\n"
    "  chrome      for ui.perfetto.dev and chrome://tracing: counters, threads, marks\n"
    "  csv, jsonl  the events, as CSV or as lines of JSON\n"
    "  sqlite      the same, as a database of SQLite\n"
    "A snapshot of references:\n"
    "  graphviz    for dot: the dominator tree, which shows the blocks that hold\n"
    "              others\n"
    "\n"
    "Blocks that the C and C++ runtimes keep are among the others. The manual says\n"
    "what each format loses.\n"
    "\n"
    "      --measure WHAT      the blocks: live (the default), at a position; peak:\n"
    "                          live when most bytes were; allocated: ever; or\n"
    "                          temporary: freed by their thread's next call\n"
    "      --at POSITION       live at that position; the end if not given\n"
    "      --address A         graphviz: the pointers to the block at A, up to "
    "roots\n" VIEW_FILTERS_HELP COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct export_options;

/** The form in which a format gets the blocks. */
enum export_shape {
    EXPORT_STACKS,
    EXPORT_TREE,
    /** A tree from the allocating functions outward. */
    EXPORT_TREE_OUTWARD,
    /** No blocks but events, each a row. */
    EXPORT_ROWS,
    EXPORT_ROWS_CSV
};

struct export_format {
    const char *name;
    int (*execute)(struct session *session, const struct export_options *options);
    enum export_shape shape;
    /** For a profile: blocks by stack at one moment. NULL for folded stacks. */
    void (*write)(struct report *report, const struct report_profile *data);
    bool is_binary;
};

struct export_options {
    struct position_spec at;
    struct given_number address;
    enum report_measure measure;
    bool has_measure;
    const struct export_format *format;
};

static bool export_parse_measure(const char *argument, void *context)
{
    struct export_options *options = context;
    static const char *const names[] = {
        [REPORT_LIVE] = "live",
        [REPORT_PEAK] = "peak",
        [REPORT_ALLOCATED] = "allocated",
        [REPORT_TEMPORARY] = "temporary",
    };
    size_t index = 0;
    bool is_known = option_name(argument, names, sizeof names / sizeof names[0], &index);
    options->measure = (enum report_measure)index;
    options->has_measure = true;
    return is_known;
}

static const struct own_option export_own[] = {
    OWN_OPTION("at", option_position, struct export_options, at),
    OWN_OPTION("address", option_given, struct export_options, address),
    OWN_CHOICE("measure", export_parse_measure), OWN_OPTIONS_END};

/* Finding the blocks. Each of these sets `groups` to their sums by stack, and returns an exit
 * status; the caller releases the groups, also on failure. */

static int export_find_live(struct session *session, const struct export_options *options,
                            struct heap_groups *groups)
{
    struct question question;
    int status = session_ask(session, &options->at, &question);
    if (status != STATUS_OK)
        return status;
    struct heap_state_options query = {.at = question.at};
    struct heap_state state;
    enum ttd_status result = heap_state_find(&question.trace, &query, &state, &question.error);
    status = session_answer(session, &question, result, &state.outcome);
    if (status != STATUS_OK)
        return status;
    *groups = state.tables.by[HEAP_BY_STACK];
    heap_groups_init(&state.tables.by[HEAP_BY_STACK]);
    heap_state_free(&state);
    return STATUS_OK;
}

static enum ttd_status export_add_groups(struct heap_groups *groups,
                                         const struct heap_groups *added)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < added->count && status == TTD_OK; i++)
        status = heap_groups_add_sum(groups, &added->items[i]);
    return status;
}

static int export_find_peak(struct session *session, struct heap_groups *groups,
                            struct ttd_position *position)
{
    struct heap_peak_state_options query = {.islands = NULL};
    struct heap_peak_state peak;
    struct question question = session_ask_all(session);
    question.trace.keyframes = sidecar_use_existing(session);
    enum ttd_status result = heap_peak_state_find(&question.trace, &query, &peak, &question.error);
    int status = session_answer(session, &question, result, &peak.outcome);
    if (status != STATUS_OK)
        return status;
    *position = peak.peak.position;
    result = export_add_groups(groups, &peak.groups);
    if (result == TTD_OK)
        result = export_add_groups(groups, &peak.runtime.groups);
    if (result == TTD_OK)
        result = heap_groups_sort(groups);
    heap_peak_state_free(&peak);
    return session_check(session, result);
}

static int export_find_usage(struct session *session, enum report_measure measure,
                             struct heap_groups *groups)
{
    bool is_temporary = measure == REPORT_TEMPORARY;
    struct heap_usage_options query = {.order = is_temporary ? HEAP_RANK_BY_TEMPORARY
                                                             : HEAP_RANK_BY_BYTES};
    struct heap_usage usage;
    struct question question = session_ask_all(session);
    enum ttd_status result = heap_usage_find(&question.trace, &query, &usage, &question.error);
    int status = session_answer(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < usage.count && result == TTD_OK; i++) {
        const struct heap_site *site = &usage.sites[i];
        struct heap_group sum = {
            .key = site->key,
            .blocks = is_temporary ? site->temporary : site->allocations,
            .bytes = heap_sum_value(is_temporary ? site->temporary_bytes : site->bytes),
        };
        if (sum.blocks)
            result = heap_groups_add_sum(groups, &sum);
    }
    if (result == TTD_OK)
        result = heap_groups_sort(groups);
    heap_usage_free(&usage);
    return session_check(session, result);
}

static int export_find_groups(struct session *session, const struct export_options *options,
                              struct heap_groups *groups)
{
    struct ttd_position position;
    if (options->measure == REPORT_LIVE)
        return export_find_live(session, options, groups);
    if (options->measure == REPORT_PEAK)
        return export_find_peak(session, groups, &position);
    return export_find_usage(session, options->measure, groups);
}

static int export_print(struct session *session, const struct export_options *options,
                        struct heap_groups *groups)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    struct report_profile data = {.groups = groups,
                                  .trace = ttd_reader_trace(session->source.reader),
                                  .measure = options->measure,
                                  .tree = &session->tree};
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status != STATUS_OK)
        return status;
    if (options->format->write)
        options->format->write(&session->report, &data);
    else
        session_print_tree(session, "block", "bytes");
    return STATUS_OK;
}

/* Profiles: blocks by stack. */
static int export_profile(struct session *session, const struct export_options *options)
{
    struct heap_groups groups;
    heap_groups_init(&groups);
    int status = export_find_groups(session, options, &groups);
    if (status == STATUS_OK)
        status = export_print(session, options, &groups);
    heap_groups_free(&groups);
    return status;
}

static enum ttd_status export_wants_stack(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

/* Finds the bytes in the course of time. The caller releases the timeline on success. */
static int export_find_timeline(struct session *session, struct heap_timeline *timeline)
{
    struct question question = session_ask_all(session);
    bool has_filter = view_has_filter(&session->options.view);
    struct heap_timeline_options query = {
        .axis = source_has_times(&session->source) ? HEAP_AXIS_TIME : HEAP_AXIS_POSITION,
        .max = EXPORT_POINTS,
        .filter = has_filter ? export_wants_stack : NULL,
        .filter_context = session};
    int status = session_names(session, true);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_timeline_find(&question.trace, &query, timeline, &question.error);
    return session_answer(session, &question, result, &timeline->outcome);
}

static int export_print_massif(struct session *session, struct report_course *data,
                               struct heap_groups *groups)
{
    struct heap_site_table sites = heap_groups_site_table(groups);
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status == STATUS_OK)
        report_profile_massif(&session->report, data);
    return status;
}

static int export_massif(struct session *session, const struct export_options *options)
{
    struct heap_timeline timeline;
    struct heap_groups groups;
    struct report_course data = {.trace = ttd_reader_trace(session->source.reader),
                                 .timeline = &timeline,
                                 .tree = &session->tree,
                                 .has_times = source_has_times(&session->source)};
    (void)options;
    int status = export_find_timeline(session, &timeline);
    if (status != STATUS_OK)
        return status;
    heap_groups_init(&groups);
    status = export_find_peak(session, &groups, &data.peak);
    if (status == STATUS_OK)
        status = export_print_massif(session, &data, &groups);
    heap_groups_free(&groups);
    heap_timeline_free(&timeline);
    return status;
}

/** The state of a pass over the marks. */
struct export_marks {
    struct session *session;
    const struct ttd_trace *trace;
};

static enum ttd_status export_see_marks(void *context, const struct ttd_batch *batch)
{
    const struct export_marks *marks = context;
    if (batch->kind != TTD_KIND_USER_EVENTS)
        return TTD_OK;
    for (size_t i = 0; i < batch->count; i++) {
        struct heap_mark mark = heap_mark_of(&batch->u.user_events[i]);
        if (mark.kind != HEAP_MARK_MEMORY)
            report_chrome_mark(&marks->session->report, marks->trace, &mark);
        if (marks->session->output.text.error)
            return TTD_END;
    }
    return TTD_OK;
}

static int export_chrome(struct session *session, const struct export_options *options)
{
    struct heap_timeline timeline;
    struct export_marks marks = {session, ttd_reader_trace(session->source.reader)};
    struct heap_batch_hook hook = {.context = &marks, .batch = export_see_marks};
    struct report_course data = {.trace = marks.trace, .timeline = &timeline, .has_times = true};
    (void)options;
    if (!source_has_times(&session->source))
        return source_fail_times(&session->source);
    int status = export_find_timeline(session, &timeline);
    if (status != STATUS_OK)
        return status;
    status = session_output(session, false);
    if (status == STATUS_OK) {
        report_chrome_begin(&session->report, &data);
        status = source_read(&session->source, TTD_KIND_BIT(TTD_KIND_USER_EVENTS), &hook);
        report_chrome_end(&session->report);
    }
    heap_timeline_free(&timeline);
    return status;
}

static int export_print_graph(struct session *session, const struct heap_reach *reach,
                              const struct report_graph *graph)
{
    certainty_add_snapshot(&session->report.certainty, &reach->snapshot, reach->misplaced);
    int status = session_names(session, reach->snapshot.number);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status == STATUS_OK)
        report_graphviz(&session->report, graph);
    return status;
}

static int export_referrers(struct session *session, struct question *question, uint64_t address)
{
    struct heap_referrers_options query = {
        .at = question->at, .address = address, .depth = EXPORT_LEVELS, .width = EXPORT_BRANCHES};
    struct heap_referrers referrers;
    struct report_graph graph = {.referrers = &referrers, .address = address};
    enum ttd_status result =
        heap_referrers_find(&question->trace, &query, &referrers, &question->error);
    int status = session_answer(session, question, result, &referrers.outcome);
    if (status != STATUS_OK)
        return status;
    status = export_print_graph(session, &referrers.reach, &graph);
    heap_referrers_free(&referrers);
    return status;
}

static int export_graphviz(struct session *session, const struct export_options *options)
{
    struct heap_retained_options query = {
        .by = HEAP_RETAINED_BY_BLOCK, .limit = EXPORT_BRANCHES, .depth = EXPORT_LEVELS};
    struct heap_retained retained;
    struct report_graph graph = {.retained = &retained};
    struct question question;
    if (view_has_filter(&session->options.view))
        return message_usage("export", "graphviz has pointers of all blocks: no --include, "
                                       "no --exclude");
    int status = session_ask(session, &options->at, &question);
    if (status == STATUS_OK && options->address.is_given)
        return export_referrers(session, &question, options->address.value);
    if (status != STATUS_OK)
        return status;
    query.at = question.at;
    enum ttd_status result =
        heap_retained_find(&question.trace, &query, &retained, &question.error);
    status = session_answer(session, &question, result, &retained.outcome);
    if (status != STATUS_OK)
        return status;
    status = export_print_graph(session, &retained.held.reach, &graph);
    heap_retained_free(&retained);
    return status;
}

/* Writes while it replays. */
static int export_replay(struct session *session, const struct heap_observer *observer,
                         struct heap_arrival *arrival)
{
    struct question question = session_ask_all(session);
    struct heap_route route = {.to = ttd_position_max(), .observer = observer};
    struct heap_outcome outcome;
    enum ttd_status result = heap_replay_to(arrival, &question.trace, &route, &question.error);
    heap_arrival_end(arrival, &outcome);
    return session_answer(session, &question, result, &outcome);
}

static int export_heaptrack(struct session *session, const struct export_options *options)
{
    struct heap_arrival arrival;
    bool has_filter = view_has_filter(&session->options.view);
    struct heaptrack_choice choice = {.parents = &arrival.cursor.replay.live.parents,
                                      .filter = has_filter ? export_wants_stack : NULL,
                                      .filter_context = session};
    (void)options;
    int status = session_names(session, true);
    if (status == STATUS_OK)
        status = session_output(session, false);
    if (status != STATUS_OK)
        return status;
    struct heaptrack_writer *writer = report_heaptrack_begin(&session->report, &choice);
    if (!writer)
        return session_check(session, TTD_ERROR_NO_MEMORY);
    struct heap_observer observer = {.context = writer, .effect = report_heaptrack_effect};
    status = export_replay(session, &observer, &arrival);
    /* Without its last line no part of a file looks whole. */
    report_heaptrack_end(writer, status == STATUS_OK);
    return status;
}

/** The state of a pass over the events: one of the writers is NULL. */
struct export_row_pass {
    struct session *session;
    struct report_rows *rows;
    struct event_database *database;
    bool has_filter;
    /** Not all events were written. */
    bool is_cut;
    struct heap_outcome outcome;
};

static enum ttd_status export_see_events(void *context, const struct ttd_batch *batch)
{
    struct export_row_pass *pass = context;
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_LOSSES)
        heap_losses_add(&pass->outcome.losses, batch);
    if (batch->kind != TTD_KIND_EVENTS)
        return TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK && !pass->is_cut; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        bool is_wanted = true;
        pass->outcome.position = ttd_event_position(event);
        if (pass->has_filter)
            status = view_wants(&pass->session->view, event->stack, &is_wanted);
        if (is_wanted && pass->rows)
            report_rows_add(pass->rows, event);
        else if (is_wanted)
            pass->is_cut = !event_database_add(pass->database, event);
    }
    pass->is_cut |= pass->session->output.text.error != 0;
    return pass->is_cut ? TTD_END : status;
}

/* Reads all events. Returns an exit status. */
static int export_read_rows(struct export_row_pass *pass)
{
    struct session *session = pass->session;
    struct ttd_error error = {.what = NULL};
    struct heap_batch_hook hook = {.context = pass, .batch = export_see_events};
    enum ttd_status result = ttd_reader_rewind_checked(
        session->source.reader, TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES));
    int status = result == TTD_OK ? source_read_on(&session->source, &hook)
                                  : source_fail(&session->source, result, &error);
    pass->outcome.reached_end = true;
    if (status == STATUS_OK && !pass->is_cut)
        session_outcome(session, &pass->outcome, ttd_position_max());
    return status;
}

static int export_begin_rows(struct session *session, struct export_row_pass *pass)
{
    *pass = (struct export_row_pass){.session = session,
                                     .has_filter = view_has_filter(&session->options.view)};
    int status = pass->has_filter ? session_names(session, true)
                                  : source_define(&session->source, TTD_KIND_BIT(TTD_KIND_HEAPS),
                                                  &session->definitions);
    if (status == STATUS_OK)
        status = session_output(session, false);
    /* All events were asked for, however many. */
    if (status == STATUS_OK)
        session->output.text.room = UINT64_MAX;
    return status;
}

static int export_text(struct session *session, const struct export_options *options)
{
    struct export_row_pass pass;
    (void)options;
    int status = export_begin_rows(session, &pass);
    if (status != STATUS_OK)
        return status;
    pass.rows = report_rows_begin(&session->report, source_has_times(&session->source));
    if (!pass.rows)
        return session_check(session, TTD_ERROR_NO_MEMORY);
    status = export_read_rows(&pass);
    report_rows_end(pass.rows);
    return status;
}

static int export_database(struct session *session, const struct export_options *options)
{
    struct export_row_pass pass;
    (void)options;
    int status = export_begin_rows(session, &pass);
    if (status != STATUS_OK)
        return status;
    pass.database = event_database_begin(session);
    if (!pass.database)
        return STATUS_INTERNAL;
    status = export_read_rows(&pass);
    int ended = event_database_end(pass.database, status == STATUS_OK && !pass.is_cut);
    return status == STATUS_OK ? ended : status;
}

/* No form has room for all reasons: standard error has them as well. */
static int export_execute(struct session *session, const void *context)
{
    const struct export_options *options = context;
    int status = options->format->execute(session, options);
    session->has_reasons = false;
    return status;
}

static const struct export_format export_formats[] = {
    {"folded", export_profile, EXPORT_TREE, NULL, false},
    {"svg", export_profile, EXPORT_TREE, report_profile_svg, false},
    {"pprof", export_profile, EXPORT_STACKS, report_profile_pprof, true},
    {"speedscope", export_profile, EXPORT_STACKS, report_profile_speedscope, false},
    {"firefox", export_profile, EXPORT_TREE, report_profile_firefox, false},
    {"callgrind", export_profile, EXPORT_STACKS, report_profile_callgrind, false},
    {"massif", export_massif, EXPORT_TREE_OUTWARD, NULL, false},
    {"heaptrack", export_heaptrack, EXPORT_STACKS, NULL, false},
    {"chrome", export_chrome, EXPORT_STACKS, NULL, false},
    {"csv", export_text, EXPORT_ROWS_CSV, NULL, false},
    {"jsonl", export_text, EXPORT_ROWS, NULL, false},
    {"sqlite", export_database, EXPORT_ROWS, NULL, true},
    {"graphviz", export_graphviz, EXPORT_STACKS, NULL, false},
};

static const struct export_format *export_find(const char *name)
{
    for (size_t i = 0; i < sizeof export_formats / sizeof export_formats[0]; i++) {
        if (strcmp(export_formats[i].name, name) == 0)
            return &export_formats[i];
    }
    return NULL;
}

/* Checks options against each other and the format. Returns an exit status. */
static int export_check(const struct command *command, const struct common_options *options,
                        const struct export_options *own)
{
    if (!own->format)
        return message_usage(command->name, "%s is no format that can be written", options->trace);
    if (own->format->is_binary && !options->output && isatty(STDOUT_FILENO))
        return message_usage(command->name, "%s is binary: write it to a file, with --output",
                             own->format->name);
    if (options->form != REPORT_TEXT)
        return message_usage(command->name, "the name of a format takes the place of --format");
    bool has_position =
        own->at.kind != POSITION_SPEC_END && own->format->execute != export_graphviz;
    if ((own->has_measure || has_position) && own->format->execute != export_profile)
        return message_usage(command->name, "%s has no place for %s", own->format->name,
                             own->has_measure ? "--measure" : "--at");
    if (own->address.is_given && own->format->execute != export_graphviz)
        return message_usage(command->name, "--address is only for graphviz");
    if (own->measure != REPORT_LIVE && own->at.kind != POSITION_SPEC_END)
        return message_usage(command->name, "--at is only for --measure live");
    return STATUS_OK;
}

/* The first operand is the format, the second one the trace. */
static int export_run(const struct command *command, int count, char **arguments)
{
    static char default_name[] = INPUT_DEFAULT;
    struct common_options options;
    struct export_options own = {.at = {.kind = POSITION_SPEC_END}};
    int status = count < 2 ? message_usage(command->name, "no format is given")
                           : command_options(&options, command, count, arguments, &own);
    if (status >= 0)
        return status;
    own.format = export_find(options.trace);
    status = export_check(command, &options, &own);
    if (status != STATUS_OK)
        return status;
    options.trace = options.other_count ? options.others[0] : default_name;
    options.other_count = 0;
    enum export_shape shape = own.format->shape;
    bool is_tree = shape == EXPORT_TREE || shape == EXPORT_TREE_OUTWARD;
    options.form = is_tree ? REPORT_FOLDED : shape == EXPORT_ROWS_CSV ? REPORT_CSV : REPORT_JSON;
    options.view.shape = !is_tree                       ? VIEW_FLAT
                         : shape == EXPORT_TREE_OUTWARD ? VIEW_BOTTOM_UP
                                                        : VIEW_TOP_DOWN;
    options.view.by = is_tree ? VIEW_BY_FUNCTION : VIEW_BY_STACK;
    if (shape == EXPORT_TREE_OUTWARD)
        options.view.depth = REPORT_MASSIF_LEVELS;
    /* Rows that are written cannot be taken back. */
    struct command whole = *command;
    whole.reads_whole_chunks = shape == EXPORT_ROWS || shape == EXPORT_ROWS_CSV;
    options.command = &whole;
    char *traces[] = {(char *)(uintptr_t)options.trace};
    limits_set(options.max_memory, traces, 1);
    return session_execute(&options, &own);
}

const struct command command_export = {
    .name = "export",
    .summary = "blocks for the viewers of other projects",
    .help = export_help,
    .shares = COMMAND_FILTERS,
    .own = {export_own, NULL, sizeof(struct export_options)},
    .traces_max = 2,
    .run = export_run,
    .execute = export_execute,
};
