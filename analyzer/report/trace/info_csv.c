/* SPDX-License-Identifier: MIT */
/* The report of `info` as CSV: a row for each number. */
#include "report/trace/info.h"
#include "report/trace/reports.h"

void csv_info(struct report *report, const struct report_info *data)
{
    const struct heap_trace_stats *stats = data->stats;
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "name,value");
    const struct {
        const char *name;
        uint64_t value;
    } records[] = {{"events", stats->events},
                   {"allocs", stats->actions[TTD_ACTION_ALLOC]},
                   {"frees", stats->actions[TTD_ACTION_FREE]},
                   {"reallocs", stats->actions[TTD_ACTION_REALLOC]},
                   {"failed", stats->failed},
                   {"unfinished", stats->unfinished},
                   {"snapshots", stats->kinds[TTD_KIND_SNAPSHOTS].records},
                   {"references", heap_trace_stats_references(stats)},
                   {"memory_bytes", info_memory_bytes(stats)},
                   {"fatal_signal", stats->fatal_signal.signal},
                   {"threads", stats->thread_count},
                   {"clients", stats->clients.clients.count},
                   {"activities", stats->clients.activities.count},
                   {"lost_events", stats->outcome.losses.events},
                   {"closed", data->is_closed},
                   {"chunks", stats->all.chunks},
                   {"file_bytes", data->file_bytes}};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        csv_text(&csv, records[i].name);
        csv_unsigned(&csv, records[i].value);
        csv_end_row(&csv);
    }
    csv_text(&csv, "end_reason");
    csv_text(&csv, data->is_closed ? info_end_reason(data) : "");
    csv_end_row(&csv);
    csv_text(&csv, "first_position");
    csv_position(&csv, stats->events ? stats->first : ttd_position_invalid());
    csv_end_row(&csv);
    csv_text(&csv, "last_position");
    csv_position(&csv, stats->events ? stats->last : ttd_position_invalid());
    csv_end_row(&csv);
    for (size_t i = 0; i < data->metadata_count; i++) {
        csv_string(&csv, data->metadata[i].key);
        csv_string(&csv, data->metadata[i].value);
        csv_end_row(&csv);
    }
}
