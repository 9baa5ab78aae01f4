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
