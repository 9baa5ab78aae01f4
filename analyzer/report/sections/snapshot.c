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
