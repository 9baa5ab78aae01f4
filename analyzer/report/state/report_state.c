/* SPDX-License-Identifier: MIT */
/* The report of `state` as JSON and CSV. */
#include "report/state/state_reports.h"

#include "report/writers/out.h"

/* The report of `state` as text: the heap in tables, or the owners of an address. */

/* Columns of the tables of heaps, threads and sizes. */
#define COLUMN_BLOCKS 30
#define COLUMN_BYTES  46

static void state_text_heap(struct report *report, ttd_id id)
{
    report_label_text(report, &(struct view_label){.kind = LABEL_HEAP, .number = id});
    const struct definition_heap *heap = definitions_heap(report->definitions, id);
    if (heap && heap->parent != TTD_NONE)
        out_format(report->output, ", in heap %u", heap->parent);
}

static void state_text_thread(struct report *report, ttd_id id)
{
    report_label_text(report, &(struct view_label){.kind = LABEL_THREAD, .number = id});
}

/* Ranges of sizes end at powers of two: "64 to 127 bytes", "512 KiB to 1 MiB". */
static void text_state_size(struct report *report, ttd_id id)
{
    static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t first, last;
    heap_class_range(id, &first, &last);
    if (first >= 1024) {
        unsigned power = (unsigned)id - 1, unit = power / 10 - 1, next = (power + 1) / 10 - 1;
        out_format(report->output, "%u%s%s to %u %s", 1U << power % 10, unit == next ? "" : " ",
                   unit == next ? "" : units[unit], 1U << (power + 1) % 10, units[next]);
        return;
    }
    out_grouped(report->output, first);
    if (last > first)
        say(report->output, " to ", grouped(last));
    out_text(report->output, last == 1 ? " byte" : " bytes");
}

static void state_text_table(struct report *report, const struct heap_groups *groups,
                             void (*name)(struct report *report, ttd_id id))
{
    out_char(report->output, '\n');
    for (size_t i = 0; i < groups->count; i++) {
        const struct heap_group *group = &groups->items[i];
        out_text(report->output, "  ");
        name(report, group->key.property);
        say(report->output, tab(COLUMN_BLOCKS), blocks(group->blocks), tab(COLUMN_BYTES),
            bytes(group->bytes));
        if (groups->count > 1 && groups->bytes)
            say(report->output, " (", percent(100 * (double)group->bytes / (double)groups->bytes),
                ")");
        out_char(report->output, '\n');
    }
}

static void text_state_blocks(struct report *report, const struct heap_state *state)
{
    if (state->block_count)
        out_char(report->output, '\n');
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        say(report->output, "  ", hex(block->address), tab(20), bytes(block->size), " by ");
        report_owner_frame_text(report, block->stack);
        say(report->output, ", allocated at ", block->allocated, " in thread ",
            number(block->thread), ", stack #", number(block->stack),
            heap_is_unknown(block->allocated, report->unknown_before) ? ", unknown" : "", "\n");
    }
}

static void text_state_address(struct report *report, const struct report_state *data)
{
    struct text_output *output = report->output;
    const struct heap_owners *owners = data->owners;
    uint64_t address = owners->options.address;
    say(output, BOLD, hex(address), PLAIN);
    if (owners->has_live) {
        say(output, " lies ", bytes(address - owners->live.block.address), " inside the block at ");
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

static void state_text_tables(struct report *report, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    report_live_groups_text(report, &state->tables.by[HEAP_BY_STACK]);
    state_text_table(report, &state->tables.by[HEAP_BY_HEAP], state_text_heap);
    state_text_table(report, &state->tables.by[HEAP_BY_THREAD], state_text_thread);
    state_text_table(report, &state->tables.by[HEAP_BY_SIZE], text_state_size);
}

void report_live_nested_text(struct text_output *output, const char *indent,
                             const struct report_live *live)
{
    if (!live->nested_blocks)
        return;
    say(output, indent, "In them, in heaps of the program: ", blocks(live->nested_blocks), ", ",
        bytes(live->nested_bytes), "\n");
}

static void text_state_totals(struct report *report, const struct heap_state *state)
{
    struct text_output *output = report->output;
    say(output, BOLD, "Live at ", moment(report, state->outcome.position), ": ");
    struct report_live live = report_live_of(report, &state->tables.by[HEAP_BY_HEAP]);
    say(output, blocks(live.blocks), ", ", sized(live.bytes));
    report_from_sites(report, &state->tables.by[HEAP_BY_STACK]);
    say(output, PLAIN, "\n");
    report_estimate_text(output, "    ", &live.estimate);
    report_live_nested_text(output, "", &live);
    report_unknown_text(report, &state->unknown);
    if (report->view->classes) {
        out_text(output, "Classes as ");
        report_snapshot_text(report, &report->view->classes->snapshot);
        out_text(output, " tells\n");
    }
    if (state->outcome.in_flight)
        say(output, counted(state->outcome.in_flight, "reallocation"),
            " in flight at this position, not counted\n");
}

/* Writes the owners of the address if one was asked for; otherwise the whole heap. */
static void text_state(struct report *report, const struct report_state *data)
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
        state_text_tables(report, data);
    if (data->heaps)
        report_heap_tree_text(report, data->heaps);
    text_state_blocks(report, state);
    if (!data->owners)
        report_runtime_groups_text(report, false);
}

static void row_state_sums(struct row *row, const struct heap_group *group)
{
    row_unsigned(row, "blocks", group->blocks);
    row_unsigned(row, "bytes", group->bytes);
}

struct report_live report_live_of(const struct report *report, const struct heap_groups *by_heap)
{
    struct report_live live = {0};
    for (size_t i = 0; i < by_heap->count; i++) {
        const struct heap_group *group = &by_heap->items[i];
        const struct definition_heap *heap =
            definitions_heap(report->definitions, group->key.property);
        bool is_nested = heap && heap->parent != TTD_NONE;
        uint64_t *blocks = is_nested ? &live.nested_blocks : &live.blocks;
        uint64_t *bytes = is_nested ? &live.nested_bytes : &live.bytes;
        *blocks += group->blocks;
        *bytes = heap_add(*bytes, group->bytes);
        if (!is_nested)
            heap_estimate_add(&live.estimate, group->estimate);
    }
    return live;
}

void row_live(struct row *row, const struct report_live *live)
{
    row_unsigned(row, "live_blocks", live->blocks);
    row_unsigned(row, "live_bytes", live->bytes);
    row_estimate(row, &live->estimate);
    row_unsigned(row, "nested_blocks", live->nested_blocks);
    row_unsigned(row, "nested_bytes", live->nested_bytes);
}

static void state_row_heaps(struct row *row, const struct heap_groups *groups)
{
    row_begin_array(row, "heaps");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_heap *heap =
            definitions_heap(row->report->definitions, groups->items[i].key.property);
        row_begin_object(row, NULL);
        row_unsigned(row, "heap_id", groups->items[i].key.property);
        row_hex(row, "heap", heap ? heap->handle : 0);
        row_name(row, "name",
                 definitions_text(row->report->definitions, heap ? heap->name : TTD_NONE));
        row_unsigned(row, "parent_heap_id", heap ? heap->parent : TTD_NONE);
        row_state_sums(row, &groups->items[i]);
        row_end_object(row);
    }
    row_end_array(row);
}

static void state_row_threads(struct row *row, const struct heap_groups *groups)
{
    row_begin_array(row, "threads");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_thread *thread =
            definitions_thread(row->report->definitions, groups->items[i].key.property);
        row_begin_object(row, NULL);
        row_unsigned(row, "thread", groups->items[i].key.property);
        row_name(row, "name",
                 definitions_text(row->report->definitions, thread ? thread->name : TTD_NONE));
        row_state_sums(row, &groups->items[i]);
        row_end_object(row);
    }
    row_end_array(row);
}

static void row_state_sizes(struct row *row, const struct heap_groups *groups)
{
    row_begin_array(row, "sizes");
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t first, last;
        heap_class_range(groups->items[i].key.property, &first, &last);
        row_begin_object(row, NULL);
        row_unsigned(row, "smallest", first);
        row_unsigned(row, "largest", last);
        row_state_sums(row, &groups->items[i]);
        row_end_object(row);
    }
    row_end_array(row);
}

static void state_row_blocks(struct row *row, const struct heap_state *state)
{
    row_begin_array(row, "blocks");
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        row_begin_object(row, NULL);
        row_hex(row, "address", block->address);
        row_unsigned(row, "size", block->size);
        row_position(row, "allocated", block->allocated);
        row_unsigned(row, "number", block->event);
        row_unsigned(row, "heap_id", block->heap);
        row_unsigned(row, "thread", block->thread);
        row_unsigned(row, "stack_id", block->stack);
        row_bool(row, "unknown", heap_is_unknown(block->allocated, row->report->unknown_before));
        row_end_object(row);
    }
    row_end_array(row);
}

static void row_state_address(struct row *row, const struct report_state *data)
{
    const struct heap_owners *owners = data->owners;
    uint64_t address = owners->options.address;
    const struct heap_owner *owner = owners->has_live     ? &owners->live
                                     : owners->has_before ? &owners->before
                                                          : NULL;
    row_begin_object(row, "address");
    row_hex(row, "address", address);
    /* A block that may have been released in a gap of the recording is neither live nor freed. */
    bool is_unknown = owners->has_live && report_owner_is_unknown(row->report, &owners->live);
    row_text(row, "status",
             is_unknown           ? "unknown"
             : owners->has_live   ? "live"
             : owners->has_before ? "freed"
                                  : "never allocated");
    row_count(row, "offset", owner ? address - owner->block.address : TTD_UNKNOWN);
    row_owner(row, "block", owner);
    row_owner(row, "next", owners->has_after ? &owners->after : NULL);
    row_neighbours(row, &data->state->neighbours);
    row_pointers(row, "pointers", data->referrers);
    row_end_object(row);
}

static void data_state(struct report *report, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    struct row row;
    row_open(&row, report);
    row_position(&row, "position", state->outcome.position);
    row_certainty(&row);
    struct report_live live = report_live_of(report, &state->tables.by[HEAP_BY_HEAP]);
    row_live(&row, &live);
    row_unknown(&row, &state->unknown);
    row_runtime(&row, &report->runtime);
    row_unsigned(&row, "reallocs_in_flight", state->outcome.in_flight);
    state_row_heaps(&row, &state->tables.by[HEAP_BY_HEAP]);
    if (data->heaps)
        row_heap_tree(&row, data->heaps);
    state_row_threads(&row, &state->tables.by[HEAP_BY_THREAD]);
    row_state_sizes(&row, &state->tables.by[HEAP_BY_SIZE]);
    row_text(&row, "by", view_key_name(report->view->options.by));
    if (report->view->classes)
        row_snapshot(&row, "snapshot", &report->view->classes->snapshot);
    row_unsigned(&row, "total_groups", state->tables.by[HEAP_BY_STACK].count);
    row_live_groups(&row, &state->tables.by[HEAP_BY_STACK]);
    if (state->blocks)
        state_row_blocks(&row, state);
    if (data->owners)
        row_state_address(&row, data);
    row_end_object(&row);
}

void report_state(struct report *report, const struct report_state *data)
{
    if (report->form == REPORT_TEXT)
        text_state(report, data);
    else
        data_state(report, data);
}

/* The tree of heaps in the report of `state`. */

/* Deeper levels are identified by their number, so that no line grows with the depth. */
#define INDENTED_LEVELS 16

static void state_text_node(struct report *report, const struct heap_tree_node *node)
{
    struct text_output *output = report->output;
    uint32_t indented = node->level < INDENTED_LEVELS ? node->level : INDENTED_LEVELS;
    for (uint32_t i = 0; i <= indented; i++)
        out_text(output, "  ");
    report_label_text(report, &(struct view_label){.kind = LABEL_HEAP, .number = node->heap});
    if (node->level > INDENTED_LEVELS)
        out_format(output, " (level %u)", node->level);
    if (node->is_destroyed)
        out_text(output, ", destroyed");
    say(output, ": ", blocks(node->blocks), ", ", bytes(node->bytes));
    if (node->inner_blocks)
        say(output, "; in them, in heaps right below: ", blocks(node->inner_blocks), ", ",
            bytes(node->inner_bytes));
    out_char(output, '\n');
    report_call_text(report, "created", &node->created);
}

void report_heap_tree_text(struct report *report, const struct heap_tree *tree)
{
    if (tree->count)
        out_text(report->output, "\nHeaps, below those in whose blocks they lie:\n");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        state_text_node(report, &tree->nodes[node]);
}

static void state_row_heap_tree_node(struct row *row, const struct heap_tree *tree,
                                     const struct heap_tree_node *node)
{
    row_begin_object(row, NULL);
    row_label(row, &(struct view_label){.kind = LABEL_HEAP, .number = node->heap});
    row_unsigned(row, "parent_heap_id",
                 node->parent == HEAP_TREE_NONE ? TTD_NONE : tree->nodes[node->parent].heap);
    row_unsigned(row, "level", node->level);
    row_bool(row, "destroyed", node->is_destroyed);
    row_unsigned(row, "blocks", node->blocks);
    row_unsigned(row, "bytes", node->bytes);
    row_unsigned(row, "inner_blocks", node->inner_blocks);
    row_unsigned(row, "inner_bytes", node->inner_bytes);
    row_call(row, "created", &node->created);
    row_end_object(row);
}

void row_heap_tree(struct row *row, const struct heap_tree *tree)
{
    row_begin_array(row, "heap_tree");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        state_row_heap_tree_node(row, tree, &tree->nodes[node]);
    row_end_array(row);
}

/* The report of `peak`. */

static void state_text_peak(struct report *report, const struct heap_peak_state *peak)
{
    const struct heap_groups *groups = &peak->groups;
    say(report->output, BOLD, "Peak at ", moment(report, peak->peak.position), ": ",
        sized(groups->bytes), " in ", blocks(groups->blocks));
    report_from_sites(report, groups);
    say(report->output, PLAIN, "\n");
    if (heap_losses_have_gap(&peak->outcome.losses, peak->peak.position))
        out_text(report->output, "This is " REPORT_PEAK_GAP "\n");
    report_estimate_text(report->output, "    ", &groups->estimate);
    report_runtime_text(report);
    report_certainty_text(report);
    report_live_groups_text(report, groups);
    report_runtime_groups_text(report, false);
}

void report_peak(struct report *report, const struct heap_peak_state *peak)
{
    const struct heap_groups *groups = &peak->groups;
    struct row row;
    if (report->form == REPORT_TEXT) {
        state_text_peak(report, peak);
        return;
    }
    row_open(&row, report);
    row_position(&row, "position", peak->peak.position);
    row_certainty(&row);
    row_unsigned(&row, "live_bytes", groups->bytes);
    row_unsigned(&row, "live_blocks", groups->blocks);
    row_estimate(&row, &groups->estimate);
    row_runtime(&row, &report->runtime);
    row_text(&row, "by", view_key_name(report->view->options.by));
    row_unsigned(&row, "total_groups", groups->count);
    row_live_groups(&row, groups);
    row_end_object(&row);
}
