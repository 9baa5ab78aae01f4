/* SPDX-License-Identifier: MIT */
/* The signal that the program died of: the first finding of `errors`, and a line of `info`. */
#include "report/sections.h"

/* As Linux counts them on all architectures that are recorded. */
enum { ILL = 4, TRAP = 5, ABRT = 6, BUS = 7, FPE = 8, SEGV = 11, SYS = 31, FROM_KERNEL = 128 };

#define CODES_MAX 10

/** A signal, and what its codes from 1 on mean. */
struct signal_name {
    uint32_t number;
    const char *name;
    const char *codes[CODES_MAX + 1];
};

static const struct signal_name signal_names[] = {
    {ILL,
     "SIGILL",
     {NULL, "illegal opcode", "illegal operand", "illegal addressing mode", "illegal trap",
      "privileged opcode", "privileged register", "coprocessor error", "internal stack error"}},
    {TRAP,
     "SIGTRAP",
     {NULL, "process breakpoint", "process trace trap", "process taken branch trap",
      "hardware breakpoint or watchpoint"}},
    {ABRT, "SIGABRT", {NULL}},
    {BUS,
     "SIGBUS",
     {NULL, "invalid address alignment", "nonexistent physical address",
      "object-specific hardware error", "hardware memory error, action required",
      "hardware memory error, action optional"}},
    {FPE,
     "SIGFPE",
     {NULL, "integer divide by zero", "integer overflow", "floating-point divide by zero",
      "floating-point overflow", "floating-point underflow", "floating-point inexact result",
      "invalid floating-point operation", "subscript out of range"}},
    {SEGV,
     "SIGSEGV",
     {NULL, "address not mapped", "access not permitted", "failed address bound checks",
      "access denied by memory protection keys", NULL, NULL, NULL,
      "asynchronous memory tag check failed", "memory tag check failed",
      "control protection fault"}},
    {SYS, "SIGSYS", {NULL, "system call not permitted"}}};

static const struct signal_name *find_signal(uint32_t number)
{
    for (size_t i = 0; i < sizeof signal_names / sizeof signal_names[0]; i++) {
        if (signal_names[i].number == number)
            return &signal_names[i];
    }
    return NULL;
}

static const char *name_of(const struct ttd_fatal_signal *signal)
{
    const struct signal_name *found = find_signal(signal->signal);
    return found ? found->name : NULL;
}

/* What the code means; NULL if that is not known. */
static const char *reason_of(const struct ttd_fatal_signal *signal)
{
    static const char *const sent[] = {
        "sent by kill",           "sent by sigqueue",           "a timer expired",
        "a message arrived",      "asynchronous I/O completed", "queued I/O",
        "sent by raise or tgkill"};
    const struct signal_name *found = find_signal(signal->signal);
    if (signal->code == FROM_KERNEL)
        return "sent by the kernel";
    if (signal->code <= 0)
        return signal->code > -(int64_t)(sizeof sent / sizeof sent[0]) ? sent[-signal->code] : NULL;
    return found && signal->code <= CODES_MAX ? found->codes[signal->code] : NULL;
}

void report_signal_text(struct report *report, const struct ttd_fatal_signal *signal)
{
    struct out *output = report->output;
    const char *name = name_of(signal), *reason = reason_of(signal);
    if (name)
        out_text(output, name);
    else
        out_format(output, "signal %u", signal->signal);
    if (reason)
        out_format(output, " (%s)", reason);
    else
        out_format(output, " (code %lld)", (long long)signal->code);
    out_text(output, " at ");
    out_position(output, signal->position);
    out_format(output, " (+%.4gs) in thread %u", (double)signal->wall_time / 1e9, signal->thread);
}

void report_signal_json(struct json *json, const struct ttd_fatal_signal *signal)
{
    json_unsigned(json, "signal", signal->signal);
    json_text(json, "name", name_of(signal));
    if (signal->code < 0)
        json_difference(json, "code", 0 - (uint64_t)signal->code, 0);
    else
        json_unsigned(json, "code", (uint64_t)signal->code);
    json_text(json, "reason", reason_of(signal));
    json_position(json, "position", signal->position);
    json_unsigned(json, "wall_time_ns", signal->wall_time);
    json_unsigned(json, "thread", signal->thread);
    json_hex_if(json, "address", heap_fatal_has_address(signal), signal->address);
}

static void text_name(struct report *report, const struct heap_fatal_place *place)
{
    const char *name = place->is_register ? report_register_name(place->number) : NULL;
    if (!place->is_register)
        out_text(report->output, "  the fault address");
    else if (name)
        out_format(report->output, "  %s", name);
    else
        out_format(report->output, "  register %u", place->number);
    out_text(report->output, place->is_register ? " = " : " ");
    out_hex(report->output, place->address);
}

/* Registers that point at no block are those of most values, and not told. */
static void text_place(struct report *report, const struct heap_fatal_place *place)
{
    struct out *output = report->output;
    if (place->is_register && place->where == HEAP_FATAL_ELSEWHERE)
        return;
    text_name(report, place);
    if (place->where == HEAP_FATAL_ELSEWHERE) {
        out_text(output, " lies in no block, and near none\n");
    } else if (place->where == HEAP_FATAL_NEAR) {
        out_text(output, " lies in no block\n");
        report_neighbours_text(report, &place->neighbours, place->address);
    } else {
        bool is_live = place->where == HEAP_FATAL_IN_LIVE;
        out_text(output, " lies ");
        report_count(output, place->address - place->block_address, "byte");
        out_text(output, is_live ? " inside a live block: " : " inside a released block: ");
        out_hex(output, place->block_address);
        out_text(output, ", ");
        report_count(output, place->block_size, "byte");
        out_char(output, '\n');
        report_call_text(report, "allocated", &place->allocated);
        report_call_text(report, "released", &place->released);
    }
    if (!place->is_certain) {
        out_alarm(output);
        out_text(output, "  uncertain");
        out_plain(output);
        out_text(output, ": not everything before it is known\n");
    }
}

static void text_snapshot(struct report *report, const struct heap_fatal *fatal)
{
    struct out *output = report->output;
    out_text(output, "  ");
    if (!fatal->signal.snapshot)
        out_text(output, "no snapshot was taken then");
    else if (!fatal->snapshot.number)
        out_format(output, "snapshot %u was cut short, and is not used", fatal->signal.snapshot);
    else
        report_snapshot_text(report, &fatal->snapshot);
    out_char(output, '\n');
}

void report_fatal_text(struct report *report, const struct heap_fatal *fatal)
{
    struct out *output = report->output;
    if (!fatal)
        return;
    out_bold(output);
    out_text(output, "fatal-signal");
    out_plain(output);
    out_text(output, ": ");
    report_signal_text(report, &fatal->signal);
    out_char(output, '\n');
    report_stack_text(report, fatal->signal.stack);
    for (size_t i = 0; i < fatal->place_count; i++)
        text_place(report, &fatal->places[i]);
    text_snapshot(report, fatal);
    out_char(output, '\n');
}

static void json_place(struct report *report, struct json *json, const char *key,
                       const struct heap_fatal_place *place)
{
    static const char *const wheres[] = {"elsewhere", "live", "released", "near"};
    json_begin_object(json, key);
    if (place->is_register) {
        json_unsigned(json, "number", place->number);
        json_text(json, "name", report_register_name(place->number));
    }
    json_hex(json, "address", place->address);
    json_text(json, "where", wheres[place->where]);
    json_bool(json, "certain", place->is_certain);
    if (place->block_address) {
        json_begin_object(json, "block");
        json_hex(json, "address", place->block_address);
        json_unsigned(json, "size", place->block_size);
        json_unsigned(json, "offset", place->address - place->block_address);
        json_end_object(json);
    } else {
        json_null(json, "block");
    }
    report_call_json(report, json, "allocated", &place->allocated);
    report_call_json(report, json, "released", &place->released);
    report_neighbours_json(report, json, &place->neighbours);
    json_end_object(json);
}

void report_fatal_json(struct report *report, struct json *json, const struct heap_fatal *fatal)
{
    if (!fatal) {
        json_null(json, "fatal_signal");
        return;
    }
    json_begin_object(json, "fatal_signal");
    report_signal_json(json, &fatal->signal);
    json_unsigned(json, "stack_id", fatal->signal.stack);
    report_stack_json(report, json, "stack", fatal->signal.stack);
    json_unsigned(json, "snapshot_number", fatal->signal.snapshot);
    report_snapshot_json(json, "snapshot", fatal->snapshot.number ? &fatal->snapshot : NULL);
    if (fatal->has_address)
        json_place(report, json, "fault", &fatal->places[0]);
    else
        json_null(json, "fault");
    json_begin_array(json, "registers");
    for (size_t i = fatal->has_address; i < fatal->place_count; i++)
        json_place(report, json, NULL, &fatal->places[i]);
    json_end_array(json);
    json_end_object(json);
}
