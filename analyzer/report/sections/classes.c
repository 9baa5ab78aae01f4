/* SPDX-License-Identifier: MIT */
/* The kinds of blocks that a snapshot tells apart, from lost to reachable. */
#include "report/sections/sections.h"

const struct report_leak_kind report_leak_kinds[HEAP_LEAK_KINDS] = {
    [HEAP_DEFINITELY_LOST] = {"definitely lost", "definitely_lost", NULL},
    [HEAP_POSSIBLY_LOST] = {"possibly lost", "possibly_lost", NULL},
    [HEAP_INDIRECTLY_LOST] = {"indirectly lost", "indirectly_lost", NULL},
    [HEAP_HELD_BY_STALE] = {"held only by possibly stale words", "still_reachable", "stale"},
    [HEAP_HELD_WEAKLY] = {"held only by an ending stack or a register", "still_reachable", "stack"},
    [HEAP_REACHABLE] = {"still reachable", "still_reachable", NULL},
    [HEAP_NOT_SEEN] = {"allocated after the snapshot", "not_seen", NULL},
    [HEAP_UNKNOWN] = {"unknown, perhaps released while recording was off", "unknown", NULL}};

void report_sums_text(struct text_output *output, const struct heap_groups *groups)
{
    report_count(output, groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, groups->bytes, "byte");
}

void report_snapshot_why_text(struct report *report, const struct ttd_snapshot *snapshot)
{
    static const char *const reasons[] = {"",
                                          ", on request",
                                          ", at an interval",
                                          ", for the program",
                                          ", when the program ended",
                                          ", when the program died of a signal"};
    report_snapshot_text(report, snapshot);
    if (snapshot->reason <= TTD_SNAPSHOT_SIGNAL)
        out_text(report->output, reasons[snapshot->reason]);
}

static void json_class_sums(struct json *json, const char *key, const struct heap_groups *groups,
                            enum heap_leak_kind first, enum heap_leak_kind last)
{
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    for (int kind = (int)first; kind <= (int)last; kind++) {
        blocks += groups[kind].blocks;
        bytes = heap_add(bytes, groups[kind].bytes);
    }
    json_begin_object(json, key);
    json_unsigned(json, "blocks", blocks);
    json_unsigned(json, "bytes", bytes);
    json_end_object(json);
}

void report_classes_json(struct json *json, const struct heap_leaks *leaks)
{
    const struct heap_groups *groups = leaks->kinds;
    if (!leaks->snapshot.number) {
        json_text(json, "classes", NULL);
        return;
    }
    json_begin_object(json, "classes");
    json_class_sums(json, "definitely_lost", groups, HEAP_DEFINITELY_LOST, HEAP_DEFINITELY_LOST);
    json_class_sums(json, "indirectly_lost", groups, HEAP_INDIRECTLY_LOST, HEAP_INDIRECTLY_LOST);
    json_class_sums(json, "possibly_lost", groups, HEAP_POSSIBLY_LOST, HEAP_POSSIBLY_LOST);
    json_class_sums(json, "still_reachable", groups, HEAP_HELD_BY_STALE, HEAP_REACHABLE);
    json_class_sums(json, "held_by_stale", groups, HEAP_HELD_BY_STALE, HEAP_HELD_BY_STALE);
    json_class_sums(json, "held_by_stack", groups, HEAP_HELD_WEAKLY, HEAP_HELD_WEAKLY);
    json_class_sums(json, "not_seen", groups, HEAP_NOT_SEEN, HEAP_NOT_SEEN);
    json_class_sums(json, "unknown", groups, HEAP_UNKNOWN, HEAP_UNKNOWN);
    json_end_object(json);
}
