/* SPDX-License-Identifier: MIT */
/* The table of formats. */
#include "report/format.h"

#include <string.h>

#include "report/formats.h"

static const struct report_format formats[] = {
    {
        .name = "text",
        .has_times = true,
        .has_reasons = true,
        .tree = text_tree,
        .info = text_info,
        .group = text_recording,
        .leaks = text_leaks,
        .moves = text_moves,
        .state = text_state,
        .history = text_history,
        .peak = text_peak,
        .diff = text_diff,
        .compare = text_compare,
        .hot = text_hot,
        .temporary = text_temporary,
        .lifetimes = text_lifetimes,
        .timeline = text_timeline,
        .fragmentation = text_fragmentation,
        .errors = text_errors,
        .events_begin = text_events_begin,
        .event = text_event,
        .events_end = text_events_end,
        .verify_begin = text_verify_begin,
        .problem = text_problem,
        .verify_end = text_verify_end,
        .recover = text_recover,
        .index = text_index,
    },
    {
        .name = "json",
        .has_reasons = true,
        .tree = json_tree,
        .info = json_info,
        .group = json_recording,
        .leaks = json_leaks,
        .moves = json_moves,
        .state = json_state,
        .history = json_history,
        .peak = json_peak,
        .diff = json_diff,
        .compare = json_compare,
        .hot = json_hot,
        .temporary = json_hot,
        .lifetimes = json_lifetimes,
        .timeline = json_timeline,
        .fragmentation = json_fragmentation,
        .errors = json_errors,
        .events_begin = json_events_begin,
        .event = json_event,
        .verify_begin = json_verify_begin,
        .problem = json_problem,
        .verify_end = json_verify_end,
        .recover = json_recover,
        .index = json_index,
    },
    {
        .name = "csv",
        .tree = csv_tree,
        .info = csv_info,
        .group = csv_recording,
        .leaks = csv_leaks,
        .moves = csv_moves,
        .state = csv_state,
        .history = csv_history,
        .peak = csv_peak,
        .diff = csv_diff,
        .compare = csv_compare,
        .hot = csv_hot,
        .temporary = csv_hot,
        .lifetimes = csv_lifetimes,
        .timeline = csv_timeline,
        .fragmentation = csv_fragmentation,
        .errors = csv_errors,
        .events_begin = csv_events_begin,
        .event = csv_event,
        .verify_begin = csv_verify_begin,
        .problem = csv_problem,
        .verify_end = csv_verify_end,
        .recover = csv_recover,
        .index = csv_index,
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
