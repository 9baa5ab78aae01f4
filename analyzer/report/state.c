/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static void json_sums(struct json *writer, const struct heap_group *group)
{
    json_unsigned(writer, "blocks", group->blocks);
    json_unsigned(writer, "bytes", group->bytes);
}

static void json_heaps(struct report *to, struct json *writer, const struct heap_groups *groups)
{
    json_begin_array(writer, "heaps");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_heap *heap =
            definitions_heap(to->names, groups->items[i].key.other);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "heap_id", groups->items[i].key.other);
        json_hex(writer, "heap", heap ? heap->handle : 0);
        json_name(writer, "name", definitions_text(to->names, heap ? heap->name : TTD_NONE));
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_threads(struct report *to, struct json *writer, const struct heap_groups *groups)
{
    json_begin_array(writer, "threads");
    for (size_t i = 0; i < groups->count; i++) {
        const struct definition_thread *thread =
            definitions_thread(to->names, groups->items[i].key.other);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "thread", groups->items[i].key.other);
        json_name(writer, "name", definitions_text(to->names, thread ? thread->name : TTD_NONE));
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_sizes(struct json *writer, const struct heap_groups *groups)
{
    json_begin_array(writer, "sizes");
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t first, last;
        heap_class_range(groups->items[i].key.other, &first, &last);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "smallest", first);
        json_unsigned(writer, "largest", last);
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_blocks(struct json *writer, const struct heap_state *state)
{
    json_begin_array(writer, "blocks");
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &state->blocks[i];
        json_begin_object(writer, NULL);
        json_hex(writer, "address", block->address);
        json_unsigned(writer, "size", block->size);
        json_position(writer, "allocated", block->allocated);
        json_unsigned(writer, "number", block->event);
        json_unsigned(writer, "heap_id", block->heap);
        json_unsigned(writer, "thread", block->thread);
        json_unsigned(writer, "stack_id", block->stack);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_address(struct report *to, struct json *writer, const struct report_state *data)
{
    const struct heap_history *history = data->history;
    const struct heap_owner *live = heap_history_live(history, data->at);
    const struct heap_owner *before = heap_history_before(history, data->at);
    const struct heap_owner *owner = live ? live : before;
    json_begin_object(writer, "address");
    json_hex(writer, "address", history->first);
    json_text(writer, "status", live ? "live" : before ? "freed" : "never allocated");
    json_count(writer, "offset", owner ? history->first - owner->block.address : TTD_UNKNOWN);
    report_owner_json(to, writer, "block", owner);
    report_owner_json(to, writer, "next", heap_history_after(history, data->at));
    report_neighbours_json(to, writer, &data->state->neighbours);
    json_end_object(writer);
}

void json_state(struct report *to, const struct report_state *data)
{
    const struct heap_state *state = data->state;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", state->outcome.position);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "live_blocks", state->tables.by[HEAP_BY_STACK].blocks);
    json_unsigned(&writer, "live_bytes", state->tables.by[HEAP_BY_STACK].bytes);
    report_runtime_json(&to->runtime, &writer);
    json_unsigned(&writer, "reallocs_in_flight", state->outcome.in_flight);
    json_heaps(to, &writer, &state->tables.by[HEAP_BY_HEAP]);
    json_threads(to, &writer, &state->tables.by[HEAP_BY_THREAD]);
    json_sizes(&writer, &state->tables.by[HEAP_BY_SIZE]);
    json_text(&writer, "by", view_key_name(to->view->options.by));
    json_unsigned(&writer, "total_groups", state->tables.by[HEAP_BY_STACK].count);
    report_groups_json(to, &writer, "groups", &state->tables.by[HEAP_BY_STACK], data->limit);
    report_runtime_groups_json(to, &writer, data->limit);
    if (state->blocks)
        json_blocks(&writer, state);
    if (data->history)
        json_address(to, &writer, data);
    json_end_object(&writer);
}

void csv_state(struct report *to, const struct report_state *data)
{
    report_groups_csv(to, &data->state->tables.by[HEAP_BY_STACK], data->limit);
}
