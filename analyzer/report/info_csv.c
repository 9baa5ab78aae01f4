/* SPDX-License-Identifier: MIT */
#include "report/formats.h"
#include "report/info.h"

void csv_info(struct report *to, const struct report_info *data)
{
    const struct trace_stats *all = data->survey;
    struct csv writer;
    report_csv_begin(to, &writer);
    csv_header(&writer, "name,value");
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"events", all->events},
                {"allocs", all->actions[TTD_ACTION_ALLOC]},
                {"frees", all->actions[TTD_ACTION_FREE]},
                {"reallocs", all->actions[TTD_ACTION_REALLOC]},
                {"failed", all->failed},
                {"unfinished", all->unfinished},
                {"threads", all->thread_count},
                {"lost_events", all->losses.events},
                {"closed", data->is_closed},
                {"chunks", all->all.chunks},
                {"file_bytes", data->file_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        csv_text(&writer, rows[i].name);
        csv_unsigned(&writer, rows[i].value);
        csv_end_row(&writer);
    }
    csv_text(&writer, "end_reason");
    csv_text(&writer, data->is_closed ? info_end_reason(data) : "");
    csv_end_row(&writer);
    csv_text(&writer, "first_position");
    csv_position(&writer, all->events ? all->first : ttd_position_invalid());
    csv_end_row(&writer);
    csv_text(&writer, "last_position");
    csv_position(&writer, all->events ? all->last : ttd_position_invalid());
    csv_end_row(&writer);
    for (size_t i = 0; i < data->metadata_count; i++) {
        csv_string(&writer, data->metadata[i].key);
        csv_string(&writer, data->metadata[i].value);
        csv_end_row(&writer);
    }
}
