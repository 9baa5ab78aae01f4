/* SPDX-License-Identifier: MIT */
#include "report/escape.h"
#include "report/formats.h"

/* Rows of a table of heaps, threads or sizes. */
#define COLUMN_BLOCKS 30
#define COLUMN_BYTES  46

static void text_heap(struct report *to, ttd_id id)
{
    report_label_text(to, &(struct view_label){.kind = LABEL_HEAP, .number = id});
}

static void text_thread(struct report *to, ttd_id id)
{
    report_label_text(to, &(struct view_label){.kind = LABEL_THREAD, .number = id});
}

static void text_size(struct report *to, ttd_id id)
{
    uint64_t first, last;
    heap_class_range(id, &first, &last);
    out_grouped(to->output, first);
    if (last > first) {
        out_text(to->output, " to ");
        out_grouped(to->output, last);
    }
    out_text(to->output, last == 1 ? " byte" : " bytes");
}

static void text_table(struct report *to, const struct heap_groups *groups,
                       void (*name)(struct report *to, ttd_id id))
{
    out_char(to->output, '\n');
    for (size_t i = 0; i < groups->count; i++) {
        out_text(to->output, "  ");
        name(to, groups->items[i].key.other);
        out_tab(to->output, COLUMN_BLOCKS);
        report_count(to->output, groups->items[i].blocks, "block");
        out_tab(to->output, COLUMN_BYTES);
        report_count(to->output, groups->items[i].bytes, "byte");
        out_char(to->output, '\n');
    }
}

static void text_blocks(struct report *to, const struct heap_state *state)
{
    if (state->block_count)
        out_char(to->output, '\n');
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        out_text(to->output, "  ");
        out_hex(to->output, block->address);
        out_tab(to->output, 22);
        report_count(to->output, block->size, "byte");
        out_tab(to->output, 40);
        out_text(to->output, "allocated at ");
        out_position(to->output, block->allocated);
        out_format(to->output, " in thread %u, stack #%u\n", block->thread, block->stack);
    }
}

static void text_address(struct report *to, const struct report_state *data)
{
    struct out *output = to->output;
    const struct heap_history *history = data->history;
    const struct heap_owner *live = heap_history_live(history, data->at);
    const struct heap_owner *before = heap_history_before(history, data->at);
    const struct heap_owner *after = heap_history_after(history, data->at);
    out_bold(output);
    out_hex(output, history->first);
    out_plain(output);
    if (live) {
        out_text(output, " lies ");
        report_count(output, history->first - live->block.address, "byte");
        out_text(output, " inside the block at ");
        report_owner_text(to, live);
    } else if (before) {
        out_text(output, " is in no live block; it was in ");
        report_owner_text(to, before);
    } else {
        out_text(output, " is in no live block, and was in none before\n");
    }
    if (after) {
        out_text(output, "next in ");
        report_owner_text(to, after);
    }
    report_neighbours_text(to, &data->state->neighbours, history->first);
}

static void text_tables(struct report *to, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    report_groups_text(to, &state->tables.by[HEAP_BY_STACK], data->limit, false);
    text_table(to, &state->tables.by[HEAP_BY_HEAP], text_heap);
    text_table(to, &state->tables.by[HEAP_BY_THREAD], text_thread);
    text_table(to, &state->tables.by[HEAP_BY_SIZE], text_size);
}

static void text_totals(struct report *to, const struct heap_state *state)
{
    struct out *output = to->output;
    out_bold(output);
    out_text(output, "Live at ");
    report_position_text(to, state->outcome.position);
    out_text(output, ": ");
    report_count(output, state->tables.by[HEAP_BY_STACK].blocks, "block");
    out_text(output, ", ");
    report_count(output, state->tables.by[HEAP_BY_STACK].bytes, "byte");
    out_text(output, ", from ");
    report_site_count(to, state->tables.by[HEAP_BY_STACK].count);
    out_plain(output);
    out_char(output, '\n');
    if (state->outcome.in_flight) {
        report_count(output, state->outcome.in_flight, "reallocation");
        out_text(output, " in flight at this position, not counted\n");
    }
}

/* Writes the answer for the address if one was asked for, else the whole heap. */
void text_state(struct report *to, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    if (data->history)
        text_address(to, data);
    else {
        text_totals(to, state);
        report_runtime_text(to);
    }
    report_doubts_text(to);
    if (!data->history)
        text_tables(to, data);
    text_blocks(to, state);
    if (!data->history)
        report_runtime_groups_text(to, data->limit, false);
}
