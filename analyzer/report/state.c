/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static void json_sums(json *writer, const heap_group *group)
{
    json_unsigned(writer, "blocks", group->blocks);
    json_unsigned(writer, "bytes", group->bytes);
}

static void json_heaps(report *to, json *writer, const heap_groups *groups)
{
    json_begin_array(writer, "heaps");
    for (size_t i = 0; i < groups->count; i++) {
        const definition_heap *heap = definitions_heap(to->names, groups->items[i].stack);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "heap_id", groups->items[i].stack);
        json_hex(writer, "heap", heap ? heap->handle : 0);
        json_name(writer, "name", definitions_text(to->names, heap ? heap->name : TTD_NONE));
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_threads(report *to, json *writer, const heap_groups *groups)
{
    json_begin_array(writer, "threads");
    for (size_t i = 0; i < groups->count; i++) {
        const definition_thread *thread = definitions_thread(to->names, groups->items[i].stack);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "thread", groups->items[i].stack);
        json_name(writer, "name", definitions_text(to->names, thread ? thread->name : TTD_NONE));
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_sizes(json *writer, const heap_groups *groups)
{
    json_begin_array(writer, "sizes");
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t first, last;
        heap_size_class(groups->items[i].stack, &first, &last);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "smallest", first);
        json_unsigned(writer, "largest", last);
        json_sums(writer, &groups->items[i]);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void report_groups_json(report *to, json *writer, const char *key, const heap_groups *groups,
                        size_t limit)
{
    json_begin_array(writer, key);
    for (size_t i = 0; i < groups->count && i < limit; i++) {
        const heap_group *group = &groups->items[i];
        json_begin_object(writer, NULL);
        json_sums(writer, group);
        json_position(writer, "first_position", group->first);
        json_position(writer, "last_position", group->last);
        json_unsigned(writer, "stack_id", group->stack);
        report_stack_json(to, writer, "stack", group->stack);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void json_blocks(json *writer, const heap_state *state)
{
    json_begin_array(writer, "blocks");
    for (size_t i = 0; i < state->block_count; i++) {
        const heap_block *block = &state->blocks[i];
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

static void json_address(report *to, json *writer, const report_state *data)
{
    const heap_history *history = data->history;
    const heap_owner *live = heap_history_live(history, data->at);
    const heap_owner *before = heap_history_before(history, data->at);
    const heap_owner *owner = live ? live : before;
    json_begin_object(writer, "address");
    json_hex(writer, "address", history->first);
    json_text(writer, "status", live ? "live" : before ? "freed" : "never allocated");
    json_count(writer, "offset", owner ? history->first - owner->block.address : TTD_UNKNOWN);
    report_owner_json(to, writer, "block", owner);
    report_owner_json(to, writer, "next", heap_history_after(history, data->at));
    json_end_object(writer);
}

void json_state(report *to, const report_state *data)
{
    const heap_state *state = data->state;
    json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", state->outcome.position);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "live_blocks", state->stacks.blocks);
    json_unsigned(&writer, "live_bytes", state->stacks.bytes);
    json_unsigned(&writer, "reallocs_in_flight", state->outcome.in_flight);
    json_heaps(to, &writer, &state->heaps);
    json_threads(to, &writer, &state->threads);
    json_sizes(&writer, &state->sizes);
    json_unsigned(&writer, "total_groups", state->stacks.count);
    report_groups_json(to, &writer, "groups", &state->stacks, data->limit);
    if (state->blocks)
        json_blocks(&writer, state);
    if (data->history)
        json_address(to, &writer, data);
    json_end_object(&writer);
}

void report_group_csv(report *to, csv *writer, const heap_group *group)
{
    csv_unsigned(writer, group->blocks);
    csv_unsigned(writer, group->bytes);
    csv_position(writer, group->first);
    csv_position(writer, group->last);
    csv_unsigned(writer, group->stack);
    report_stack_csv(to, writer, group->stack);
}

void csv_state(report *to, const report_state *data)
{
    const heap_groups *groups = &data->state->stacks;
    csv writer;
    csv_init(&writer, to->output);
    csv_header(&writer, "blocks,bytes,first_position,last_position,stack_id,stack");
    for (size_t i = 0; i < groups->count && i < data->limit; i++) {
        report_group_csv(to, &writer, &groups->items[i]);
        csv_end_row(&writer);
    }
}
