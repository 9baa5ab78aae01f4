/* SPDX-License-Identifier: MIT */
/* The process in a report: the signal that it died of, how much of its memory is heap, the snapshot
 * that a report rests on, and when blocks were lost. */
#include "report/sections/sections.h"

/* The signal that a program died of, in one line of a report and as members of an object. */

/* The numbers that Linux uses on all architectures that are recorded. */
enum { ILL = 4, TRAP = 5, BUS = 7, FPE = 8, SEGV = 11, SYS = 31, FROM_KERNEL = 128 };

static const char *const signal_names[] = {
    NULL,        "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};

#define CODES_MAX 10

/** The meaning of a signal's codes from 1 on. */
struct signal_codes {
    uint32_t number;
    const char *codes[CODES_MAX + 1];
};

static const struct signal_codes signal_codes[] = {
    {ILL,
     {NULL, "illegal opcode", "illegal operand", "illegal addressing mode", "illegal trap",
      "privileged opcode", "privileged register", "coprocessor error", "internal stack error"}},
    {TRAP,
     {NULL, "process breakpoint", "process trace trap", "process taken branch trap",
      "hardware breakpoint or watchpoint"}},
    {BUS,
     {NULL, "invalid address alignment", "nonexistent physical address",
      "object-specific hardware error", "hardware memory error, action required",
      "hardware memory error, action optional"}},
    {FPE,
     {NULL, "integer divide by zero", "integer overflow", "floating-point divide by zero",
      "floating-point overflow", "floating-point underflow", "floating-point inexact result",
      "invalid floating-point operation", "subscript out of range"}},
    {SEGV,
     {NULL, "address not mapped", "access not permitted", "failed address bound checks",
      "access denied by memory protection keys", NULL, NULL, NULL,
      "asynchronous memory tag check failed", "memory tag check failed",
      "control protection fault"}},
    {SYS, {NULL, "system call not permitted"}}};

const char *report_signal_name(uint32_t number)
{
    return number < sizeof signal_names / sizeof *signal_names ? signal_names[number] : NULL;
}

void report_signal_number_text(struct text_output *output, uint32_t number)
{
    const char *name = report_signal_name(number);
    if (name)
        out_text(output, name);
    else
        out_format(output, "signal %u", number);
}

/* Describes one of a signal's own codes; NULL if it is not known. */
static const char *process_own_code(const struct ttd_fatal_signal *signal)
{
    for (size_t i = 0; i < sizeof signal_codes / sizeof *signal_codes; i++) {
        if (signal_codes[i].number == signal->signal && signal->code <= CODES_MAX)
            return signal_codes[i].codes[signal->code];
    }
    return NULL;
}

/* Describes a signal's code; NULL if it is not known. */
static const char *process_signal_reason(const struct ttd_fatal_signal *signal)
{
    static const char *const sent[] = {
        "sent by kill",           "sent by sigqueue",           "a timer expired",
        "a message arrived",      "asynchronous I/O completed", "queued I/O",
        "sent by raise or tgkill"};
    if (signal->code == FROM_KERNEL)
        return "sent by the kernel";
    if (signal->code <= 0)
        return signal->code > -(int64_t)(sizeof sent / sizeof sent[0]) ? sent[-signal->code] : NULL;
    return process_own_code(signal);
}

void report_signal_text(struct report *report, const struct ttd_fatal_signal *signal)
{
    struct text_output *output = report->output;
    const char *reason = process_signal_reason(signal);
    report_signal_number_text(output, signal->signal);
    if (!ttd_position_is_valid(signal->position)) {
        out_text(output, ", of which nothing more was recorded");
        return;
    }
    if (reason)
        out_format(output, " (%s)", reason);
    else
        out_format(output, " (code %lld)", (long long)signal->code);
    say(output, " at ", signal->position);
    char time[TIME_TEXT];
    time_text(time, signal->wall_time);
    out_format(output, " (%s) in thread %u", time, signal->thread);
}

void row_signal(struct row *row, const struct ttd_fatal_signal *signal)
{
    row_unsigned(row, "signal", signal->signal);
    row_text(row, "name", report_signal_name(signal->signal));
    if (!ttd_position_is_valid(signal->position)) {
        static const char *const unknown[] = {"code",         "reason", "position",
                                              "wall_time_ns", "thread", "address"};
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            row_null(row, unknown[i]);
        return;
    }
    if (signal->code < 0)
        row_difference(row, "code", 0 - (uint64_t)signal->code, 0);
    else
        row_unsigned(row, "code", (uint64_t)signal->code);
    row_text(row, "reason", process_signal_reason(signal));
    row_position(row, "position", signal->position);
    row_unsigned(row, "wall_time_ns", signal->wall_time);
    row_unsigned(row, "thread", signal->thread);
    row_hex_if(row, "address", heap_fatal_has_address(signal), signal->address);
}

/* How much of the process's memory is heap at all. */

void report_memory_samples_text(struct report *report, const struct heap_memory_samples *samples,
                                uint64_t heap_peak, size_t column)
{
    struct text_output *output = report->output;
    if (!samples->most_resident)
        return;
    say(output, tab(column), rounded(samples->most_resident), " resident at most");
    /* The system keeps the most resident memory, but the samples may have missed mappings. */
    if (samples->most_mapped >= samples->most_resident)
        say(output, ", ", rounded(samples->most_mapped), " mapped");
    out_text(output, ", by samples\n");
    /* Memory that was resident once need not have been so at the heap's peak: there is no share. */
    if (heap_peak < samples->most_resident / 2)
        say(output, tab(column), "the heap had ", rounded(heap_peak),
            " at most: most is code, stacks and mappings, or kept free\n");
}

void report_pooled_text(struct report *report, const struct heap_choice *choice, size_t column)
{
    for (unsigned i = 0; i < choice->pooled_count; i++)
        say(report->output, tab(column), "Unrecorded pools: ", escape_string(choice->pooled[i]),
            "\n");
}

void row_pooled(struct row *row, const struct heap_choice *choice)
{
    row_begin_array(row, "pooled");
    for (unsigned i = 0; i < choice->pooled_count; i++)
        row_text(row, NULL, choice->pooled[i]);
    row_end_array(row);
}

/* A snapshot in one line of a report, and as an object. */

const char *report_snapshot_reason(const struct ttd_snapshot *snapshot)
{
    static const char *const names[] = {"unknown", "requested", "interval",
                                        "program", "exit",      "signal"};
    return snapshot->reason < sizeof names / sizeof names[0] ? names[snapshot->reason] : names[0];
}

void row_snapshot(struct row *row, const char *key, const struct ttd_snapshot *snapshot)
{
    if (!snapshot) {
        row_null(row, key);
        return;
    }
    row_begin_object(row, key);
    row_unsigned(row, "number", snapshot->number);
    row_position(row, "position", snapshot->position);
    row_text(row, "reason", report_snapshot_reason(snapshot));
    row_bool(row, "stopped", snapshot->flags & TTD_SNAPSHOT_STOPPED);
    row_bool(row, "complete", !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
    row_end_object(row);
}

void report_snapshot_text(struct report *report, const struct ttd_snapshot *snapshot)
{
    struct text_output *output = report->output;
    say(output, "snapshot ", number(snapshot->number), " at ", moment(report, snapshot->position));
    if (!(snapshot->flags & TTD_SNAPSHOT_STOPPED))
        out_text(output, ", taken while the program ran: parts may be of different moments");
    if (snapshot->flags & TTD_SNAPSHOT_INCOMPLETE) {
        out_text(output, ", incomplete");
        if (snapshot->missing)
            say(output, ": ", bytes(snapshot->missing), " left out");
    }
}

/* The signal that no program can catch, by its number on Linux. */
enum { SIGNAL_KILL = 9 };

const char *report_left_text(enum certainty_ending ending)
{
    switch (ending) {
    case ENDING_KNOWN:
        return "never released";
    case ENDING_UNSHOWN:
    case ENDING_UNTOLD:
        return "live when the program ended";
    case ENDING_KILLED:
        return "live when the program was killed";
    default:
        return "live when the recording ended";
    }
}

const char *report_left_reason(enum certainty_ending ending)
{
    switch (ending) {
    case ENDING_UNSHOWN:
        return "it may still have reached them";
    case ENDING_UNTOLD:
        return "it may have been killed before it could release them";
    case ENDING_KILLED:
        return "it had no chance to release them";
    default:
        return "the program may have released them";
    }
}

const char *report_early_end(enum certainty_ending ending)
{
    switch (ending) {
    case ENDING_DETACHED:
    case ENDING_CUT:
        return "the recording ended before the program";
    case ENDING_UNSEEN:
        return "calls up to the end of the program were not recorded";
    case ENDING_NO_CALLS:
        return "no allocation was recorded";
    default:
        return NULL;
    }
}

void report_no_snapshot_text(struct report *report)
{
    const struct ttd_end *end = report->end;
    bool was_killed = end && end->reason == TTD_END_REASON_SIGNALED && end->code == SIGNAL_KILL;
    say(report->output, "The trace has no snapshot of references at this position or before.\n",
        was_killed
            ? "SIGKILL leaves no time for one at the end: ttdrecord --snapshot-every=SECONDS\n"
              "takes some while the program runs.\n"
            : "ttdrecord takes one when the program ends, unless it ends by SIGKILL or by a\n"
              "system call of its own (as in Go), is confined by seccomp and ends by a signal\n"
              "or _exit(), --max-size was reached, or --no-snapshot is given; and more with\n"
              "--snapshot-every=SECONDS.\n");
}

/* When blocks were lost, according to snapshots and releases. */

/* The release of the only block that held a lost block is the likely error: the program should have
 * released the memory that it held before. */
static void process_text_releases(struct report *report, const struct heap_lost_range *lost,
                                  uint64_t blocks)
{
    struct text_output *output = report->output;
    bool is_one = lost->released == 1;
    out_text(output, is_one ? "; the only block that held " : "; the only blocks that held ");
    if (blocks == 1) {
        out_text(output, "it");
    } else {
        say(output, grouped(lost->released), " of them");
    }
    say(output, is_one ? " was released at " : " were released from ",
        moment(report, lost->first_release));
    if (!is_one)
        say(output, " to ", moment(report, lost->last_release));
    out_text(output, lost->has_other_stacks ? ", the first by " : " by ");
    report_owner_frame_text(report, lost->release_stack);
}

void report_lost_text(struct report *report, const struct heap_lost_range *lost, uint64_t blocks)
{
    struct text_output *output = report->output;
    say(output, "lost after ", moment(report, lost->after), ", at ", moment(report, lost->before),
        " at the latest");
    if (lost->released)
        process_text_releases(report, lost, blocks);
    out_char(output, '\n');
}

/* In CSV the columns exist in each row, also where it is not known when blocks were lost. */
void row_lost(struct row *row, const struct heap_lost_range *lost)
{
    bool is_released = lost && lost->released;
    if (row_has(row, "lost_after", lost))
        row_position(row, "lost_after", lost->after);
    if (row_has(row, "lost_before", lost))
        row_position(row, "lost_before", lost->before);
    if (lost && row->is_json)
        row_unsigned(row, "holders_released", lost->released);
    if (row_has(row, "first_release", is_released))
        row_position(row, "first_release", lost->first_release);
    if (row_has(row, "last_release", is_released))
        row_position(row, "last_release", lost->last_release);
    if (is_released && row->is_json)
        row_stack(row, "release_stack", lost->release_stack);
}
