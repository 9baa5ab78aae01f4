/* SPDX-License-Identifier: MIT */
/* The table of formats. */
#include "report/format.h"

#include <string.h>

/* The reports that text, JSON and CSV have: functions of one name behind the format's name. */
#define REPORTS(format)                                                                            \
    .tree = format##_tree, .summary = format##_summary, .info = format##_info,                     \
    .group = format##_recording, .family = format##_family, .leaks = format##_leaks,               \
    .moves = format##_moves, .state = format##_state, .history = format##_history,                 \
    .peak = format##_peak, .diff = format##_diff, .compare = format##_compare,                     \
    .hot = format##_hot, .lifetimes = format##_lifetimes, .timeline = format##_timeline,           \
    .fragmentation = format##_fragmentation, .memory = format##_memory,                            \
    .snapshots = format##_snapshots, .marks_begin = format##_marks_begin, .mark = format##_mark,   \
    .find = format##_find, .referrers = format##_referrers, .retained = format##_retained,         \
    .errors = format##_errors, .events_begin = format##_events_begin, .event = format##_event,     \
    .verify_begin = format##_verify_begin, .problem = format##_problem,                            \
    .verify_end = format##_verify_end, .recover = format##_recover, .redact = format##_redact,     \
    .index = format##_index

static const struct report_format formats[] = {
    {
        .name = "text",
        .has_times = true,
        .has_reasons = true,
        .temporary = text_temporary,
        .rows_end = text_rows_end,
        REPORTS(text),
    },
    {
        .name = "json",
        .has_reasons = true,
        .temporary = json_hot,
        REPORTS(json),
    },
    {
        .name = "csv",
        .temporary = csv_hot,
        REPORTS(csv),
    },
    {
        .name = "folded",
        .needs_tree = true,
        .tree = folded_tree,
        .compare = folded_compare,
    },
};

const struct report_format *report_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}
