/* SPDX-License-Identifier: MIT */
#include "cmd_compare.h"

#include "cli/exit.h"
#include "cli/message.h"
#include "cli/session.h"
#include "cli/sidecar.h"

/* The whole work: what is left of each trace is its names, and how certain it is. */
typedef struct work {
    session sessions[HEAP_SIDES];
    heap_comparison comparison;
    ttd_position positions[HEAP_SIDES];
    /** Stacks are known by their identifiers, which are of one trace. */
    bool is_one_trace;
} work;

static ttd_status add_groups(work *all, heap_side side, const heap_groups *groups)
{
    definitions *names = &all->sessions[side].names;
    fingerprinter memory = {.state = NULL};
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        fingerprint key = {0, groups->items[i].key.stack};
        if (!all->is_one_trace)
            status = fingerprint_stack(&memory, names, groups->items[i].key.stack, &key);
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
    heap_state_wishes wishes = {.split = HEAP_SPLIT_NONE};
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&own->trace);
    ttd_status found = heap_state_find(own->trace.reader, sidecar_use(own, at), at, &wishes, &hook,
                                       &state, &error);
    if (found != TTD_OK)
        return source_fail(&own->trace, found, &error);
    session_outcome(own, &state.outcome, at);
    all->positions[side] = state.outcome.position;
    if (state.tables.by[HEAP_BY_STACK].count)
        status = source_define(&own->trace, TTD_KINDS_DEFINITIONS, &own->names);
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
    return session_close(&all.sessions[HEAP_OLD], status, false);
}
