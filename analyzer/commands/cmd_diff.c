/* SPDX-License-Identifier: MIT */
/* ttdanalyze diff */
#include <string.h>

#include "cli/options/command.h"
#include "cli/page/page.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "commands/findings.h"
#include "report/state/state_reports.h"

/* The comparison of two heaps, of one trace or of two, for `diff` and for the page of `report`. */

/* The whole work: only the names and the certainty of each trace are left. */
struct compared_heaps {
    struct session sessions[HEAP_SIDES];
    /** Blocks of each heap that the runtimes keep. */
    struct heap_runtime runtimes[HEAP_SIDES];
    /** Sums of the blocks that are compared. */
    struct report_live lives[HEAP_SIDES];
    bool shows_runtime;
    struct heap_comparison comparison;
    struct ttd_position positions[HEAP_SIDES];
    /** Stacks are known by their identifiers in one trace. */
    bool is_one_trace;
    /** Labels of groups in both traces. */
    struct label_table labels;
    /** If one is wanted; then nothing but the sums is in the comparison. */
    struct view_tree tree;
};

/* Finds the key that makes groups of both sides one. Identifiers of stacks hold within one trace
 * only; across two traces a stack is known by its fingerprint. Other groups are known by their
 * label, without a module's load address. */
static enum ttd_status diff_find_key(struct compared_heaps *heaps, enum heap_side side,
                                     struct fingerprinter *fingerprinter, struct heap_key group,
                                     struct fingerprint *key)
{
    struct session *session = &heaps->sessions[side];
    if (session->options.view.by == VIEW_BY_STACK && heaps->is_one_trace) {
        *key = (struct fingerprint){0, group.stack};
        return TTD_OK;
    }
    if (session->options.view.by == VIEW_BY_STACK)
        return fingerprint_stack(fingerprinter, &session->definitions, group.stack, key);
    struct view_label label = *view_find_label(&session->view, group);
    uint32_t index;
    if (!heaps->is_one_trace)
        label = label_across(label);
    enum ttd_status status = labels_add(&heaps->labels, &label, &index);
    if (status == TTD_OK)
        *key = (struct fingerprint){0, index};
    return status;
}

static enum ttd_status diff_sum_groups(struct compared_heaps *heaps, enum heap_side side,
                                       const struct heap_groups *groups)
{
    struct fingerprinter fingerprinter = {.definitions = NULL};
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct fingerprint key = {0, 0};
        status = diff_find_key(heaps, side, &fingerprinter, groups->items[i].key, &key);
        if (status == TTD_OK)
            status =
                heap_comparison_add(&heaps->comparison, side, key.high, key.low, &groups->items[i]);
    }
    fingerprinter_free(&fingerprinter);
    return status;
}

/* Adds the live blocks of one side. */
static int diff_sum_live(struct compared_heaps *heaps, enum heap_side side,
                         struct heap_groups *groups)
{
    struct session *session = &heaps->sessions[side];
    struct heap_site_table sites = heap_groups_site_table(groups);
    int status = session_filter(session, &sites);
    if (status == STATUS_OK && session_has_tree(session))
        return session_check_tree(
            session, view_tree_add(&heaps->tree, &heaps->sessions[side].view, &sites, side));
    if (status == STATUS_OK)
        status = session_group(session, &sites);
    return status == STATUS_OK ? session_check(session, diff_sum_groups(heaps, side, groups))
                               : status;
}

/* Adds the blocks of a heap. Those that the runtimes keep are compared if asked for, else only
 * summed up. */
static int diff_add_heap(struct compared_heaps *heaps, enum heap_side side,
                         struct heap_groups *groups)
{
    struct session *session = &heaps->sessions[side];
    struct heap_runtime *kept = &heaps->runtimes[side];
    int status = diff_sum_live(heaps, side, groups);
    if (status != STATUS_OK)
        return status;
    if (!heaps->shows_runtime)
        return session_runtime(session, kept, false);
    status = diff_sum_live(heaps, side, &kept->groups);
    heaps->lives[side].blocks += kept->groups.blocks;
    heaps->lives[side].bytes = heap_add(heaps->lives[side].bytes, kept->groups.bytes);
    return status;
}

/* Sums up the blocks of a heap that pass the filters. The definitions of heaps show those within
 * others. */
static int diff_sum_heaps(struct compared_heaps *heaps, enum heap_side side,
                          struct heap_groups *by_heap)
{
    struct session *session = &heaps->sessions[side];
    int status = session_names(session, by_heap->count);
    if (status == STATUS_OK)
        status = session_filter_joined(session, by_heap);
    if (status == STATUS_OK)
        heaps->lives[side] = report_live_of(&session->report, by_heap);
    return status;
}

static int diff_find(struct compared_heaps *heaps, enum heap_side side,
                     const struct compare_options *asked)
{
    struct session *session = &heaps->sessions[side];
    struct question question;
    int status = session_ask_runtime(session, &asked->specs[side], &question);
    if (status != STATUS_OK)
        return status;
    struct heap_state state;
    const struct view_options *view = &session->options.view;
    struct heap_state_options options = {.at = question.at,
                                         .split = view_split(view),
                                         .has_stacks_in_tables =
                                             view->include.count || view->exclude.count,
                                         .tells_runtime = true};
    status = session_islands(session, &asked->island, &options.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_state_find(&question.trace, &options, &state, &question.error);
    status = session_answer(session, &question, result, &state.outcome);
    if (status != STATUS_OK)
        return status;
    heaps->positions[side] = state.outcome.position;
    heaps->runtimes[side] = state.runtime;
    state.runtime = (struct heap_runtime){.list = HEAP_RUNTIME_UNKNOWN};
    status = diff_sum_heaps(heaps, side, &state.tables.by[HEAP_BY_HEAP]);
    if (status == STATUS_OK)
        status = diff_add_heap(heaps, side, &state.tables.by[HEAP_BY_STACK]);
    heap_state_free(&state);
    progress_end(&session->source.progress);
    return status;
}

/* The trees of calls of both heaps. A report writes stacks of one heap at a time. */
struct compared_calls {
    const struct report *report;
    const struct view *old_view;
    struct view views[HEAP_SIDES];
    struct page_calls sides[HEAP_SIDES];
};

static enum ttd_status diff_number_stack(void *context, ttd_id stack, uint64_t *number)
{
    struct compared_calls *calls = context;
    enum heap_side side = calls->report->view == calls->old_view ? HEAP_OLD : HEAP_NEW;
    return page_calls_number(&calls->sides[side], stack, number);
}

/* Writes the comparison as data of a page: the output of `diff`, with stacks as numbers of nodes in
 * the trees of calls of both heaps. */
static int diff_write_page(struct compared_heaps *heaps, const struct report_compare *data,
                           const struct compare_options *options)
{
    static const char *const names[HEAP_SIDES] = {"old", "new"};
    struct session *session = &heaps->sessions[HEAP_NEW];
    struct compared_calls calls = {.report = &session->report,
                                   .old_view = &heaps->sessions[HEAP_OLD].view};
    struct view_options by_function = session->options.view;
    int status = page_begin(session);
    if (status != STATUS_OK)
        return status;
    by_function.by = VIEW_BY_FUNCTION;
    for (int i = 0; i < HEAP_SIDES; i++) {
        view_init(&calls.views[i], &by_function, &heaps->sessions[i].definitions);
        page_calls_init(&calls.sides[i], &calls.views[i]);
    }
    page_write_facts(&session->report, options->facts);
    session->report.stacks = (struct report_stacks){&calls, diff_number_stack};
    page_begin_part(session->report.output, "diff");
    report_compare(&session->report, data);
    session->report.stacks = (struct report_stacks){NULL, NULL};
    for (int i = 0; i < HEAP_SIDES; i++) {
        page_write_calls(&calls.sides[i], names[i], session->report.output);
        page_calls_free(&calls.sides[i]);
        view_free(&calls.views[i]);
    }
    if (session->report.status == TTD_OK)
        return page_end(session, options->page);
    page_drop(session);
    return STATUS_OK; /* session_close() reports the failure. */
}

static int diff_print_heaps(struct compared_heaps *heaps, const struct compare_options *options)
{
    struct session *session = &heaps->sessions[HEAP_NEW];
    bool has_tree = session_has_tree(session);
    int status = STATUS_OK;
    if (has_tree)
        status = session_names(session, true); /* of threads and heaps, for both */
    struct view_tree_scope scope = {.levels = view_tree_levels(&session->options.view),
                                    .limit = session_tree_limit(session),
                                    .has_same = session->options.form == REPORT_FOLDED};
    if (has_tree && status == STATUS_OK)
        status = session_check_tree(session, view_tree_end(&heaps->tree, &scope));
    if (status == STATUS_OK && !options->page)
        status = output_spare(session->options.output, heaps->sessions[HEAP_OLD].options.trace);
    if (status == STATUS_OK && !options->page)
        status = session_output(session, true);
    if (status != STATUS_OK)
        return status;
    heap_comparison_sort(&heaps->comparison);
    session->report.limit = options->limit;
    struct report_compare data = {.comparison = &heaps->comparison,
                                  .tree = has_tree ? &heaps->tree : NULL,
                                  .has_same = options->page};
    for (int i = 0; i < HEAP_SIDES; i++) {
        struct session *side = &heaps->sessions[i];
        data.sides[i] =
            (struct report_side){.definitions = &side->definitions,
                                 .view = &side->view,
                                 .certainty = &side->report.certainty,
                                 .runtime = &side->report.runtime,
                                 .trace_id = ttd_reader_trace(side->source.reader)->trace_id,
                                 .position = heaps->positions[i],
                                 .live = heaps->lives[i]};
    }
    if (options->page)
        return diff_write_page(heaps, &data, options);
    report_compare(&session->report, &data);
    return STATUS_OK;
}

/* Adds the new heap to the old one, and prints. */
static int diff_find_new(struct compared_heaps *heaps, const struct common_options *common,
                         const struct compare_options *options)
{
    struct session *session = &heaps->sessions[HEAP_NEW];
    struct common_options new_options = *common;
    if (common->other_count)
        new_options.trace = common->others[0];
    int status = session_open(session, &new_options);
    if (status != STATUS_OK)
        return status;
    status = diff_find(heaps, HEAP_NEW, options);
    if (status == STATUS_OK)
        status = diff_print_heaps(heaps, options);
    return session_close(session, status, false);
}

static int diff_find_both(struct compared_heaps *heaps, const struct common_options *common,
                          const struct compare_options *options)
{
    struct session *session = &heaps->sessions[HEAP_OLD];
    int status = session_open(session, common);
    if (status != STATUS_OK)
        return status;
    if (session_has_tree(session))
        status = session_check(session,
                               view_tree_begin(&heaps->tree, &heaps->labels, !heaps->is_one_trace));
    if (status == STATUS_OK)
        status = diff_find(heaps, HEAP_OLD, options);
    if (status == STATUS_OK)
        status = diff_find_new(heaps, common, options);
    return session_close(session, status, false);
}

/* One trace after the other: of the first, names and sums are kept, no block. */
int compare_heaps(const struct common_options *common, const struct compare_options *options)
{
    struct compared_heaps heaps = {.is_one_trace = !common->other_count,
                                   .shows_runtime = options->shows_runtime};
    heap_comparison_init(&heaps.comparison);
    labels_init(&heaps.labels);
    int status = diff_find_both(&heaps, common, options);
    view_tree_free(&heaps.tree);
    heap_comparison_free(&heaps.comparison);
    labels_free(&heaps.labels);
    for (int i = 0; i < HEAP_SIDES; i++)
        heap_groups_free(&heaps.runtimes[i].groups);
    return status;
}

static const char diff_help[] =
    "Usage: ttdanalyze diff [--from POSITION] [--to POSITION] [OPTIONS] [TRACE]\n"
    "       ttdanalyze diff [--from POSITION] [--to POSITION] [OPTIONS] OLD NEW\n"
    "\n"
    "Shows the fate of blocks in a range of positions, by the stack that allocated\n"
    "them: AIFI, allocated inside the range and freed inside; AIFO, allocated inside\n"
    "and not freed in it, the range's additions; AOFI, allocated before and freed\n"
    "inside; and AOFO, allocated before and not freed in it. If there is a snapshot\n"
    "of references, shows which of AIFO are lost: by the first one after the range,\n"
    "or the last before.\n"
    "\n"
    "Of two traces, which live blocks are more or fewer in NEW than in OLD: the\n"
    "largest changes first. Stacks are the same if the functions of the program in\n"
    "them are, or without names their places in modules, wherever these were loaded;\n"
    "lines do not matter.\n"
    "\n"
    "      --from POSITION     the first position of the range (start); of two\n"
    "                          traces, the position in OLD (end)\n"
    "      --to POSITION       the first position after it (end); of two traces, the\n"
    "                          position in NEW (end)\n"
    "      --changes           of one trace, compare the heap at --to with that at\n"
    "                          --from, as if of two\n"
    "      --quadrant NAME     of a range, make the tree of --tree of aifi, aifo (the\n"
    "                          default), aofi or aofo\n"
    "      --show-runtime      list also the blocks that the C and C++ runtimes keep\n"
    "                          for themselves until the end, or of two heaps count "
    "it\n" ISLAND_OPTIONS_HELP VIEW_HELP_WITH_CLASS COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct diff_options {
    struct heap_island_filter island;
    struct position_spec from;
    struct position_spec to;
    bool has_from;
    bool has_changes;
    bool has_quadrant;
    bool shows_runtime;
    enum heap_quadrant quadrant;
};

static bool diff_parse_quadrant(const char *name, void *context)
{
    struct diff_options *options = context;
    options->has_quadrant = true;
    for (int i = 0; i < HEAP_QUADRANTS; i++) {
        options->quadrant = (enum heap_quadrant)i;
        if (strcmp(heap_quadrant_name(options->quadrant), name) == 0)
            return true;
    }
    return false;
}

static bool diff_parse_from(const char *argument, void *context)
{
    struct diff_options *options = context;
    options->has_from = true;
    return position_spec_parse(argument, &options->from);
}

static const struct own_option diff_own[] = {
    OWN_CHOICE("from", diff_parse_from),
    OWN_OPTION("to", option_position, struct diff_options, to),
    ISLAND_OPTIONS(struct diff_options, island),
    OWN_OPTION("changes", option_flag, struct diff_options, has_changes),
    OWN_CHOICE("quadrant", diff_parse_quadrant),
    OWN_OPTION("show-runtime", option_flag, struct diff_options, shows_runtime),
    OWN_OPTIONS_END};

/* Chooses the position for the question about lost blocks. The first snapshot at the end of the
 * range or after it knows all blocks of the range; without one, a snapshot before the end knows a
 * part. Returns false if there is no snapshot. */
static bool diff_choose_position(const struct heap_snapshots *snapshots, struct ttd_position last,
                                 struct ttd_position *position)
{
    const struct ttd_snapshot *after =
        heap_snapshots_after(snapshots, last, TTD_SNAPSHOT_REFERENCES);
    *position = after ? after->position : last;
    return after || heap_snapshots_before(snapshots, last, TTD_SNAPSHOT_REFERENCES);
}

/* Finds the classes of blocks from the snapshot that find_lost() uses, so that the classes and the
 * verdicts of a report belong to the same memory. */
static int diff_find_classes(struct session *session, const struct heap_trace *trace,
                             struct heap_diff_options *range)
{
    struct ttd_position snapshot_position;
    struct ttd_error error = {.what = NULL};
    struct heap_snapshots snapshots = {.count = 0};
    if (session->options.view.by != VIEW_BY_CLASS)
        return STATUS_OK;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, &error);
    if (status != TTD_OK)
        return source_fail(&session->source, status, &error);
    diff_choose_position(&snapshots, range->last, &snapshot_position);
    heap_snapshots_free(&snapshots);
    return session_classes(session, trace, snapshot_position, &range->classes);
}

/* Classifies the blocks that the range has added. Without a snapshot nothing is set. */
static enum ttd_status diff_find_lost(const struct heap_trace *trace,
                                      const struct heap_diff_options *range,
                                      struct heap_leaks *lost, struct ttd_error *error)
{
    struct heap_leaks_range allocated = {range->from, range->last};
    struct heap_leaks_options query = {.allocated = &allocated, .islands = range->islands};
    struct heap_snapshots snapshots = {.count = 0};
    memset(lost, 0, sizeof *lost);
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status == TTD_OK && diff_choose_position(&snapshots, range->last, &query.at))
        status = heap_leaks_find(trace, &query, lost, error);
    heap_snapshots_free(&snapshots);
    return status;
}

static int diff_filter_lost(struct session *session, struct heap_leaks *lost)
{
    int status = STATUS_OK;
    certainty_add_snapshot(&session->report.certainty, &lost->snapshot, lost->misplaced);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == STATUS_OK; kind++) {
        struct heap_site_table sites = heap_groups_site_table(&lost->kinds[kind]);
        status = session_filter(session, &sites);
    }
    return status;
}

static int diff_print_sides(struct session *session, const struct diff_options *options,
                            struct heap_diff *diff, struct heap_leaks *lost,
                            const struct heap_diff_options *range)
{
    /* A verdict about lost blocks rests on those that were released before, too. */
    if (!lost->snapshot.number)
        diff->outcome.since = range->from;
    session_outcome(session, &diff->outcome, range->last);
    int status = session_runtime(session, &diff->runtime, options->shows_runtime);
    if (status == STATUS_OK)
        status = diff_filter_lost(session, lost);
    struct heap_site_table unknown = heap_groups_site_table(&diff->unknown);
    if (status == STATUS_OK)
        status = session_filter(session, &unknown);
    for (int i = 0; i < HEAP_QUADRANTS && status == STATUS_OK; i++) {
        struct heap_site_table sites = heap_groups_site_table(&diff->quadrants[i]);
        /* A tree shows one quadrant only, so the others need not be grouped. */
        if (!session_has_tree(session) || options->quadrant == (enum heap_quadrant)i)
            status = session_view(session, &sites);
    }
    if (status == STATUS_OK)
        status = session_output(session, true);
    session_lead_with_functions(session);
    if (status != STATUS_OK || session_print_tree(session, "block", "bytes"))
        return status;
    struct report_diff data = {
        .diff = diff, .lost = lost, .from = range->from, .last = range->last};
    report_diff(&session->report, &data);
    return STATUS_OK;
}

/* Finds and prints the quadrants of a range. */
static int diff_find_range(struct session *session, const struct diff_options *options,
                           const struct heap_trace *trace, struct heap_diff_options *query)
{
    struct heap_diff diff;
    struct heap_leaks lost;
    struct ttd_error error = {.what = NULL};
    struct heap_trace without_index = *trace;
    int status = diff_find_classes(session, trace, query);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_diff_find(trace, query, &diff, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    without_index.keyframes = NULL;
    result = diff_find_lost(&without_index, query, &lost, &error);
    status = result == TTD_OK ? diff_print_sides(session, options, &diff, &lost, query)
                              : source_fail(&session->source, result, &error);
    heap_diff_free(&diff);
    if (result == TTD_OK)
        heap_leaks_free(&lost);
    return status;
}

static int diff_execute(struct session *session, const void *context)
{
    const struct diff_options *options = context;
    struct ttd_position from, to;
    struct heap_trace trace;
    int status = position_spec_resolve(&options->from, POSITION_FOR_ORDER, &session->source, &from);
    if (status == STATUS_OK)
        status = position_spec_resolve(&options->to, POSITION_FOR_ORDER, &session->source, &to);
    if (status != STATUS_OK)
        return status;
    status = position_range_check("diff", &session->source, from, to);
    if (status != STATUS_OK)
        return status;
    bool is_end = heap_is_end(to);
    status = session_trace(session, &trace);
    if (status != STATUS_OK)
        return status;
    trace.keyframes = sidecar_use(session, from);
    struct heap_diff_options query = {.from = from,
                                      .last = is_end ? to : heap_position_before(to),
                                      .split = view_split(&session->options.view)};
    status = session_islands(session, &options->island, &query.islands);
    return status == STATUS_OK ? diff_find_range(session, options, &trace, &query) : status;
}

int diff_print(struct session *session, struct ttd_position from, struct ttd_position last,
               const struct heap_islands *islands)
{
    struct diff_options options = {.quadrant = HEAP_AIFO};
    struct heap_diff_options query = {.from = from,
                                      .last = last,
                                      .split = view_split(&session->options.view),
                                      .islands = islands};
    struct heap_trace trace;
    int status = session_trace(session, &trace);
    return status == STATUS_OK ? diff_find_range(session, &options, &trace, &query) : status;
}

static int diff_compare_traces(const struct common_options *common,
                               const struct diff_options *options)
{
    struct compare_options two = {.specs = {options->from, options->to},
                                  .island = options->island,
                                  .limit = common->view.limit,
                                  .shows_runtime = options->shows_runtime};
    bool is_by_id = common->view.by == VIEW_BY_THREAD || common->view.by == VIEW_BY_HEAP;
    if (options->has_quadrant)
        return message_usage(
            "diff", "--quadrant applies to a range of one trace, not to a comparison of two heaps");
    if (common->other_count && is_by_id)
        return message_usage("diff", "no thread or heap of one trace is one of another");
    if (common->view.by == VIEW_BY_CLASS)
        return message_usage("diff", "--by class applies to a range of one trace, not to a "
                                     "comparison of two heaps");
    if (common->other_count && !options->has_from)
        two.specs[HEAP_OLD].kind = POSITION_SPEC_END;
    return compare_heaps(common, &two);
}

static const struct diff_options diff_defaults = {.from = {.kind = POSITION_SPEC_START},
                                                  .to = {.kind = POSITION_SPEC_END},
                                                  .quadrant = HEAP_AIFO};

static int diff_run(const struct command *command, int count, char **arguments)
{
    struct diff_options options = diff_defaults;
    struct common_options common_options;
    int status = command_options(&common_options, command, count, arguments, &options);
    if (status >= 0)
        return status;
    if (common_options.other_count || options.has_changes)
        return diff_compare_traces(&common_options, &options);
    if (options.has_quadrant && common_options.view.shape == VIEW_FLAT)
        return message_usage("diff", "--quadrant needs --tree");
    if (options.shows_runtime && common_options.view.shape != VIEW_FLAT)
        return message_usage("diff", "a tree has no place for --show-runtime");
    struct session session;
    status = session_open(&session, &common_options);
    if (status != STATUS_OK)
        return status;
    return session_close(&session, diff_execute(&session, &options), false);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "what a range has added and freed; what two heaps differ in",
    .help = diff_help,
    .shares = COMMAND_VIEWS | COMMAND_CLASSES,
    .own = {diff_own, &diff_defaults, sizeof diff_defaults},
    .traces_max = 2,
    .run = diff_run,
    .execute = diff_execute,
};
