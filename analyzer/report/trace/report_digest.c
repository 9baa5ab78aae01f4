/* SPDX-License-Identifier: MIT */
/* The report of `digest`: a line of JSON for each trace. */
#include <string.h>

#include <ttdtrace/version.h>

#include "report/trace/trace_reports.h"
#include "symbols/trace_definitions.h"

/* Version of the members: raised if one changes its meaning, and not if one is added. */
#define DIGEST_VERSION 1

static const char *const sum_names[DIGEST_SUMS] = {
    [DIGEST_ALLOCATIONS] = "allocations",
    [DIGEST_ALLOCATED_BYTES] = "allocated_bytes",
    [DIGEST_TEMPORARY] = "temporary",
    [DIGEST_TEMPORARY_BYTES] = "temporary_bytes",
    [DIGEST_LIVE_BLOCKS] = "live_blocks",
    [DIGEST_LIVE_BYTES] = "live_bytes",
    [DIGEST_LOST_BLOCKS] = "lost_blocks",
    [DIGEST_LOST_BYTES] = "lost_bytes",
    [DIGEST_POSSIBLE_BLOCKS] = "possibly_lost_blocks",
    [DIGEST_POSSIBLE_BYTES] = "possibly_lost_bytes",
};

static void digest_sums(struct row *row, const struct report_digest *data,
                        const uint64_t sums[DIGEST_SUMS])
{
    for (int i = 0; i < DIGEST_SUMS; i++) {
        bool is_known = i < DIGEST_LOST_BLOCKS || data->has_snapshot;
        row_count(row, sum_names[i], is_known ? sums[i] : TTD_UNKNOWN);
    }
}

static struct ttd_string digest_metadata(const struct report_info *info, const char *key)
{
    for (size_t i = 0; i < info->metadata_count; i++) {
        const struct ttd_metadata *metadata = &info->metadata[i];
        if (metadata->key.size == strlen(key) &&
            memcmp(metadata->key.data, key, metadata->key.size) == 0)
            return metadata->value;
    }
    return (struct ttd_string){"", 0};
}

/* Writes the last part of a path; null for none. */
static void digest_base_name(struct row *row, const char *key, struct ttd_string path)
{
    size_t begin = path.size;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    /* A frame without a module has no text at all. */
    row_name(row, key, begin ? (struct ttd_string){path.data + begin, path.size - begin} : path);
}

static void digest_identity(struct row *row, const struct report_digest *data)
{
    static const char *const facts[] = {"host", "system", "writer", "command"};
    const struct ttd_trace *trace = data->info.trace;
    char text[INFO_TIME_SIZE];
    row_unsigned(row, "digest", DIGEST_VERSION);
    row_text(row, "analyzer", ttd_version());
    row_hex(row, "trace_id", trace->trace_id);
    row_hex_if(row, "parent_trace_id", trace->parent_trace_id, trace->parent_trace_id);
    if (info_has_origin(trace))
        row_bytes(row, "group", trace->group.bytes, sizeof trace->group.bytes);
    else
        row_null(row, "group");
    info_start_time(&data->info, text);
    row_text(row, "start_time", info_has_process(trace) ? text : NULL);
    row_count(row, "process_id", info_has_process(trace) ? trace->process_id : TTD_UNKNOWN);
    row_text(row, "architecture", info_architecture(trace->architecture));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        row_name(row, facts[i], digest_metadata(&data->info, facts[i]));
    struct ttd_string path = {"", 0};
    if (data->program)
        path = definitions_text(row->report->definitions, data->program->path);
    digest_base_name(row, "program", path);
    if (data->program && data->program->build_id_size)
        row_bytes(row, "build_id", data->program->build_id, data->program->build_id_size);
    else
        row_null(row, "build_id");
}

static void digest_recording(struct row *row, const struct report_digest *data)
{
    const struct report_info *info = &data->info;
    const struct heap_trace_stats *stats = info->stats;
    row_unsigned(row, "file_bytes", info->file_bytes);
    row_unsigned(row, "events", stats->events);
    row_unsigned(row, "lost_events", stats->outcome.losses.events);
    row_bool(row, "lost_events_exact", heap_losses_are_exact(&stats->outcome.losses));
    row_unsigned(row, "threads", stats->thread_count);
    row_count(row, "last_wall_time_ns",
              trace_has_times(info->trace) ? stats->last_wall_time : TTD_UNKNOWN);
    row_text(row, "end_reason", info->is_closed ? info_end_reason(info) : NULL);
    row_count(row, "end_code", info_has_end_code(info) ? info->end->code : TTD_UNKNOWN);
}

static void digest_site(struct row *row, const struct report_digest *data,
                        const struct report_digest_site *site)
{
    char text[FINGERPRINT_TEXT];
    fingerprint_format(site->fingerprint, text);
    row_begin_object(row, NULL);
    row_text(row, "fingerprint", text);
    row_name(row, "function", site->function);
    digest_base_name(row, "module", site->module);
    digest_sums(row, data, site->sums);
    row_end_object(row);
}

/* Writes the sums of the sites that are not listed, so that all of them add up to the trace's. */
static void digest_others(struct row *row, const struct report_digest *data)
{
    uint64_t sums[DIGEST_SUMS] = {0};
    for (size_t i = data->listed; i < data->site_count; i++)
        for (int k = 0; k < DIGEST_SUMS; k++)
            sums[k] = heap_add(sums[k], data->sites[i].sums[k]);
    row_begin_object(row, "others");
    row_unsigned(row, "sites", data->site_count - data->listed);
    digest_sums(row, data, sums);
    row_end_object(row);
}

void report_digest(struct report *report, const struct report_digest *data)
{
    struct row row;
    row_open_line(&row, report, false);
    digest_identity(&row, data);
    digest_recording(&row, data);
    row_certainty(&row);
    digest_sums(&row, data, data->sums);
    row_unsigned(&row, "peak_blocks", data->peak.blocks);
    row_unsigned(&row, "peak_bytes", data->peak.bytes);
    row_unsigned(&row, "reallocs", data->reallocs);
    row_unsigned(&row, "moved", data->moved);
    row_unsigned(&row, "copied_bytes", data->copied_bytes);
    row_unsigned(&row, "errors", data->errors);
    row_begin_array(&row, "sites");
    for (size_t i = 0; i < data->listed; i++)
        digest_site(&row, data, &data->sites[i]);
    row_end_array(&row);
    digest_others(&row, data);
    row_close_line(&row);
}
