/* SPDX-License-Identifier: MIT */
#include "cmd_compare.h"

#include "cli/exit.h"
#include "cli/session.h"
#include "cli/sidecar.h"

/* The whole work: what is left of each trace is its names, and how certain it is. */
struct work {
    struct session sessions[HEAP_SIDES];
    /** Blocks of each heap that the runtimes keep. */
    struct heap_runtime runtimes[HEAP_SIDES];
    bool shows_runtime;
    struct heap_comparison comparison;
    struct ttd_position positions[HEAP_SIDES];
    /** Stacks are known by their identifiers, which are of one trace. */
    bool is_one_trace;
    /** Of both traces. */
    struct label_table labels;
    /** If one is wanted; then nothing but the sums is in the comparison. */
    struct view_tree tree;
};

/* What tells a group from others: of a stack its fingerprint, or its identifier in one trace; of
 * what groups it otherwise, its label in both traces, wherever the module is. */
static enum ttd_status find_key(struct work *all, enum heap_side side, struct fingerprinter *memory,
                                struct heap_key group, struct fingerprint *key)
{
    struct session *own = &all->sessions[side];
    if (own->options.view.by == VIEW_BY_STACK && all->is_one_trace) {
        *key = (struct fingerprint){0, group.stack};
        return TTD_OK;
    }
    if (own->options.view.by == VIEW_BY_STACK)
        return fingerprint_stack(memory, &own->names, group.stack, key);
    struct view_label label = *view_find_label(&own->view, group);
    uint32_t index;
    if (!all->is_one_trace)
        label = label_across(label);
    enum ttd_status status = labels_add(&all->labels, &label, &index);
    if (status == TTD_OK)
        *key = (struct fingerprint){0, index};
    return status;
}

static enum ttd_status add_groups(struct work *all, enum heap_side side,
                                  const struct heap_groups *groups)
{
    struct fingerprinter memory = {.names = NULL};
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct fingerprint key = {0, 0};
        status = find_key(all, side, &memory, groups->items[i].key, &key);
        if (status == TTD_OK)
            status =
                heap_comparison_add(&all->comparison, side, key.high, key.low, &groups->items[i]);
    }
    fingerprinter_free(&memory);
    return status;
}

static enum ttd_status add_to_tree(struct work *all, enum heap_side side,
                                   const struct heap_groups *groups, const struct heap_rows *rows)
{
    all->comparison.blocks[side] += groups->blocks;
    all->comparison.bytes[side] = heap_add(all->comparison.bytes[side], groups->bytes);
    return view_tree_add(&all->tree, &all->sessions[side].view, rows, side);
}

/* Adds what is live on one side. */
static int add(struct work *all, enum heap_side side, struct heap_groups *groups)
{
    struct session *own = &all->sessions[side];
    struct heap_rows rows = heap_groups_rows(groups);
    int status = session_filter(own, &rows);
    if (status == STATUS_OK && session_has_tree(own))
        return session_check_tree(own, add_to_tree(all, side, groups, &rows));
    if (status == STATUS_OK)
        status = session_group(own, &rows);
    return status == STATUS_OK ? session_check(own, add_groups(all, side, groups)) : status;
}

/* Adds the blocks of a heap. Those that the runtimes keep are compared if asked for, else only
 * summed up. */
static int add_all(struct work *all, enum heap_side side, struct heap_groups *groups)
{
    struct session *own = &all->sessions[side];
    struct heap_runtime *kept = &all->runtimes[side];
    int status = add(all, side, groups);
    if (status != STATUS_OK)
        return status;
    return all->shows_runtime ? add(all, side, &kept->groups) : session_runtime(own, kept, false);
}

static int find(struct work *all, enum heap_side side, const struct moment *when)
{
    struct session *own = &all->sessions[side];
    struct ttd_position at;
    int status = moment_resolve(when, MOMENT_STATE, &own->trace, &at);
    if (status != STATUS_OK)
        return status;
    struct heap_state state;
    struct heap_state_wishes wishes = {.split = view_split(&own->options.view),
                                       .tells_runtime = true};
    struct ttd_error error = {.what = NULL};
    struct heap_batch_hook hook;
    status = session_hook(own, &hook);
    if (status != STATUS_OK)
        return status;
    enum ttd_status found = heap_state_find(own->trace.reader, sidecar_use(own, at), at, &wishes,
                                            &hook, &state, &error);
    if (found != TTD_OK)
        return source_fail(&own->trace, found, &error);
    session_outcome(own, &state.outcome, at);
    all->positions[side] = state.outcome.position;
    all->runtimes[side] = state.runtime;
    state.runtime = (struct heap_runtime){.told = HEAP_RUNTIME_UNKNOWN};
    status = add_all(all, side, &state.tables.by[HEAP_BY_STACK]);
    heap_state_free(&state);
    progress_end(&own->trace.progress);
    return status;
}

static int print(struct work *all, const struct compare_options *options)
{
    struct session *own = &all->sessions[HEAP_NEW];
    bool has_tree = session_has_tree(own);
    int status = STATUS_OK;
    if (has_tree)
        status = session_names(own, true); /* of threads and heaps, for both */
    struct view_shown wanted = {.levels = view_tree_levels(&own->options.view),
                                .limit = session_tree_limit(own),
                                .has_same = own->options.format->needs_tree};
    if (has_tree && status == STATUS_OK)
        status = session_check_tree(own, view_tree_end(&all->tree, &wanted));
    if (status == STATUS_OK)
        status = output_spare(own->options.output, all->sessions[HEAP_OLD].options.trace);
    if (status == STATUS_OK)
        status = session_output(own, true);
    if (status != STATUS_OK)
        return status;
    heap_comparison_sort(&all->comparison);
    struct report_compare data = {.comparison = &all->comparison,
                                  .tree = has_tree ? &all->tree : NULL,
                                  .limit = options->limit};
    for (int i = 0; i < HEAP_SIDES; i++) {
        struct session *side = &all->sessions[i];
        data.sides[i] =
            (struct report_side){.names = &side->names,
                                 .view = &side->view,
                                 .doubts = &side->report.doubts,
                                 .runtime = &side->report.runtime,
                                 .trace_id = ttd_reader_trace(side->trace.reader)->trace_id,
                                 .position = all->positions[i]};
    }
    own->options.format->compare(&own->report, &data);
    return STATUS_OK;
}

/* Of the new heap, when the old one is known. */
static int find_new(struct work *all, const struct common *from,
                    const struct compare_options *options)
{
    struct session *own = &all->sessions[HEAP_NEW];
    struct common of_new = *from;
    if (from->other)
        of_new.trace = from->other;
    int status = session_open(own, &of_new);
    if (status != STATUS_OK)
        return status;
    status = find(all, HEAP_NEW, &options->moments[HEAP_NEW]);
    if (status == STATUS_OK)
        status = print(all, options);
    return session_close(own, status, false);
}

static int find_both(struct work *all, const struct common *from,
                     const struct compare_options *options)
{
    struct session *own = &all->sessions[HEAP_OLD];
    int status = session_open(own, from);
    if (status != STATUS_OK)
        return status;
    if (session_has_tree(own))
        status = session_check(own, view_tree_begin(&all->tree, &all->labels, !all->is_one_trace));
    if (status == STATUS_OK)
        status = find(all, HEAP_OLD, &options->moments[HEAP_OLD]);
    if (status == STATUS_OK)
        status = find_new(all, from, options);
    return session_close(own, status, false);
}

/* One trace after the other: of the first, names and sums are kept, no block. */
int compare_heaps(const struct common *from, const struct compare_options *options)
{
    struct work all = {.is_one_trace = !from->other, .shows_runtime = options->shows_runtime};
    heap_comparison_init(&all.comparison);
    labels_init(&all.labels);
    int status = find_both(&all, from, options);
    view_tree_free(&all.tree);
    heap_comparison_free(&all.comparison);
    labels_free(&all.labels);
    for (int i = 0; i < HEAP_SIDES; i++)
        heap_groups_free(&all.runtimes[i].groups);
    return status;
}
