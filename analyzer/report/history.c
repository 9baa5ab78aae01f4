/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

void report_owner_text(struct report *to, const struct heap_owner *owner)
{
    struct out *output = to->output;
    struct heap_call allocated = heap_call_of_block(&owner->block);
    out_hex(output, owner->block.address);
    out_text(output, ", ");
    report_count(output, owner->block.size, "byte");
    if (owner->previous_address) {
        out_text(output, ", before that at ");
        out_hex(output, owner->previous_address);
    }
    out_char(output, '\n');
    report_place_text(to, "allocated", &allocated);
    if (owner->overlapped)
        out_text(output, "  its release is not in the trace; another block took its place\n");
    else if (heap_call_is_known(&owner->released))
        report_place_text(to, "released", &owner->released);
    else
        out_text(output, "  never released\n");
}

void text_history(struct report *to, const struct heap_history *data)
{
    struct out *output = to->output;
    out_bold(output);
    report_count(output, data->total, "block");
    out_text(output, " covered ");
    out_hex(output, data->first);
    if (data->last > data->first) {
        out_text(output, " to ");
        out_hex(output, data->last);
    }
    out_plain(output);
    if (data->count < data->total) {
        out_text(output, "; the last ");
        out_grouped(output, data->count);
        out_text(output, " are shown (--limit)");
    }
    out_char(output, '\n');
    report_doubts_text(to);
    for (size_t i = 0; i < data->count; i++) {
        out_char(output, '\n');
        out_bold(output);
        out_format(output, "Block %llu: ", (unsigned long long)data->owners[i].ordinal);
        out_plain(output);
        report_owner_text(to, &data->owners[i]);
    }
}

void report_owner_json(struct report *to, struct json *writer, const char *key,
                       const struct heap_owner *owner)
{
    if (!owner) {
        json_null(writer, key);
        return;
    }
    struct heap_call allocated = heap_call_of_block(&owner->block);
    json_begin_object(writer, key);
    json_hex(writer, "address", owner->block.address);
    json_unsigned(writer, "size", owner->block.size);
    json_unsigned(writer, "heap_id", owner->block.heap);
    json_position(writer, "allocated", owner->block.allocated);
    json_position(writer, "released", owner->released.position);
    json_bool(writer, "overlapped", owner->overlapped);
    if (owner->previous_address)
        json_hex(writer, "previous_address", owner->previous_address);
    else
        json_null(writer, "previous_address");
    report_place_json(to, writer, "allocated_by", &allocated);
    report_place_json(to, writer, "released_by", &owner->released);
    json_end_object(writer);
}

void json_history(struct report *to, const struct heap_history *data)
{
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_hex(&writer, "address", data->first);
    json_unsigned(&writer, "size", data->last - data->first + 1);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "total_blocks", data->total);
    json_begin_array(&writer, "blocks");
    for (size_t i = 0; i < data->count; i++)
        report_owner_json(to, &writer, NULL, &data->owners[i]);
    json_end_array(&writer);
    json_end_object(&writer);
}

void csv_history(struct report *to, const struct heap_history *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    csv_header(&writer, "address,size,allocated,thread,stack,released,released_by,released_thread,"
                        "released_stack");
    for (size_t i = 0; i < data->count; i++) {
        const struct heap_owner *owner = &data->owners[i];
        csv_hex(&writer, owner->block.address);
        csv_unsigned(&writer, owner->block.size);
        csv_position(&writer, owner->block.allocated);
        csv_unsigned(&writer, owner->block.thread);
        report_stack_csv(to, &writer, owner->block.stack);
        csv_position(&writer, owner->released.position);
        if (heap_call_is_known(&owner->released)) {
            csv_text(&writer, ttd_action_name((enum ttd_action)owner->released.action));
            csv_unsigned(&writer, owner->released.thread);
            report_stack_csv(to, &writer, owner->released.stack);
        } else {
            csv_empty(&writer);
            csv_empty(&writer);
            csv_empty(&writer);
        }
        csv_end_row(&writer);
    }
}
