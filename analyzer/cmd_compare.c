/* SPDX-License-Identifier: MIT */
#include "cmd_compare.h"

#include "cli/exit.h"
#include "cli/session.h"
#include "cli/sidecar.h"
#include "view/glob.h"

/* The whole work: what is left of each trace is its names, and how certain it is. */
typedef struct work {
    session sessions[HEAP_SIDES];
    heap_comparison comparison;
    ttd_position positions[HEAP_SIDES];
    /** Stacks are known by their identifiers, which are of one trace. */
    bool is_one_trace;
    /** Of both traces. */
    label_table labels;
} work;

/* What tells a group from others: of a stack its fingerprint, or its identifier in one trace; of
 * what groups it otherwise, its label in both traces, wherever the module is. */
static ttd_status find_key(work *all, heap_side side, fingerprinter *memory, heap_key group,
                           fingerprint *key)
{
    session *own = &all->sessions[side];
    if (own->options.view.by == VIEW_BY_STACK && all->is_one_trace) {
        *key = (fingerprint){0, group.stack};
        return TTD_OK;
    }
    if (own->options.view.by == VIEW_BY_STACK)
        return fingerprint_stack(memory, &own->names, group.stack, key);
    view_label label = *view_find_label(&own->view, group);
    uint32_t index;
    label.module = glob_base_name(label.module);
    if (label.kind == LABEL_MODULE)
        label.name = glob_base_name(label.name);
    /* An address in no module is that of one run. */
    if (label.kind == LABEL_FUNCTION && !label.module.size && !all->is_one_trace)
        label.number = 0;
    ttd_status status = labels_add(&all->labels, &label, &index);
    if (status == TTD_OK)
        *key = (fingerprint){0, index};
    return status;
}

static ttd_status add_groups(work *all, heap_side side, const heap_groups *groups)
{
    fingerprinter memory = {.state = NULL};
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        fingerprint key = {0, 0};
        status = find_key(all, side, &memory, groups->items[i].key, &key);
        if (status == TTD_OK)
            status =
                heap_comparison_add(&all->comparison, side, key.high, key.low, &groups->items[i]);
    }
    fingerprinter_free(&memory);
    return status;
}

static int find(work *all, heap_side side, const moment *when)
{
    session *own = &all->sessions[side];
    ttd_position at;
    int status = moment_resolve(when, MOMENT_STATE, &own->trace, &at);
    if (status != STATUS_OK)
        return status;
    heap_state state;
    heap_state_wishes wishes = {.split = view_split(&own->options.view)};
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&own->trace);
    ttd_status found = heap_state_find(own->trace.reader, sidecar_use(own, at), at, &wishes, &hook,
                                       &state, &error);
    if (found != TTD_OK)
        return source_fail(&own->trace, found, &error);
    session_outcome(own, &state.outcome, at);
    all->positions[side] = state.outcome.position;
    heap_rows rows = heap_groups_rows(&state.tables.by[HEAP_BY_STACK]);
    status = session_view(own, &rows);
    if (status == STATUS_OK) {
        found = add_groups(all, side, &state.tables.by[HEAP_BY_STACK]);
        if (found != TTD_OK)
            status = source_fail(&own->trace, found, &error);
    }
    heap_state_free(&state);
    progress_end(&own->trace.progress);
    return status;
}

static int print(work *all, const compare_options *options)
{
    session *own = &all->sessions[HEAP_NEW];
    int status = output_spare(own->options.output, all->sessions[HEAP_OLD].options.trace);
    if (status == STATUS_OK)
        status = session_output(own, true);
    if (status != STATUS_OK)
        return status;
    heap_comparison_sort(&all->comparison);
    report_compare data = {.comparison = &all->comparison, .limit = options->limit};
    for (int i = 0; i < HEAP_SIDES; i++) {
        session *side = &all->sessions[i];
        data.sides[i] = (report_side){.names = &side->names,
                                      .view = &side->view,
                                      .doubts = &side->report.doubts,
                                      .trace_id = ttd_reader_trace(side->trace.reader)->trace_id,
                                      .position = all->positions[i]};
    }
    own->options.format->compare(&own->report, &data);
    return STATUS_OK;
}

/* One trace after the other: of the first, names and sums are kept, no block. */
int compare_heaps(const common *from, const compare_options *options)
{
    work all;
    common sides[HEAP_SIDES] = {*from, *from};
    all.is_one_trace = !from->other;
    if (from->other)
        sides[HEAP_NEW].trace = from->other;
    heap_comparison_init(&all.comparison);
    labels_init(&all.labels);
    int status = session_open(&all.sessions[HEAP_OLD], &sides[HEAP_OLD]);
    if (status != STATUS_OK)
        return status;
    status = find(&all, HEAP_OLD, &options->moments[HEAP_OLD]);
    if (status == STATUS_OK) {
        status = session_open(&all.sessions[HEAP_NEW], &sides[HEAP_NEW]);
        if (status == STATUS_OK) {
            status = find(&all, HEAP_NEW, &options->moments[HEAP_NEW]);
            if (status == STATUS_OK)
                status = print(&all, options);
            status = session_close(&all.sessions[HEAP_NEW], status, false);
        }
    }
    heap_comparison_free(&all.comparison);
    labels_free(&all.labels);
    return session_close(&all.sessions[HEAP_OLD], status, false);
}
