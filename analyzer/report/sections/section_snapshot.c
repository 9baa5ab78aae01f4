/* SPDX-License-Identifier: MIT */
/* A snapshot in one line of a report, and as an object. */
#include "report/sections/sections.h"

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
    out_format(output, "snapshot %u at ", snapshot->number);
    report_position_text(report, snapshot->position);
    if (!(snapshot->flags & TTD_SNAPSHOT_STOPPED))
        out_text(output, ", taken while the program ran: parts may be of different moments");
    if (snapshot->flags & TTD_SNAPSHOT_INCOMPLETE) {
        out_text(output, ", incomplete");
        if (snapshot->missing) {
            out_text(output, ": ");
            report_count(output, snapshot->missing, "byte");
            out_text(output, " left out");
        }
    }
}

/* As Linux numbers it. */
enum { SIGNAL_KILL = 9 };

void report_no_snapshot_text(struct report *report)
{
    const struct ttd_end *end = report->end;
    bool was_killed = end && end->reason == TTD_END_REASON_SIGNALED && end->code == SIGNAL_KILL;
    out_text(report->output, "No snapshot of references was taken at this position or before.\n");
    out_text(report->output,
             was_killed
                 ? "SIGKILL leaves no time for one at the end: ttdrecord --snapshot-every=SECONDS\n"
                   "takes some while the program runs.\n"
                 : "ttdrecord takes one when the program ends, unless it ends by SIGKILL or by a\n"
                   "system call of its own (as in Go), or --no-snapshot is given; and more with\n"
                   "--snapshot-every=SECONDS.\n");
}

/* When blocks were lost, according to snapshots and releases. */

/* The release of the only block that held a lost block is the likely error: the program should have
 * released what it held before. */
static void text_releases(struct report *report, const struct heap_lost_range *lost,
                          uint64_t blocks)
{
    struct text_output *output = report->output;
    bool is_one = lost->released == 1;
    out_text(output, is_one ? "; the only block that held " : "; the only blocks that held ");
    if (blocks == 1) {
        out_text(output, "it");
    } else {
        out_grouped(output, lost->released);
        out_text(output, " of them");
    }
    out_text(output, is_one ? " was released at " : " were released from ");
    report_position_text(report, lost->first_release);
    if (is_one)
        return;
    out_text(output, " to ");
    report_position_text(report, lost->last_release);
}

void report_lost_text(struct report *report, const struct heap_lost_range *lost, uint64_t blocks)
{
    struct text_output *output = report->output;
    out_text(output, "lost after ");
    report_position_text(report, lost->after);
    out_text(output, ", at ");
    report_position_text(report, lost->before);
    out_text(output, " at the latest");
    if (lost->released)
        text_releases(report, lost, blocks);
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
}
