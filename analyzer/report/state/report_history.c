/* SPDX-License-Identifier: MIT */
/* The report of `history`: the blocks that ever covered an address. */
#include "report/state/state_reports.h"

bool report_owner_is_unknown(const struct report *report, const struct heap_owner *owner)
{
    return !heap_call_is_known(&owner->released) &&
           heap_is_unknown(owner->block.allocated, report->unknown_before);
}

/* How a reallocation moved the block: a word, or NULL if it did not. */
static const char *history_move_name(const struct heap_owner *owner)
{
    static const char *const names[] = {[HEAP_MOVE_COPIED] = "copied",
                                        [HEAP_MOVE_REMAPPED] = "remapped",
                                        [HEAP_MOVE_UNKNOWN] = "unknown"};
    bool has_moved = owner->previous_address && owner->previous_address != owner->block.address;
    return has_moved ? names[owner->move] : NULL;
}

static const char *history_move_text(const struct heap_owner *owner)
{
    if (!history_move_name(owner) || owner->move == HEAP_MOVE_UNKNOWN)
        return "";
    return owner->move == HEAP_MOVE_REMAPPED ? ", its pages mapped here" : ", copied";
}

void report_owner_text(struct report *report, const struct heap_owner *owner)
{
    struct text_output *output = report->output;
    struct heap_call allocated = heap_call_of_block(&owner->block);
    say(output, hex(owner->block.address), ", ", bytes(owner->block.size));
    if (owner->previous_address)
        say(output, ", before that at ", hex(owner->previous_address), history_move_text(owner));
    out_char(output, '\n');
    report_call_text(report, "allocated", &allocated);
    if (owner->overlapped)
        out_text(output, "  its release is not in the trace; another block took its place\n");
    else if (heap_call_is_known(&owner->released))
        report_call_text(report, "released", &owner->released);
    else if (report_owner_is_unknown(report, owner))
        out_text(output, "  unknown: perhaps released while recording was off\n");
    else
        out_text(output, certainty_knows_calls(report->ending) ? "  never released\n"
                                                               : "  not released before the end\n");
    if (!owner->lost)
        return;
    out_text(output, "  ");
    report_lost_text(report, owner->lost, 1);
}

static void text_history(struct report *report, const struct heap_history *history)
{
    struct text_output *output = report->output;
    say(output, BOLD, blocks(history->total), " covered ", hex(history->options.first));
    if (history->options.last > history->options.first)
        say(output, " to ", hex(history->options.last));
    out_plain(output);
    if (history->count < history->total)
        say(output, "; the last ", grouped(history->count), " are shown (--limit)");
    out_char(output, '\n');
    report_certainty_text(report);
    for (size_t i = 0; i < history->count; i++) {
        say(output, "\n", BOLD, "Block ", number(history->owners[i].ordinal), ": ", PLAIN);
        report_owner_text(report, &history->owners[i]);
    }
}

/* When the only block that held it was released; invalid if that is not known. */
static struct ttd_position history_holder_released(const struct heap_lost_range *lost)
{
    return lost->released ? lost->first_release : ttd_position_invalid();
}

/* The columns of an owner in CSV: it has no objects. */
static void history_row_owner_columns(struct row *row, const struct heap_owner *owner)
{
    const struct heap_call *released = &owner->released;
    bool is_released = heap_call_is_known(released);
    bool is_lost = owner->lost;
    row_hex(row, "address", owner->block.address);
    row_unsigned(row, "size", owner->block.size);
    row_position(row, "allocated", owner->block.allocated);
    row_unsigned(row, "thread", owner->block.thread);
    row_stack(row, "stack", owner->block.stack);
    row_position(row, "released", released->position);
    row_text(row, "released_by",
             is_released ? ttd_action_name((enum ttd_action)released->action) : NULL);
    row_unsigned_if(row, "released_thread", is_released, released->thread);
    if (row_has(row, "released_stack", is_released))
        row_stack(row, "released_stack", released->stack);
    row_position(row, "lost_after", is_lost ? owner->lost->after : ttd_position_invalid());
    row_position(row, "lost_before", is_lost ? owner->lost->before : ttd_position_invalid());
    row_position(row, "holder_released",
                 is_lost ? history_holder_released(owner->lost) : ttd_position_invalid());
    row_bool(row, "unknown", report_owner_is_unknown(row->report, owner));
    row_hex_if(row, "previous_address", owner->previous_address, owner->previous_address);
    row_text(row, "moved", history_move_name(owner));
}

static void history_row_owner_members(struct row *row, const struct heap_owner *owner)
{
    struct heap_call allocated = heap_call_of_block(&owner->block);
    row_hex(row, "address", owner->block.address);
    row_unsigned(row, "size", owner->block.size);
    row_unsigned(row, "heap_id", owner->block.heap);
    row_position(row, "allocated", owner->block.allocated);
    row_position(row, "released", owner->released.position);
    row_bool(row, "unknown", report_owner_is_unknown(row->report, owner));
    row_bool(row, "overlapped", owner->overlapped);
    row_hex_if(row, "previous_address", owner->previous_address, owner->previous_address);
    row_text(row, "moved", history_move_name(owner));
    row_call(row, "allocated_by", &allocated);
    row_call(row, "released_by", &owner->released);
    if (owner->lost) {
        row_position(row, "lost_after", owner->lost->after);
        row_position(row, "lost_before", owner->lost->before);
        row_position(row, "holder_released", history_holder_released(owner->lost));
        if (owner->lost->released)
            row_stack(row, "release_stack", owner->lost->release_stack);
        else
            row_null(row, "release_stack");
    }
}

void row_owner(struct row *row, const char *key, const struct heap_owner *owner)
{
    if (!owner) {
        row_null(row, key);
        return;
    }
    row_begin_object(row, key);
    history_row_owner_members(row, owner);
    row_end_object(row);
}

void report_history(struct report *report, const struct heap_history *history)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_history(report, history);
        return;
    }
    row_open(&row, report);
    row_hex(&row, "address", history->options.first);
    row_unsigned(&row, "size", history->options.last - history->options.first + 1);
    row_certainty(&row);
    row_unsigned(&row, "total_blocks", history->total);
    if (!row.is_json)
        report->left_out += history->total - history->count;
    ROW_EACH(&row, "blocks", struct heap_owner, owner, history->owners, history->count)
    {
        if (row.is_json)
            history_row_owner_members(&row, owner);
        else
            history_row_owner_columns(&row, owner);
    }
    row_end_object(&row);
}
