/* SPDX-License-Identifier: MIT */
/* The report of `state` as JSON and CSV. */
#include "report/state/state_reports.h"

#include "report/writers/escape.h"

/* The report of `state` as text: the heap in tables, or the owners of an address. */

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
        out_tab(report->output, 20);
        report_count(report->output, block->size, "byte");
        out_tab(report->output, 34);
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
    report_live_groups_text(report, &state->tables.by[HEAP_BY_STACK], data->limit);
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

static void json_state_sums(struct json *json, const struct heap_group *group)
{
    json_unsigned(json, "blocks", group->blocks);
    json_unsigned(json, "bytes", group->bytes);
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
    }
    return live;
}

void report_live_json(struct json *json, const struct report_live *live)
{
    json_unsigned(json, "live_blocks", live->blocks);
    json_unsigned(json, "live_bytes", live->bytes);
    json_unsigned(json, "nested_blocks", live->nested_blocks);
    json_unsigned(json, "nested_bytes", live->nested_bytes);
}

static void json_heaps(struct report *report, struct json *json, const struct heap_groups *groups)
{
    json_begin_array(json, "heaps");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_heap *heap =
            definitions_heap(report->definitions, groups->items[i].key.property);
        json_begin_object(json, NULL);
        json_unsigned(json, "heap_id", groups->items[i].key.property);
        json_hex(json, "heap", heap ? heap->handle : 0);
        json_name(json, "name",
                  definitions_text(report->definitions, heap ? heap->name : TTD_NONE));
        json_unsigned(json, "parent_heap_id", heap ? heap->parent : TTD_NONE);
        json_state_sums(json, &groups->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_threads(struct report *report, struct json *json, const struct heap_groups *groups)
{
    json_begin_array(json, "threads");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_thread *thread =
            definitions_thread(report->definitions, groups->items[i].key.property);
        json_begin_object(json, NULL);
        json_unsigned(json, "thread", groups->items[i].key.property);
        json_name(json, "name",
                  definitions_text(report->definitions, thread ? thread->name : TTD_NONE));
        json_state_sums(json, &groups->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_state_sizes(struct json *json, const struct heap_groups *groups)
{
    json_begin_array(json, "sizes");
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t first, last;
        heap_class_range(groups->items[i].key.property, &first, &last);
        json_begin_object(json, NULL);
        json_unsigned(json, "smallest", first);
        json_unsigned(json, "largest", last);
        json_state_sums(json, &groups->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_blocks(const struct report *report, struct json *json,
                        const struct heap_state *state)
{
    json_begin_array(json, "blocks");
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        json_begin_object(json, NULL);
        json_hex(json, "address", block->address);
        json_unsigned(json, "size", block->size);
        json_position(json, "allocated", block->allocated);
        json_unsigned(json, "number", block->event);
        json_unsigned(json, "heap_id", block->heap);
        json_unsigned(json, "thread", block->thread);
        json_unsigned(json, "stack_id", block->stack);
        json_bool(json, "unknown", heap_is_unknown(block->allocated, report->unknown_before));
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_address(struct report *report, struct json *json, const struct report_state *data)
{
    const struct heap_owners *owners = data->owners;
    uint64_t address = owners->options.address;
    const struct heap_owner *owner = owners->has_live     ? &owners->live
                                     : owners->has_before ? &owners->before
                                                          : NULL;
    json_begin_object(json, "address");
    json_hex(json, "address", address);
    /* A block that may have been released in a gap of the recording is neither live nor freed. */
    bool is_unknown = owners->has_live && report_owner_is_unknown(report, &owners->live);
    json_text(json, "status",
              is_unknown           ? "unknown"
              : owners->has_live   ? "live"
              : owners->has_before ? "freed"
                                   : "never allocated");
    json_count(json, "offset", owner ? address - owner->block.address : TTD_UNKNOWN);
    report_owner_json(report, json, "block", owner);
    report_owner_json(report, json, "next", owners->has_after ? &owners->after : NULL);
    report_neighbours_json(report, json, &data->state->neighbours);
    report_pointers_json(report, json, "pointers", data->referrers);
    json_end_object(json);
}

void json_state(struct report *report, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", state->outcome.position);
    report_certainty_json(report, &json);
    struct report_live live = report_live_of(report, &state->tables.by[HEAP_BY_HEAP]);
    report_live_json(&json, &live);
    report_unknown_json(&json, &state->unknown);
    report_runtime_json(&report->runtime, &json);
    json_unsigned(&json, "reallocs_in_flight", state->outcome.in_flight);
    json_heaps(report, &json, &state->tables.by[HEAP_BY_HEAP]);
    if (data->heaps)
        report_heap_tree_json(report, &json, data->heaps);
    json_threads(report, &json, &state->tables.by[HEAP_BY_THREAD]);
    json_state_sizes(&json, &state->tables.by[HEAP_BY_SIZE]);
    json_text(&json, "by", view_key_name(report->view->options.by));
    if (report->view->classes)
        report_snapshot_json(&json, "snapshot", &report->view->classes->snapshot);
    json_unsigned(&json, "total_groups", state->tables.by[HEAP_BY_STACK].count);
    report_groups_json(report, &json, "groups", &state->tables.by[HEAP_BY_STACK], data->limit);
    report_runtime_groups_json(report, &json, data->limit);
    if (state->blocks)
        json_blocks(report, &json, state);
    if (data->owners)
        json_address(report, &json, data);
    json_end_object(&json);
}

void csv_state(struct report *report, const struct report_state *data)
{
    report_groups_csv(report, &data->state->tables.by[HEAP_BY_STACK], data->limit);
}

/* The tree of heaps in the report of `state`. */

/* Deeper levels are identified by their number, so that no line grows with the depth. */
#define INDENTED_LEVELS 16

static void text_node(struct report *report, const struct heap_tree_node *node)
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
    out_text(output, ": ");
    report_count(output, node->blocks, "block");
    out_text(output, ", ");
    report_count(output, node->bytes, "byte");
    if (node->inner_blocks) {
        out_text(output, "; in them, in heaps right below: ");
        report_count(output, node->inner_blocks, "block");
        out_text(output, ", ");
        report_count(output, node->inner_bytes, "byte");
    }
    out_char(output, '\n');
    report_call_text(report, "created", &node->created);
}

void report_heap_tree_text(struct report *report, const struct heap_tree *tree)
{
    if (tree->count)
        out_text(report->output, "\nHeaps, below those in whose blocks they lie:\n");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        text_node(report, &tree->nodes[node]);
}

static void json_heap_tree_node(struct report *report, struct json *json,
                                const struct heap_tree *tree, const struct heap_tree_node *node)
{
    json_begin_object(json, NULL);
    report_label_json(report, json, &(struct view_label){.kind = LABEL_HEAP, .number = node->heap});
    json_unsigned(json, "parent_heap_id",
                  node->parent == HEAP_TREE_NONE ? TTD_NONE : tree->nodes[node->parent].heap);
    json_unsigned(json, "level", node->level);
    json_bool(json, "destroyed", node->is_destroyed);
    json_unsigned(json, "blocks", node->blocks);
    json_unsigned(json, "bytes", node->bytes);
    json_unsigned(json, "inner_blocks", node->inner_blocks);
    json_unsigned(json, "inner_bytes", node->inner_bytes);
    report_call_json(report, json, "created", &node->created);
    json_end_object(json);
}

void report_heap_tree_json(struct report *report, struct json *json, const struct heap_tree *tree)
{
    json_begin_array(json, "heap_tree");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        json_heap_tree_node(report, json, tree, &tree->nodes[node]);
    json_end_array(json);
}

/* The report of `peak`. */

void text_peak(struct report *report, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->peak->groups;
    out_bold(report->output);
    out_text(report->output, "Peak at ");
    report_position_text(report, data->peak->peak.position);
    out_text(report->output, ": ");
    report_count(report->output, groups->bytes, "byte");
    out_text(report->output, " in ");
    report_count(report->output, groups->blocks, "block");
    report_from_sites(report, groups);
    out_plain(report->output);
    out_char(report->output, '\n');
    report_runtime_text(report);
    report_certainty_text(report);
    report_live_groups_text(report, groups, data->limit);
    report_runtime_groups_text(report, data->limit, false);
}

void json_peak(struct report *report, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->peak->groups;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", data->peak->peak.position);
    report_certainty_json(report, &json);
    json_unsigned(&json, "live_bytes", groups->bytes);
    json_unsigned(&json, "live_blocks", groups->blocks);
    report_runtime_json(&report->runtime, &json);
    json_text(&json, "by", view_key_name(report->view->options.by));
    json_unsigned(&json, "total_groups", groups->count);
    report_groups_json(report, &json, "groups", groups, data->limit);
    report_runtime_groups_json(report, &json, data->limit);
    json_end_object(&json);
}

void csv_peak(struct report *report, const struct report_peak *data)
{
    report_groups_csv(report, &data->peak->groups, data->limit);
}
