/* SPDX-License-Identifier: MIT */
/* The comparison of two heaps, of one trace or of two, for `diff` and for the page of `report`. */
#include "cli/options/command.h"
#include "cli/page/page.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "commands/findings.h"
#include "report/state/state_reports.h"

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
static enum ttd_status compare_find_key(struct compared_heaps *heaps, enum heap_side side,
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

static enum ttd_status compare_sum_groups(struct compared_heaps *heaps, enum heap_side side,
                                          const struct heap_groups *groups)
{
    struct fingerprinter fingerprinter = {.definitions = NULL};
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct fingerprint key = {0, 0};
        status = compare_find_key(heaps, side, &fingerprinter, groups->items[i].key, &key);
        if (status == TTD_OK)
            status =
                heap_comparison_add(&heaps->comparison, side, key.high, key.low, &groups->items[i]);
    }
    fingerprinter_free(&fingerprinter);
    return status;
}

/* Adds the live blocks of one side. */
static int compare_add_live(struct compared_heaps *heaps, enum heap_side side,
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
    return status == STATUS_OK ? session_check(session, compare_sum_groups(heaps, side, groups))
                               : status;
}

/* Adds the blocks of a heap. Those that the runtimes keep are compared if asked for, else only
 * summed up. */
static int compare_add_heap(struct compared_heaps *heaps, enum heap_side side,
                            struct heap_groups *groups)
{
    struct session *session = &heaps->sessions[side];
    struct heap_runtime *kept = &heaps->runtimes[side];
    int status = compare_add_live(heaps, side, groups);
    if (status != STATUS_OK)
        return status;
    if (!heaps->shows_runtime)
        return session_runtime(session, kept, false);
    status = compare_add_live(heaps, side, &kept->groups);
    heaps->lives[side].blocks += kept->groups.blocks;
    heaps->lives[side].bytes = heap_add(heaps->lives[side].bytes, kept->groups.bytes);
    return status;
}

/* Sums up the blocks of a heap that pass the filters. The definitions of heaps show those within
 * others. */
static int compare_sum_heaps(struct compared_heaps *heaps, enum heap_side side,
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

static int compare_find(struct compared_heaps *heaps, enum heap_side side,
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
    status = compare_sum_heaps(heaps, side, &state.tables.by[HEAP_BY_HEAP]);
    if (status == STATUS_OK)
        status = compare_add_heap(heaps, side, &state.tables.by[HEAP_BY_STACK]);
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

static enum ttd_status compare_number_stack(void *context, ttd_id stack, uint64_t *number)
{
    struct compared_calls *calls = context;
    enum heap_side side = calls->report->view == calls->old_view ? HEAP_OLD : HEAP_NEW;
    return page_calls_number(&calls->sides[side], stack, number);
}

/* Writes the comparison as data of a page: the output of `diff`, with stacks as numbers of nodes in
 * the trees of calls of both heaps. */
static int compare_write_page(struct compared_heaps *heaps, const struct report_compare *data,
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
    session->report.stacks = (struct report_stacks){&calls, compare_number_stack};
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

static int compare_print(struct compared_heaps *heaps, const struct compare_options *options)
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
        return compare_write_page(heaps, &data, options);
    report_compare(&session->report, &data);
    return STATUS_OK;
}

/* Adds the new heap to the old one, and prints. */
static int compare_find_new(struct compared_heaps *heaps, const struct common_options *common,
                            const struct compare_options *options)
{
    struct session *session = &heaps->sessions[HEAP_NEW];
    struct common_options new_options = *common;
    if (common->other_count)
        new_options.trace = common->others[0];
    int status = session_open(session, &new_options);
    if (status != STATUS_OK)
        return status;
    status = compare_find(heaps, HEAP_NEW, options);
    if (status == STATUS_OK)
        status = compare_print(heaps, options);
    return session_close(session, status, false);
}

static int compare_find_both(struct compared_heaps *heaps, const struct common_options *common,
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
        status = compare_find(heaps, HEAP_OLD, options);
    if (status == STATUS_OK)
        status = compare_find_new(heaps, common, options);
    return session_close(session, status, false);
}

/* One trace after the other: of the first, names and sums are kept, no block. */
int compare_heaps(const struct common_options *common, const struct compare_options *options)
{
    struct compared_heaps heaps = {.is_one_trace = !common->other_count,
                                   .shows_runtime = options->shows_runtime};
    heap_comparison_init(&heaps.comparison);
    labels_init(&heaps.labels);
    int status = compare_find_both(&heaps, common, options);
    view_tree_free(&heaps.tree);
    heap_comparison_free(&heaps.comparison);
    labels_free(&heaps.labels);
    for (int i = 0; i < HEAP_SIDES; i++)
        heap_groups_free(&heaps.runtimes[i].groups);
    return status;
}
