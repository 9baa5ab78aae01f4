/* SPDX-License-Identifier: MIT */
/* The report of `state` as text: the heap in tables, or the owners of an address. */
#include "report/state/reports.h"
#include "report/writers/escape.h"

/* Columns of the tables of heaps, threads and sizes. */
#define COLUMN_BLOCKS 30
#define COLUMN_BYTES  46

static void text_heap(struct report *report, ttd_id id)
{
    report_label_text(report, &(struct view_label){.kind = LABEL_HEAP, .number = id});
    const struct definition_heap *heap = definitions_heap(report->definitions, id);
    if (heap && heap->parent != TTD_NONE)
        out_format(report->output, ", in heap %u", heap->parent);
}

static void text_thread(struct report *report, ttd_id id)
{
    report_label_text(report, &(struct view_label){.kind = LABEL_THREAD, .number = id});
}

static void text_state_size(struct report *report, ttd_id id)
{
    uint64_t first, last;
    heap_class_range(id, &first, &last);
    out_grouped(report->output, first);
    if (last > first) {
        out_text(report->output, " to ");
        out_grouped(report->output, last);
    }
    out_text(report->output, last == 1 ? " byte" : " bytes");
}

static void text_table(struct report *report, const struct heap_groups *groups,
                       void (*name)(struct report *report, ttd_id id))
{
    out_char(report->output, '\n');
    for (size_t i = 0; i < groups->count; i++) {
        out_text(report->output, "  ");
        name(report, groups->items[i].key.property);
        out_tab(report->output, COLUMN_BLOCKS);
        report_count(report->output, groups->items[i].blocks, "block");
        out_tab(report->output, COLUMN_BYTES);
        report_count(report->output, groups->items[i].bytes, "byte");
        out_char(report->output, '\n');
    }
}

static void text_state_blocks(struct report *report, const struct heap_state *state)
{
    if (state->block_count)
        out_char(report->output, '\n');
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        out_text(report->output, "  ");
        out_hex(report->output, block->address);
        out_tab(report->output, 22);
        report_count(report->output, block->size, "byte");
        out_tab(report->output, 40);
        out_text(report->output, "allocated at ");
        out_position(report->output, block->allocated);
        out_format(report->output, " in thread %u, stack #%u%s\n", block->thread, block->stack,
                   heap_is_unknown(block->allocated, report->unknown_before) ? ", unknown" : "");
    }
}

static void text_state_address(struct report *report, const struct report_state *data)
{
    struct text_output *output = report->output;
    const struct heap_owners *owners = data->owners;
    uint64_t address = owners->options.address;
    out_bold(output);
    out_hex(output, address);
    out_plain(output);
    if (owners->has_live) {
        out_text(output, " lies ");
        report_count(output, address - owners->live.block.address, "byte");
        out_text(output, " inside the block at ");
        report_owner_text(report, &owners->live);
    } else if (owners->has_before) {
        out_text(output, " is in no live block; it was in ");
        report_owner_text(report, &owners->before);
    } else {
        out_text(output, " is in no live block, and was in none before\n");
    }
    if (owners->has_after) {
        out_text(output, "next in ");
        report_owner_text(report, &owners->after);
    }
    if (data->referrers)
        report_pointers_text(report, data->referrers);
    report_neighbours_text(report, &data->state->neighbours, address);
}

static void text_tables(struct report *report, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    report_groups_text(report, &state->tables.by[HEAP_BY_STACK], data->limit, false);
    text_table(report, &state->tables.by[HEAP_BY_HEAP], text_heap);
    text_table(report, &state->tables.by[HEAP_BY_THREAD], text_thread);
    text_table(report, &state->tables.by[HEAP_BY_SIZE], text_state_size);
}

void report_live_nested_text(struct text_output *output, const char *indent,
                             const struct report_live *live)
{
    if (!live->nested_blocks)
        return;
    out_text(output, indent);
    out_text(output, "In them, in heaps of the program: ");
    report_count(output, live->nested_blocks, "block");
    out_text(output, ", ");
    report_count(output, live->nested_bytes, "byte");
    out_char(output, '\n');
}

static void text_state_totals(struct report *report, const struct heap_state *state)
{
    struct text_output *output = report->output;
    out_bold(output);
    out_text(output, "Live at ");
    report_position_text(report, state->outcome.position);
    out_text(output, ": ");
    struct report_live live = report_live_of(report, &state->tables.by[HEAP_BY_HEAP]);
    report_count(output, live.blocks, "block");
    out_text(output, ", ");
    report_count(output, live.bytes, "byte");
    report_from_sites(report, &state->tables.by[HEAP_BY_STACK]);
    out_plain(output);
    out_char(output, '\n');
    report_live_nested_text(output, "", &live);
    report_unknown_text(report, &state->unknown);
    if (report->view->classes) {
        out_text(output, "Classes as ");
        report_snapshot_text(report, &report->view->classes->snapshot);
        out_text(output, " tells\n");
    }
    if (state->outcome.in_flight) {
        report_count(output, state->outcome.in_flight, "reallocation");
        out_text(output, " in flight at this position, not counted\n");
    }
}

/* Writes the owners of the address if one was asked for; otherwise the whole heap. */
void text_state(struct report *report, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    if (data->owners)
        text_state_address(report, data);
    else {
        text_state_totals(report, state);
        report_runtime_text(report);
    }
    report_certainty_text(report);
    if (!data->owners)
        text_tables(report, data);
    if (data->heaps)
        report_heap_tree_text(report, data->heaps);
    text_state_blocks(report, state);
    if (!data->owners)
        report_runtime_groups_text(report, data->limit, false);
}
