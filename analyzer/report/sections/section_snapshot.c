/* SPDX-License-Identifier: MIT */
/* A snapshot in one line of a report, and as an object. */
#include "report/sections/sections.h"

const char *report_snapshot_reason(const struct ttd_snapshot *snapshot)
{
    static const char *const names[] = {"unknown", "requested", "interval",
                                        "program", "exit",      "signal"};
    return snapshot->reason < sizeof names / sizeof names[0] ? names[snapshot->reason] : names[0];
}

void report_snapshot_json(struct json *json, const char *key, const struct ttd_snapshot *snapshot)
{
    if (!snapshot) {
        json_null(json, key);
        return;
    }
    json_begin_object(json, key);
    json_unsigned(json, "number", snapshot->number);
    json_position(json, "position", snapshot->position);
    json_text(json, "reason", report_snapshot_reason(snapshot));
    json_bool(json, "stopped", snapshot->flags & TTD_SNAPSHOT_STOPPED);
    json_bool(json, "complete", !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
    json_end_object(json);
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

void report_lost_json(struct json *json, const struct heap_lost_range *lost)
{
    if (!lost)
        return;
    json_position(json, "lost_after", lost->after);
    json_position(json, "lost_before", lost->before);
    json_unsigned(json, "holders_released", lost->released);
    if (!lost->released)
        return;
    json_position(json, "first_release", lost->first_release);
    json_position(json, "last_release", lost->last_release);
}

/* The columns exist in each row, also where it is not known when blocks were lost. */
void report_lost_csv(struct csv *csv, const struct heap_lost_range *lost)
{
    bool is_released = lost && lost->released;
    csv_position(csv, lost ? lost->after : ttd_position_invalid());
    csv_position(csv, lost ? lost->before : ttd_position_invalid());
    csv_position(csv, is_released ? lost->first_release : ttd_position_invalid());
    csv_position(csv, is_released ? lost->last_release : ttd_position_invalid());
}
