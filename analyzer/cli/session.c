/* SPDX-License-Identifier: MIT */
#include "cli/session.h"

#include "cli/exit.h"
#include "cli/limits.h"
#include "cli/message.h"
#include "symbols/runtime.h"

static bool tell_time(void *context, struct ttd_position at, char *text)
{
    struct source *trace = context;
    uint64_t duration = trace->is_closed ? trace->end.wall_time : trace->clock.newest;
    return source_has_times(trace) && clock_text(&trace->clock, trace->reader, duration, at, text);
}

static void tell_damage(void *context, const struct ttd_error *error)
{
    source_damaged(context, error);
}

int session_open(struct session *work, const struct common *options)
{
    work->options = *options;
    work->has_output = false;
    work->uses_times = false;
    work->has_reasons = options->format->has_reasons;
    work->report = (struct report){
        .output = &work->output.out, .shows_all = options->has_full_stacks, .path = options->trace};
    int status = known_open(&work->known, &work->options.known);
    if (status != STATUS_OK)
        return status;
    status = source_open(&work->trace, options->trace, options->reads_whole_chunks);
    if (status != STATUS_OK) {
        known_close(&work->known);
        return status;
    }
    work->report.known = &work->known.summary;
    definitions_init(&work->names);
    work->names.stacks.damage = (struct stack_damage){&work->trace, tell_damage};
    work->steps = limits_steps();
    work->names.stacks.steps = &work->steps;
    work->report.names = &work->names;
    work->has_names = false;
    work->needs_known_patterns = false;
    work->tree = (struct view_tree){0};
    map_init(&work->judged);
    view_init(&work->view, &work->options.view, &work->names);
    work->report.view = &work->view;
    work->report.clock = (struct report_clock){&work->trace, tell_time};
    return STATUS_OK;
}

/* A pattern that is spelled wrong leaves out everything, or nothing. */
static int check_patterns(struct session *work, const char *option,
                          const struct view_patterns *patterns)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < patterns->count; i++) {
        bool is_known = false;
        int found = session_check(work, view_knows(&work->view, &patterns->items[i], &is_known));
        if (found != STATUS_OK)
            return found;
        if (is_known)
            continue;
        progress_end(&work->trace.progress);
        message("%s%s: no function, file or module has the name of %s '%s'",
                work->needs_known_patterns ? "" : "warning: ", work->trace.path, option,
                patterns->items[i].data);
        if (work->needs_known_patterns)
            status = STATUS_USAGE;
    }
    return status;
}

int session_names(struct session *work, bool are_needed)
{
    if (!are_needed || work->has_names)
        return STATUS_OK;
    work->has_names = true;
    int status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = check_patterns(work, "--include", &work->options.view.include);
    if (status == STATUS_OK)
        status = check_patterns(work, "--exclude", &work->options.view.exclude);
    if (status == STATUS_OK)
        status = check_patterns(work, "--skip", &work->options.view.skip);
    return status;
}

/* Patterns are checked even if there is nothing to leave out. */
static bool needs_names(const struct session *work, const struct heap_rows *rows)
{
    return *rows->count || view_has_filter(&work->options.view);
}

int session_check(struct session *work, enum ttd_status status)
{
    struct ttd_error error = {.what = NULL};
    return status == TTD_OK ? STATUS_OK : source_fail(&work->trace, status, &error);
}

int session_filter(struct session *work, const struct heap_rows *rows)
{
    int status = session_names(work, needs_names(work, rows));
    return status == STATUS_OK ? session_check(work, view_filter(&work->view, rows)) : status;
}

int session_wants(struct session *work, ttd_id stack, bool *is_wanted)
{
    *is_wanted = true;
    if (!view_has_filter(&work->options.view))
        return STATUS_OK;
    int status = session_names(work, true);
    return status == STATUS_OK ? session_check(work, view_wants(&work->view, stack, is_wanted))
                               : status;
}

bool session_has_tree(const struct session *work)
{
    return work->options.view.shape != VIEW_FLAT;
}

int session_view(struct session *work, const struct heap_rows *rows)
{
    int status = session_filter(work, rows);
    return status == STATUS_OK ? session_group(work, rows) : status;
}

static bool was_killed(const struct session *work)
{
    return work->trace.is_closed && work->trace.end.reason == TTD_END_SIGNALED;
}

/* Whether blocks of the runtimes may be counted as leaks. A trace without any list may be one of a
 * writer that knows of no runtimes; the recorder writes none only if the program was killed. */
static bool counts_runtime(const struct session *work, enum heap_runtime_told told)
{
    return told == HEAP_RUNTIME_CUT_SHORT || (told == HEAP_RUNTIME_UNKNOWN && was_killed(work));
}

/* Innermost frames that tell: those of an allocator's caller in the dynamic linker. */
enum { JUDGED_FRAMES = 4 };

static bool keeps_stack(void *context, ttd_id stack)
{
    struct session *work = context;
    struct frame_list *frames = &work->report.frames;
    uint32_t judged = map_get(&work->judged, stack, 0);
    if (judged != MAP_NONE)
        return judged;
    enum ttd_status status = frame_list_begin(frames, &work->names, stack, JUDGED_FRAMES);
    bool keeps = status == TTD_OK && runtime_is_thread_storage(frames);
    if (status == TTD_OK)
        status = map_set(&work->judged, stack, 0, keeps);
    if (status != TTD_OK)
        work->report.status = status;
    return keeps;
}

int session_hook(struct session *work, struct heap_batch_hook *hook)
{
    int status = session_names(work, true);
    *hook = source_hook(&work->trace);
    if (runtime_has_thread_storage(&work->names))
        hook->judge = (struct heap_stack_judge){work, keeps_stack};
    return status;
}

int session_runtime(struct session *work, struct heap_runtime *runtime, bool is_shown)
{
    work->report.runtime =
        (struct report_runtime){.groups = &runtime->groups,
                                .is_shown = is_shown,
                                .is_counted = counts_runtime(work, runtime->told),
                                .was_killed = was_killed(work)};
    struct heap_rows rows = heap_groups_rows(&runtime->groups);
    return session_has_tree(work) ? session_filter(work, &rows) : session_view(work, &rows);
}

int session_judge(struct session *work, const struct known_finding *finding, bool *is_new)
{
    int status = session_names(work, true);
    if (status != STATUS_OK)
        return status;
    return session_check(work, known_judge(&work->known, &work->names, finding, is_new));
}

int session_end_known(struct session *work)
{
    int status = session_check(work, known_find_growth(&work->known));
    if (status != STATUS_OK)
        return status;
    return known_write(&work->known, &work->names, work->trace.path);
}

int session_group(struct session *work, const struct heap_rows *rows)
{
    if (!session_has_tree(work))
        return session_check(work, view_group(&work->view, rows));
    return session_check_tree(
        work, view_tree_build(&work->view, rows, session_tree_limit(work), &work->tree));
}

size_t session_tree_limit(const struct session *work)
{
    return work->options.format->needs_tree ? SIZE_MAX : work->options.view.limit;
}

int session_check_tree(struct session *work, enum ttd_status status)
{
    bool is_too_much = status == TTD_ERROR_LIMIT || status == TTD_ERROR_NO_MEMORY;
    int result = session_check(work, status);
    if (is_too_much && !work->options.view.depth)
        message("--depth makes the tree smaller");
    return result;
}

bool session_print_tree(struct session *work, const char *unit, const char *weight)
{
    if (!session_has_tree(work))
        return false;
    struct report_tree data = {
        .tree = &work->tree, .options = &work->options.view, .unit = unit, .weight = weight};
    work->options.format->tree(&work->report, &data);
    return true;
}

int session_run(const struct command *which, int count, char **arguments, const struct option *own,
                option_function take, void *options, session_function find)
{
    struct common common_options;
    int status = command_options(&common_options, which, count, arguments, own, take, options);
    if (status >= 0)
        return status;
    struct session work;
    status = session_open(&work, &common_options);
    if (status != STATUS_OK)
        return status;
    status = find(&work, options);
    return session_close(&work, status, work.has_output);
}

int session_output(struct session *work, bool is_long)
{
    progress_end(&work->trace.progress);
    bool pages = is_long && work->options.has_pager;
    int status = output_open(&work->output, work->options.output, work->options.trace, pages);
    work->has_output = status == STATUS_OK;
    work->output.out.room = limits_output();
    return status;
}

void session_doubts(struct session *work, const struct heap_losses *losses,
                    const struct heap_counts *counts, struct ttd_position at, bool reached_end,
                    struct ttd_position last)
{
    struct doubt_facts facts = {.trace = ttd_reader_trace(work->trace.reader),
                                .is_closed = work->trace.is_closed,
                                .is_intact = source_is_intact(&work->trace),
                                .is_truncated = work->trace.is_truncated,
                                .is_given_up = work->trace.is_given_up,
                                .uses_times = work->uses_times,
                                .losses = losses,
                                .counts = counts,
                                .at = at,
                                .reached_end = reached_end,
                                .last = last,
                                .part_of = work->trace.part_of};
    progress_end(&work->trace.progress);
    doubts_find(&work->report.doubts, &facts);
}

void session_outcome(struct session *work, const struct heap_outcome *outcome,
                     struct ttd_position at)
{
    if (outcome->truncated)
        source_truncated(&work->trace, &outcome->error);
    session_doubts(work, &outcome->losses, &outcome->counts, at, outcome->reached_end,
                   outcome->position);
}

/* Says why the report is uncertain, if it does not itself. */
static void warn_of_doubts(const struct session *work)
{
    for (size_t i = 0; !work->has_reasons && i < work->report.doubts.count; i++)
        message("warning: %s: uncertain: %s", work->trace.path, work->report.doubts.reasons[i]);
}

int session_close(struct session *work, int status, bool keep)
{
    warn_of_doubts(work);
    if (work->report.status != TTD_OK) {
        status = message_status(work->trace.path, work->report.status);
        keep = false;
    }
    if (work->has_output)
        status = output_close(&work->output, status, keep || status < STATUS_USAGE);
    frame_list_free(&work->report.frames);
    view_tree_free(&work->tree);
    view_free(&work->view);
    map_free(&work->judged);
    known_close(&work->known);
    definitions_free(&work->names);
    source_close(&work->trace);
    return status;
}
