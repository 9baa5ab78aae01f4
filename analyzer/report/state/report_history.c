/* SPDX-License-Identifier: MIT */
/* The report of `history`: the blocks that ever covered an address. */
#include "report/state/state_reports.h"

bool report_owner_is_unknown(const struct report *report, const struct heap_owner *owner)
{
    return !heap_call_is_known(&owner->released) &&
           heap_is_unknown(owner->block.allocated, report->unknown_before);
}

/* How a reallocation moved the block: a word, or NULL if it did not. */
static const char *move_name(const struct heap_owner *owner)
{
    static const char *const names[] = {[HEAP_MOVE_COPIED] = "copied",
                                        [HEAP_MOVE_REMAPPED] = "remapped",
                                        [HEAP_MOVE_UNKNOWN] = "unknown"};
    bool has_moved = owner->previous_address && owner->previous_address != owner->block.address;
    return has_moved ? names[owner->move] : NULL;
}

static const char *move_text(const struct heap_owner *owner)
{
    if (!move_name(owner) || owner->move == HEAP_MOVE_UNKNOWN)
        return "";
    return owner->move == HEAP_MOVE_REMAPPED ? ", its pages mapped here" : ", copied";
}

void report_owner_text(struct report *report, const struct heap_owner *owner)
{
    struct text_output *output = report->output;
    struct heap_call allocated = heap_call_of_block(&owner->block);
    out_hex(output, owner->block.address);
    out_text(output, ", ");
    report_count(output, owner->block.size, "byte");
    if (owner->previous_address) {
        out_text(output, ", before that at ");
        out_hex(output, owner->previous_address);
        out_text(output, move_text(owner));
    }
    out_char(output, '\n');
    report_call_text(report, "allocated", &allocated);
    if (owner->overlapped)
        out_text(output, "  its release is not in the trace; another block took its place\n");
    else if (heap_call_is_known(&owner->released))
        report_call_text(report, "released", &owner->released);
    else if (report_owner_is_unknown(report, owner))
        out_text(output, "  unknown: perhaps released while recording was off\n");
    else
        out_text(output, "  never released\n");
    if (!owner->lost)
        return;
    out_text(output, "  ");
    report_lost_text(report, owner->lost, 1);
}

void text_history(struct report *report, const struct heap_history *history)
{
    struct text_output *output = report->output;
    out_bold(output);
    report_count(output, history->total, "block");
    out_text(output, " covered ");
    out_hex(output, history->options.first);
    if (history->options.last > history->options.first) {
        out_text(output, " to ");
        out_hex(output, history->options.last);
    }
    out_plain(output);
    if (history->count < history->total) {
        out_text(output, "; the last ");
        out_grouped(output, history->count);
        out_text(output, " are shown (--limit)");
    }
    out_char(output, '\n');
    report_certainty_text(report);
    for (size_t i = 0; i < history->count; i++) {
        out_char(output, '\n');
        out_bold(output);
        out_format(output, "Block %llu: ", (unsigned long long)history->owners[i].ordinal);
        out_plain(output);
        report_owner_text(report, &history->owners[i]);
    }
}

/* When the only block that held it was released; invalid if that is not known. */
static struct ttd_position holder_released(const struct heap_lost_range *lost)
{
    return lost->released ? lost->first_release : ttd_position_invalid();
}

void report_owner_json(struct report *report, struct json *json, const char *key,
                       const struct heap_owner *owner)
{
    if (!owner) {
        json_null(json, key);
        return;
    }
    struct heap_call allocated = heap_call_of_block(&owner->block);
    json_begin_object(json, key);
    json_hex(json, "address", owner->block.address);
    json_unsigned(json, "size", owner->block.size);
    json_unsigned(json, "heap_id", owner->block.heap);
    json_position(json, "allocated", owner->block.allocated);
    json_position(json, "released", owner->released.position);
    json_bool(json, "unknown", report_owner_is_unknown(report, owner));
    json_bool(json, "overlapped", owner->overlapped);
    json_hex_if(json, "previous_address", owner->previous_address, owner->previous_address);
    if (move_name(owner))
        json_text(json, "moved", move_name(owner));
    else
        json_null(json, "moved");
    report_call_json(report, json, "allocated_by", &allocated);
    report_call_json(report, json, "released_by", &owner->released);
    if (owner->lost) {
        json_position(json, "lost_after", owner->lost->after);
        json_position(json, "lost_before", owner->lost->before);
        json_position(json, "holder_released", holder_released(owner->lost));
    }
    json_end_object(json);
}

void json_history(struct report *report, const struct heap_history *history)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_hex(&json, "address", history->options.first);
    json_unsigned(&json, "size", history->options.last - history->options.first + 1);
    report_certainty_json(report, &json);
    json_unsigned(&json, "total_blocks", history->total);
    json_begin_array(&json, "blocks");
    for (size_t i = 0; i < history->count; i++)
        report_owner_json(report, &json, NULL, &history->owners[i]);
    json_end_array(&json);
    json_end_object(&json);
}

static void csv_lost(struct csv *csv, const struct heap_lost_range *lost)
{
    csv_position(csv, lost ? lost->after : ttd_position_invalid());
    csv_position(csv, lost ? lost->before : ttd_position_invalid());
    csv_position(csv, lost ? holder_released(lost) : ttd_position_invalid());
}

void csv_history(struct report *report, const struct heap_history *history)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv,
               "address,size,allocated,thread,stack,released,released_by,released_thread,"
               "released_stack,lost_after,lost_before,holder_released,unknown,previous_address,"
               "moved");
    report->left_out += history->total - history->count;
    for (size_t i = 0; i < history->count; i++) {
        const struct heap_owner *owner = &history->owners[i];
        csv_hex(&csv, owner->block.address);
        csv_unsigned(&csv, owner->block.size);
        csv_position(&csv, owner->block.allocated);
        csv_unsigned(&csv, owner->block.thread);
        report_stack_csv(report, &csv, owner->block.stack);
        csv_position(&csv, owner->released.position);
        if (heap_call_is_known(&owner->released)) {
            csv_text(&csv, ttd_action_name((enum ttd_action)owner->released.action));
            csv_unsigned(&csv, owner->released.thread);
            report_stack_csv(report, &csv, owner->released.stack);
        } else {
            csv_empty(&csv);
            csv_empty(&csv);
            csv_empty(&csv);
        }
        csv_lost(&csv, owner->lost);
        csv_bool(&csv, report_owner_is_unknown(report, owner));
        csv_hex_if(&csv, owner->previous_address, owner->previous_address);
        csv_text(&csv, move_name(owner) ? move_name(owner) : "");
        csv_end_row(&csv);
    }
}
