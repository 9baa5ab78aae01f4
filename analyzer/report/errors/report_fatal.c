/* SPDX-License-Identifier: MIT */
/* The signal that the program died of, and the place of its address: the first finding of `errors`.
 */
#include "report/errors/error_reports.h"

static void fatal_text_name(struct report *report, const struct heap_fatal_pointer *pointer)
{
    const char *name = pointer->is_register ? report_register_name(pointer->number) : NULL;
    if (!pointer->is_register)
        out_text(report->output, "  the fault address");
    else if (name)
        out_format(report->output, "  %s", name);
    else
        out_format(report->output, "  register %u", pointer->number);
    say(report->output, pointer->is_register ? " = " : " ", hex(pointer->address));
}

/* A register that points at no block is left out: most registers hold no pointers. The fault
 * address is always written. */
static void fatal_text_pointer(struct report *report, const struct heap_places *places,
                               const struct heap_fatal_pointer *pointer)
{
    struct text_output *output = report->output;
    if (pointer->is_register && pointer->where == HEAP_FATAL_ELSEWHERE)
        return;
    fatal_text_name(report, pointer);
    if (pointer->where == HEAP_FATAL_ELSEWHERE || pointer->where == HEAP_FATAL_NEAR) {
        bool is_near = pointer->where == HEAP_FATAL_NEAR;
        out_text(output, " lies in no block");
        struct heap_place place = heap_place_at(places, pointer->address);
        bool is_named = report_address_text(report, ": ", &place, pointer->address);
        out_text(output, is_named || is_near ? "\n" : ", and near none\n");
        if (is_near && !is_named)
            report_neighbours_text(report, &pointer->neighbours, pointer->address);
    } else {
        bool is_live = pointer->where == HEAP_FATAL_IN_LIVE;
        say(output, " lies ", bytes(pointer->address - pointer->block_address),
            is_live ? " inside a live block: " : " inside a released block: ",
            hex(pointer->block_address), ", ", bytes(pointer->block_size), "\n");
        report_call_text(report, "allocated", &pointer->allocated);
        report_call_text(report, "released", &pointer->released);
    }
    if (!pointer->is_certain)
        say(output, ALARM, "  uncertain", PLAIN, ": not everything before it is known\n");
}

/* Says also why there is no snapshot, because the user may have asked for one. */
static void text_fatal_snapshot(struct report *report, const struct heap_fatal *fatal)
{
    struct text_output *output = report->output;
    out_text(output, "  ");
    if (!fatal->signal.snapshot)
        out_text(output, "no snapshot was taken then");
    else if (!fatal->snapshot.number)
        out_format(output, "snapshot %u was cut short, and is not used", fatal->signal.snapshot);
    else
        report_snapshot_text(report, &fatal->snapshot);
    out_char(output, '\n');
}

/* Writes the signals before the one that the process died of, the newest first. There are some
 * where the program has a handler of its own: the first signal then shows the error, and the last
 * one may come from abort(). */
static void text_fatal_earlier(struct report *report, const struct heap_fatal *fatal)
{
    struct text_output *output = report->output;
    for (size_t i = fatal->earlier_count; i-- > 0;) {
        out_text(output, "  before that: ");
        report_signal_text(report, &fatal->earlier[i]);
        out_char(output, '\n');
        report_stack_text(report, fatal->earlier[i].stack);
    }
    if (fatal->count - 1 > fatal->earlier_count)
        out_format(output, "  before that: %llu more signals\n",
                   (unsigned long long)(fatal->count - 1 - fatal->earlier_count));
}

static enum heap_fatal_cause fatal_cause_of(const struct report_errors *data)
{
    const struct heap_places *places = data->places;
    return heap_fatal_cause(data->fatal, places ? places->regions : NULL,
                            places ? places->region_count : 0);
}

static void text_fatal_cause(struct report *report, const struct report_errors *data)
{
    enum heap_fatal_cause cause = fatal_cause_of(data);
    if (cause == HEAP_FATAL_JUMP)
        out_text(report->output, "  it jumped to the fault address\n");
    if (cause == HEAP_FATAL_OVERFLOW)
        out_text(report->output, "  the stack of the thread has overflown\n");
}

void report_fatal_text(struct report *report, const struct report_errors *data)
{
    struct text_output *output = report->output;
    const struct heap_fatal *fatal = data->fatal;
    if (!fatal)
        return;
    say(output, BOLD, "fatal-signal", PLAIN, ": ");
    report_signal_text(report, &fatal->signal);
    out_char(output, '\n');
    if (!ttd_position_is_valid(fatal->signal.position)) {
        out_char(output, '\n');
        return;
    }
    report_stack_text(report, fatal->signal.stack);
    text_fatal_cause(report, data);
    if (fatal->has_address)
        fatal_text_pointer(report, data->places, &fatal->pointers[0]);
    text_fatal_snapshot(report, fatal);
    text_fatal_earlier(report, fatal);
    out_char(output, '\n');
}

void report_registers_text(struct report *report, const struct report_errors *data)
{
    const struct heap_fatal *fatal = data->fatal;
    bool has_heading = false;
    for (size_t i = fatal ? fatal->has_address : 0; fatal && i < fatal->pointer_count; i++) {
        if (fatal->pointers[i].where == HEAP_FATAL_ELSEWHERE)
            continue;
        if (!has_heading)
            out_text(report->output, "\nRegisters that pointed at blocks when it died\n");
        has_heading = true;
        fatal_text_pointer(report, data->places, &fatal->pointers[i]);
    }
}

static void row_fatal_pointer(struct row *row, const char *key, const struct heap_places *places,
                              const struct heap_fatal_pointer *pointer)
{
    static const char *const wheres[] = {"elsewhere", "live", "released", "near"};
    row_begin_object(row, key);
    if (pointer->is_register) {
        row_unsigned(row, "number", pointer->number);
        row_text(row, "name", report_register_name(pointer->number));
    }
    row_hex(row, "address", pointer->address);
    row_text(row, "where", wheres[pointer->where]);
    row_bool(row, "certain", pointer->is_certain);
    if (pointer->block_address) {
        row_begin_object(row, "block");
        row_hex(row, "address", pointer->block_address);
        row_unsigned(row, "size", pointer->block_size);
        row_unsigned(row, "offset", pointer->address - pointer->block_address);
        row_end_object(row);
    } else {
        row_null(row, "block");
    }
    row_call(row, "allocated", &pointer->allocated);
    row_call(row, "released", &pointer->released);
    row_neighbours(row, &pointer->neighbours);
    struct heap_place place =
        heap_place_at(pointer->block_address ? NULL : places, pointer->address);
    row_address(row, &place);
    row_end_object(row);
}

static void row_fatal_signal(struct row *row, const struct ttd_fatal_signal *signal)
{
    row_signal(row, signal);
    row_unsigned(row, "stack_id", signal->stack);
    row_stack(row, "stack", signal->stack);
    row_unsigned(row, "snapshot_number", signal->snapshot);
}

void row_fatal(struct row *row, const struct report_errors *data)
{
    static const char *const causes[] = {NULL, "jump", "stack-overflow"};
    const struct heap_fatal *fatal = data->fatal;
    if (!fatal) {
        row_null(row, "fatal_signal");
        return;
    }
    row_begin_object(row, "fatal_signal");
    row_fatal_signal(row, &fatal->signal);
    row_text(row, "cause", causes[fatal_cause_of(data)]);
    row_snapshot(row, "snapshot", fatal->snapshot.number ? &fatal->snapshot : NULL);
    if (fatal->has_address)
        row_fatal_pointer(row, "fault", data->places, &fatal->pointers[0]);
    else
        row_null(row, "fault");
    row_begin_array(row, "registers");
    for (size_t i = fatal->has_address; i < fatal->pointer_count; i++)
        row_fatal_pointer(row, NULL, data->places, &fatal->pointers[i]);
    row_end_array(row);
    row_begin_array(row, "earlier");
    for (size_t i = 0; i < fatal->earlier_count; i++) {
        row_begin_object(row, NULL);
        row_fatal_signal(row, &fatal->earlier[i]);
        row_end_object(row);
    }
    row_end_array(row);
    row_end_object(row);
}
