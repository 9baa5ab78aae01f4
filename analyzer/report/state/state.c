/* SPDX-License-Identifier: MIT */
/* The report of `state` as JSON and CSV. */
#include "report/state/reports.h"

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
