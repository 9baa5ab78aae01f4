/* SPDX-License-Identifier: MIT */
/* The values of `info` that its formats share. */
#include "report/trace/info.h"

#include <time.h>

#include "report/trace/trace_reports.h"
#include "report/writers/escape.h"

/* The clients and the activities of a trace as text. */

enum { COLUMN_ACTIVITY = 38, COLUMN_COUNT = 60, COLUMN_FIRST = 72, COLUMN_LAST = 90 };

static void head(struct text_output *output, const char *activity, const char *count)
{
    out_bold(output);
    out_text(output, "\nClient");
    out_tab(output, COLUMN_ACTIVITY);
    out_text(output, activity);
    out_tab(output, COLUMN_COUNT);
    out_text(output, count);
    out_tab(output, COLUMN_FIRST);
    out_text(output, "First");
    out_tab(output, COLUMN_LAST);
    out_text(output, "Last\n");
    out_plain(output);
}

static void rows(struct text_output *output, const struct heap_client_list *list,
                 bool has_activities)
{
    char guid[GUID_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_client *client = &list->items[i];
        out_text(output, guid_is_given(client->client) ? guid_text(client->client, guid) : "none");
        out_tab(output, COLUMN_ACTIVITY);
        if (has_activities)
            out_unsigned(output, client->activity);
        out_tab(output, COLUMN_COUNT);
        out_grouped(output, client->count);
        out_tab(output, COLUMN_FIRST);
        out_position(output, client->first);
        out_tab(output, COLUMN_LAST);
        out_position(output, client->last);
        out_char(output, '\n');
    }
    if (list->is_cut)
        out_text(output, "and others\n");
}

void info_text_clients(struct text_output *output, const struct heap_clients *clients)
{
    if (clients->clients.count) {
        head(output, "", "Marks");
        rows(output, &clients->clients, false);
    }
    if (clients->activities.count) {
        head(output, "Activity", "Islands");
        rows(output, &clients->activities, true);
    }
}

/* The report of `info` as CSV: a row for each number. */

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

/* The report of `info` as JSON. */

static void summary(struct json *json, const struct report_info *data)
{
    const struct heap_trace_stats *stats = data->stats;
    struct ttd_position no_position = ttd_position_invalid();
    json_unsigned(json, "file_bytes", data->file_bytes);
    json_unsigned(json, "chunks", stats->all.chunks);
    json_unsigned(json, "events", stats->events);
    json_unsigned(json, "allocs", stats->actions[TTD_ACTION_ALLOC]);
    json_unsigned(json, "frees", stats->actions[TTD_ACTION_FREE]);
    json_unsigned(json, "reallocs", stats->actions[TTD_ACTION_REALLOC]);
    json_unsigned(json, "creates", stats->actions[TTD_ACTION_CREATE]);
    json_unsigned(json, "protects", stats->actions[TTD_ACTION_PROTECT]);
    json_unsigned(json, "locks", stats->actions[TTD_ACTION_LOCK]);
    json_unsigned(json, "unlocks", stats->actions[TTD_ACTION_UNLOCK]);
    json_unsigned(json, "destroys", stats->actions[TTD_ACTION_DESTROY]);
    json_unsigned(json, "failed", stats->failed);
    json_unsigned(json, "unfinished", stats->unfinished);
    json_unsigned(json, "bytes_requested", stats->bytes_requested);
    json_unsigned(json, "user_events", stats->user_events);
    json_unsigned(json, "snapshots", stats->kinds[TTD_KIND_SNAPSHOTS].records);
    json_unsigned(json, "references", heap_trace_stats_references(stats));
    json_unsigned(json, "memory_bytes", info_memory_bytes(stats));
    json_unsigned(json, "threads", stats->thread_count);
    json_unsigned(json, "lost_events", stats->outcome.losses.events);
    json_bool(json, "lost_events_exact", heap_losses_are_exact(&stats->outcome.losses));
    json_double(json, "bytes_per_event", info_bytes_per_event(stats));
    json_position(json, "first_position", stats->events ? stats->first : no_position);
    json_position(json, "last_position", stats->events ? stats->last : no_position);
    json_count(json, "last_wall_time_ns",
               data->trace->time_unit ? stats->last_wall_time : TTD_UNKNOWN);
    json_bool(json, "closed", data->is_closed);
    json_text(json, "end_reason", data->is_closed ? info_end_reason(data) : NULL);
    if (info_has_end_code(data))
        json_unsigned(json, "end_code", data->end->code);
    else
        json_null(json, "end_code");
    if (stats->has_fatal_signal) {
        json_begin_object(json, "fatal_signal");
        report_signal_json(json, &stats->fatal_signal);
        json_end_object(json);
    } else {
        json_null(json, "fatal_signal");
    }
}

/* Members of the first chunk. If that was lost, the time unit is 0 and the times of the trace mean
 * nothing, so they are null. */
static void flag(struct json *json, const char *name, const struct ttd_trace *trace, uint32_t flag)
{
    if (info_has_origin(trace))
        json_bool(json, name, trace->flags & flag);
    else
        json_null(json, name);
}

static void trace_object(struct json *json, const struct report_info *data)
{
    const struct ttd_trace *trace = data->trace;
    bool is_known = info_has_origin(trace);
    char text[INFO_TIME_SIZE];
    info_start_time(data, text);
    json_begin_object(json, "trace");
    json_hex(json, "trace_id", trace->trace_id);
    if (is_known)
        json_bytes(json, "group", trace->group.bytes, sizeof trace->group.bytes);
    else
        json_null(json, "group");
    if (trace->parent_trace_id) {
        json_hex(json, "parent_trace_id", trace->parent_trace_id);
        json_position(json, "parent_position", trace->parent_position);
    } else {
        json_null(json, "parent_trace_id");
        json_null(json, "parent_position");
    }
    json_text(json, "start_time", is_known ? text : NULL);
    json_count(json, "time_unit_ns", is_known ? trace->time_unit : TTD_UNKNOWN);
    json_count(json, "process_id", is_known ? trace->process_id : TTD_UNKNOWN);
    json_count(json, "parent_process_id", is_known ? trace->parent_process_id : TTD_UNKNOWN);
    json_text(json, "architecture", info_architecture(trace->architecture));
    json_count(json, "pointer_size", is_known ? trace->pointer_size : TTD_UNKNOWN);
    flag(json, "derived", trace, TTD_TRACE_DERIVED);
    flag(json, "inherits", trace, TTD_TRACE_INHERITS);
    flag(json, "recovered", trace, TTD_TRACE_RECOVERED);
    flag(json, "attached", trace, TTD_TRACE_ATTACHED);
    json_end_object(json);
}

/* Lists the threads that have events. The definition of such a thread may be lost, and then its
 * number and name are null. */
static void thread_list(struct report *report, struct json *json,
                        const struct heap_trace_stats *stats)
{
    json_begin_array(json, "thread_list");
    for (size_t i = 0; i < stats->thread_count; i++) {
        const struct heap_trace_stats_thread *thread = &stats->threads[i];
        const struct definition_thread *definition =
            definitions_thread(report->definitions, thread->id);
        json_begin_object(json, NULL);
        json_unsigned(json, "thread", thread->id);
        if (definition)
            json_unsigned(json, "os_id", definition->os_id);
        else
            json_null(json, "os_id");
        json_name(json, "name",
                  definitions_text(report->definitions, definition ? definition->name : TTD_NONE));
        json_position(json, "begun", definition ? definition->begin : ttd_position_invalid());
        json_position(json, "ended", definition ? definition->end : ttd_position_invalid());
        json_unsigned(json, "events", thread->events);
        json_unsigned(json, "allocs", thread->actions[TTD_ACTION_ALLOC]);
        json_unsigned(json, "frees", thread->actions[TTD_ACTION_FREE]);
        json_unsigned(json, "reallocs", thread->actions[TTD_ACTION_REALLOC]);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Writes a list of clients, or of activities. */
static void json_client_list(struct json *json, const char *key,
                             const struct heap_client_list *list, bool has_activities)
{
    char guid[GUID_TEXT];
    json_begin_array(json, key);
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_client *client = &list->items[i];
        bool is_given = guid_is_given(client->client);
        json_begin_object(json, NULL);
        json_text(json, "client", is_given ? guid_text(client->client, guid) : NULL);
        if (has_activities)
            json_unsigned(json, "activity", client->activity);
        json_unsigned(json, has_activities ? "islands" : "marks", client->count);
        json_position(json, "first_position", client->first);
        json_position(json, "last_position", client->last);
        json_end_object(json);
    }
    json_end_array(json);
}

static void module_list(struct report *report, struct json *json)
{
    const struct idtable *modules = &report->definitions->modules;
    json_begin_array(json, "module_list");
    for (size_t run = 0; run < modules->run_count; run++) {
        const struct definition_module *records = modules->runs[run].records;
        for (size_t i = 0; i < modules->runs[run].count; i++) {
            json_begin_object(json, NULL);
            json_unsigned(json, "module", modules->runs[run].first + i);
            json_name(json, "path", definitions_text(report->definitions, records[i].path));
            json_bytes(json, "build_id", records[i].build_id, records[i].build_id_size);
            json_hex(json, "begin", records[i].begin);
            json_hex(json, "end", records[i].end);
            json_hex(json, "bias", records[i].bias);
            json_position(json, "loaded", records[i].loaded);
            json_position(json, "unloaded", records[i].unloaded);
            json_end_object(json);
        }
    }
    json_end_array(json);
}

/* Chunks of unknown kinds, which a newer version may have written, are one entry: "other". */
static void chunk_list(struct json *json, const struct heap_trace_stats *stats)
{
    json_begin_array(json, "chunk_list");
    for (unsigned kind = 0; kind < HEAP_TRACE_STATS_KINDS; kind++) {
        const struct heap_trace_stats_chunks *chunks = &stats->kinds[kind];
        if (!chunks->chunks)
            continue;
        json_begin_object(json, NULL);
        json_text(json, "kind", kind ? ttd_kind_name(kind) : "other");
        json_unsigned(json, "chunks", chunks->chunks);
        json_unsigned(json, "items", chunks->records);
        json_unsigned(json, "stored_bytes", chunks->stored_bytes);
        json_unsigned(json, "raw_bytes", chunks->raw_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Only the first losses are listed; `lost_events` counts all of them. */
static void loss_list(struct json *json, const struct heap_losses *losses)
{
    json_begin_array(json, "loss_list");
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        json_begin_object(json, NULL);
        json_text(json, "reason", heap_loss_text(loss->reason));
        json_unsigned(json, "thread", loss->thread);
        json_count(json, "events", loss->count);
        json_position(json, "last_good", loss->last_good);
        json_position(json, "first_good", loss->first_good);
        json_end_object(json);
    }
    json_end_array(json);
}

void json_info(struct report *report, const struct report_info *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    summary(&json, data);
    trace_object(&json, data);
    json_begin_array(&json, "metadata");
    for (size_t i = 0; i < data->metadata_count; i++) {
        json_begin_object(&json, NULL);
        json_string(&json, "key", data->metadata[i].key);
        json_string(&json, "value", data->metadata[i].value);
        json_end_object(&json);
    }
    json_end_array(&json);
    thread_list(report, &json, data->stats);
    json_client_list(&json, "client_list", &data->stats->clients.clients, false);
    json_client_list(&json, "activity_list", &data->stats->clients.activities, true);
    module_list(report, &json);
    chunk_list(&json, data->stats);
    loss_list(&json, &data->stats->outcome.losses);
    json_end_object(&json);
}

const char *info_end_reason(const struct report_info *data)
{
    static const char *const names[] = {"unknown", "exited", "killed", "detached", "not recorded"};
    size_t reason = (size_t)data->end->reason;
    return reason < sizeof names / sizeof names[0] ? names[reason] : names[0];
}

bool info_has_end_code(const struct report_info *data)
{
    return data->is_closed && (data->end->reason == TTD_END_REASON_EXITED ||
                               data->end->reason == TTD_END_REASON_SIGNALED);
}

const char *info_architecture(uint32_t architecture)
{
    static const char *const names[] = {"unknown", "x86_64", "aarch64", "x86", "arm", "riscv64"};
    return architecture < sizeof names / sizeof names[0] ? names[architecture] : names[0];
}

void info_start_time(const struct report_info *data, char text[INFO_TIME_SIZE])
{
    time_t seconds = (time_t)(data->trace->start_time / 1000000000);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) ||
        !strftime(text, INFO_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts))
        text[0] = '\0';
}

uint64_t info_memory_bytes(const struct heap_trace_stats *stats)
{
    const struct heap_trace_stats_chunks *pages = &stats->kinds[TTD_KIND_PAGES];
    uint64_t headers = pages->chunks * INFO_PAGES_HEADER;
    return pages->raw_bytes > headers ? pages->raw_bytes - headers : 0;
}

double info_bytes_per_event(const struct heap_trace_stats *stats)
{
    /* Stacks, names and indexes are not counted: they depend on the program, not on its number of
     * calls. */
    double stored = (double)stats->kinds[TTD_KIND_EVENTS].stored_bytes;
    return stats->events ? stored / (double)stats->events : 0;
}
