/* SPDX-License-Identifier: MIT */
/* The values of `info` that its formats share. */

#include <string.h>
#include <time.h>

#include "report/trace/trace_reports.h"
#include "report/writers/out.h"

/* The clients and the activities of a trace as text. */

enum { COLUMN_ACTIVITY = 38, COLUMN_COUNT = 60, COLUMN_FIRST = 72, COLUMN_LAST = 90 };

static void info_head(struct text_output *output, const char *activity, const char *count)
{
    say(output, BOLD, "\nClient", tab(COLUMN_ACTIVITY), activity, tab(COLUMN_COUNT), count,
        tab(COLUMN_FIRST), "First", tab(COLUMN_LAST), "Last\n", PLAIN);
}

static void info_rows(struct text_output *output, const struct heap_client_list *list,
                      bool has_activities)
{
    char guid[GUID_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_client *client = &list->items[i];
        say(output, guid_is_given(client->client) ? guid_text(client->client, guid) : "none",
            tab(COLUMN_ACTIVITY));
        if (has_activities)
            out_unsigned(output, client->activity);
        say(output, tab(COLUMN_COUNT), grouped(client->count), tab(COLUMN_FIRST), client->first,
            tab(COLUMN_LAST), client->last, "\n");
    }
    if (list->is_cut)
        out_text(output, "and others\n");
}

void info_text_clients(struct text_output *output, const struct heap_clients *clients)
{
    if (clients->clients.count) {
        info_head(output, "", "Marks");
        info_rows(output, &clients->clients, false);
    }
    if (clients->activities.count) {
        info_head(output, "Activity", "Islands");
        info_rows(output, &clients->activities, true);
    }
}

/* The report of `info` as CSV: a row for each number. */

static void info_row(struct row *row, struct ttd_string name, struct ttd_string value)
{
    row_begin_record(row);
    row_string(row, "name", name);
    row_string(row, "value", value);
    row_end_record(row);
}

static void info_number(struct row *row, const char *name, uint64_t value)
{
    row_begin_record(row);
    row_text(row, "name", name);
    row_unsigned(row, "value", value);
    row_end_record(row);
}

static void info_position(struct row *row, const char *name, bool has, struct ttd_position position)
{
    row_begin_record(row);
    row_text(row, "name", name);
    row_position(row, "value", has ? position : ttd_position_invalid());
    row_end_record(row);
}

static void csv_info(struct report *report, const struct report_info *data)
{
    const struct heap_trace_stats *stats = data->stats;
    struct row row;
    row_open(&row, report);
    if (row_begin_header(&row)) {
        row_null(&row, "name");
        row_null(&row, "value");
        row_end_record(&row);
    }
    info_number(&row, "events", stats->events);
    info_number(&row, "allocs", stats->actions[TTD_ACTION_ALLOC]);
    info_number(&row, "frees", stats->actions[TTD_ACTION_FREE]);
    info_number(&row, "reallocs", stats->actions[TTD_ACTION_REALLOC]);
    info_number(&row, "failed", stats->failed);
    info_number(&row, "unfinished", stats->unfinished);
    info_number(&row, "snapshots", stats->kinds[TTD_KIND_SNAPSHOTS].records);
    info_number(&row, "references", heap_trace_stats_references(stats));
    info_number(&row, "memory_bytes", info_memory_bytes(stats));
    info_number(&row, "fatal_signal", stats->fatal_signal.signal);
    info_number(&row, "threads", stats->thread_count);
    info_number(&row, "clients", stats->clients.clients.count);
    info_number(&row, "activities", stats->clients.activities.count);
    info_number(&row, "lost_events", stats->outcome.losses.events);
    info_number(&row, "closed", data->is_closed);
    info_number(&row, "chunks", stats->all.chunks);
    info_number(&row, "file_bytes", data->file_bytes);
    info_row(&row, escape_string("end_reason"),
             escape_string(data->is_closed ? info_end_reason(data) : ""));
    info_position(&row, "first_position", stats->events, stats->first);
    info_position(&row, "last_position", stats->events, stats->last);
    for (size_t i = 0; i < data->metadata_count; i++)
        info_row(&row, data->metadata[i].key, data->metadata[i].value);
}

/* The report of `info` as JSON. */

static void info_summary(struct row *row, const struct report_info *data)
{
    const struct heap_trace_stats *stats = data->stats;
    struct ttd_position no_position = ttd_position_invalid();
    row_unsigned(row, "file_bytes", data->file_bytes);
    row_unsigned(row, "chunks", stats->all.chunks);
    row_unsigned(row, "events", stats->events);
    row_unsigned(row, "allocs", stats->actions[TTD_ACTION_ALLOC]);
    row_unsigned(row, "frees", stats->actions[TTD_ACTION_FREE]);
    row_unsigned(row, "reallocs", stats->actions[TTD_ACTION_REALLOC]);
    row_unsigned(row, "creates", stats->actions[TTD_ACTION_CREATE]);
    row_unsigned(row, "protects", stats->actions[TTD_ACTION_PROTECT]);
    row_unsigned(row, "locks", stats->actions[TTD_ACTION_LOCK]);
    row_unsigned(row, "unlocks", stats->actions[TTD_ACTION_UNLOCK]);
    row_unsigned(row, "destroys", stats->actions[TTD_ACTION_DESTROY]);
    row_unsigned(row, "failed", stats->failed);
    row_unsigned(row, "unfinished", stats->unfinished);
    row_unsigned(row, "bytes_requested", stats->bytes_requested);
    row_unsigned(row, "user_events", stats->user_events);
    row_unsigned(row, "snapshots", stats->kinds[TTD_KIND_SNAPSHOTS].records);
    row_unsigned(row, "references", heap_trace_stats_references(stats));
    row_unsigned(row, "memory_bytes", info_memory_bytes(stats));
    row_unsigned(row, "threads", stats->thread_count);
    row_unsigned(row, "lost_events", stats->outcome.losses.events);
    row_bool(row, "lost_events_exact", heap_losses_are_exact(&stats->outcome.losses));
    row_double(row, "bytes_per_event", info_bytes_per_event(stats));
    row_position(row, "first_position", stats->events ? stats->first : no_position);
    row_position(row, "last_position", stats->events ? stats->last : no_position);
    row_count(row, "last_wall_time_ns",
              trace_has_times(data->trace) ? stats->last_wall_time : TTD_UNKNOWN);
    row_bool(row, "closed", data->is_closed);
    row_text(row, "end_reason", data->is_closed ? info_end_reason(data) : NULL);
    if (info_has_end_code(data))
        row_unsigned(row, "end_code", data->end->code);
    else
        row_null(row, "end_code");
    if (stats->has_fatal_signal) {
        row_begin_object(row, "fatal_signal");
        row_signal(row, &stats->fatal_signal);
        row_end_object(row);
    } else {
        row_null(row, "fatal_signal");
    }
}

/* Members of the first chunk. If that was lost, the time unit is 0 and the times of the trace mean
 * nothing, so they are null. */
static void info_flag(struct row *row, const char *name, const struct ttd_trace *trace,
                      uint32_t flag)
{
    if (info_has_origin(trace))
        row_bool(row, name, trace->flags & flag);
    else
        row_null(row, name);
}

static void trace_object(struct row *row, const struct report_info *data)
{
    const struct ttd_trace *trace = data->trace;
    bool is_known = info_has_origin(trace);
    char text[INFO_TIME_SIZE];
    info_start_time(data, text);
    row_begin_object(row, "trace");
    row_hex(row, "trace_id", trace->trace_id);
    if (is_known)
        row_bytes(row, "group", trace->group.bytes, sizeof trace->group.bytes);
    else
        row_null(row, "group");
    if (trace->parent_trace_id) {
        row_hex(row, "parent_trace_id", trace->parent_trace_id);
        row_position(row, "parent_position", trace->parent_position);
    } else {
        row_null(row, "parent_trace_id");
        row_null(row, "parent_position");
    }
    row_text(row, "start_time", info_has_process(trace) ? text : NULL);
    row_count(row, "time_unit_ns", trace_has_times(trace) ? trace->time_unit : TTD_UNKNOWN);
    row_count(row, "process_id", info_has_process(trace) ? trace->process_id : TTD_UNKNOWN);
    row_count(row, "parent_process_id",
              info_has_process(trace) ? trace->parent_process_id : TTD_UNKNOWN);
    row_text(row, "architecture", info_architecture(trace->architecture));
    row_count(row, "pointer_size", is_known ? trace->pointer_size : TTD_UNKNOWN);
    info_flag(row, "derived", trace, TTD_TRACE_DERIVED);
    info_flag(row, "inherits", trace, TTD_TRACE_INHERITS);
    info_flag(row, "recovered", trace, TTD_TRACE_RECOVERED);
    info_flag(row, "attached", trace, TTD_TRACE_ATTACHED);
    row_end_object(row);
}

/* Lists the threads that have events. The definition of such a thread may be lost, and then its
 * number and name are null. */
static void info_thread_list(struct report *report, struct row *row,
                             const struct heap_trace_stats *stats)
{
    row_begin_array(row, "thread_list");
    for (size_t i = 0; i < stats->thread_count; i++) {
        const struct heap_trace_stats_thread *thread = &stats->threads[i];
        const struct definition_thread *definition =
            definitions_thread(report->definitions, thread->id);
        row_begin_object(row, NULL);
        row_unsigned(row, "thread", thread->id);
        if (definition)
            row_unsigned(row, "os_id", definition->os_id);
        else
            row_null(row, "os_id");
        row_name(row, "name",
                 definitions_text(report->definitions, definition ? definition->name : TTD_NONE));
        row_position(row, "begun", definition ? definition->begin : ttd_position_invalid());
        row_position(row, "ended", definition ? definition->end : ttd_position_invalid());
        row_unsigned(row, "events", thread->events);
        row_unsigned(row, "allocs", thread->actions[TTD_ACTION_ALLOC]);
        row_unsigned(row, "frees", thread->actions[TTD_ACTION_FREE]);
        row_unsigned(row, "reallocs", thread->actions[TTD_ACTION_REALLOC]);
        row_end_object(row);
    }
    row_end_array(row);
}

/* Writes a list of clients, or of activities. */
static void info_json_client_list(struct row *row, const char *key,
                                  const struct heap_client_list *list, bool has_activities)
{
    char guid[GUID_TEXT];
    row_begin_array(row, key);
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_client *client = &list->items[i];
        bool is_given = guid_is_given(client->client);
        row_begin_object(row, NULL);
        row_text(row, "client", is_given ? guid_text(client->client, guid) : NULL);
        if (has_activities)
            row_unsigned(row, "activity", client->activity);
        row_unsigned(row, has_activities ? "islands" : "marks", client->count);
        row_position(row, "first_position", client->first);
        row_position(row, "last_position", client->last);
        row_end_object(row);
    }
    row_end_array(row);
}

static void info_module_list(struct report *report, struct row *row)
{
    const struct idtable *modules = &report->definitions->modules;
    row_begin_array(row, "module_list");
    for (size_t run = 0; run < modules->run_count; run++) {
        const struct definition_module *records = modules->runs[run].records;
        for (size_t i = 0; i < modules->runs[run].count; i++) {
            row_begin_object(row, NULL);
            row_unsigned(row, "module", modules->runs[run].first + i);
            row_name(row, "path", definitions_text(report->definitions, records[i].path));
            row_bytes(row, "build_id", records[i].build_id, records[i].build_id_size);
            row_hex(row, "begin", records[i].begin);
            row_hex(row, "end", records[i].end);
            row_hex(row, "bias", records[i].bias);
            row_position(row, "loaded", records[i].loaded);
            row_position(row, "unloaded", records[i].unloaded);
            row_end_object(row);
        }
    }
    row_end_array(row);
}

/* Chunks of unknown kinds, perhaps of a newer version, are one entry: "other". */
static void info_chunk_list(struct row *row, const struct heap_trace_stats *stats)
{
    row_begin_array(row, "chunk_list");
    for (unsigned kind = 0; kind < HEAP_TRACE_STATS_KINDS; kind++) {
        const struct heap_trace_stats_chunks *chunks = &stats->kinds[kind];
        if (!chunks->chunks)
            continue;
        row_begin_object(row, NULL);
        row_text(row, "kind", kind ? ttd_kind_name(kind) : "other");
        row_unsigned(row, "chunks", chunks->chunks);
        row_unsigned(row, "items", chunks->records);
        row_unsigned(row, "stored_bytes", chunks->stored_bytes);
        row_unsigned(row, "raw_bytes", chunks->raw_bytes);
        row_end_object(row);
    }
    row_end_array(row);
}

static void info_write_losses(struct row *row, const struct ttd_loss *losses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ttd_loss *loss = &losses[i];
        row_begin_object(row, NULL);
        row_text(row, "reason", heap_loss_text(loss->reason));
        row_unsigned(row, "thread", loss->thread);
        row_count(row, "events", loss->count);
        row_position(row, "last_good", loss->last_good);
        row_position(row, "first_good", loss->first_good);
        row_end_object(row);
    }
}

/* JSON lists only the first losses, and `lost_events` counts all of them; a table has all. */
static void info_loss_list(struct row *row, const struct report_info *data)
{
    const struct heap_losses *losses = &data->stats->outcome.losses;
    row_begin_array(row, "loss_list");
    info_write_losses(row, losses->kept, losses->kept_count);
    info_write_losses(row, data->losses, data->loss_count);
    row_end_array(row);
    if (row->sink && strcmp(row->sink->list, "loss_list") == 0)
        row->report->left_out = losses->records - losses->kept_count - data->loss_count;
}

static void json_info(struct report *report, const struct report_info *data)
{
    struct row row;
    row_open(&row, report);
    row_certainty(&row);
    info_summary(&row, data);
    trace_object(&row, data);
    row_begin_array(&row, "metadata");
    for (size_t i = 0; i < data->metadata_count; i++) {
        row_begin_object(&row, NULL);
        row_string(&row, "key", data->metadata[i].key);
        row_string(&row, "value", data->metadata[i].value);
        row_end_object(&row);
    }
    row_end_array(&row);
    info_thread_list(report, &row, data->stats);
    info_json_client_list(&row, "client_list", &data->stats->clients.clients, false);
    info_json_client_list(&row, "activity_list", &data->stats->clients.activities, true);
    info_module_list(report, &row);
    info_chunk_list(&row, data->stats);
    info_loss_list(&row, data);
    row_end_object(&row);
}

void report_info(struct report *report, const struct report_info *data)
{
    if (report->form == REPORT_TEXT)
        text_info(report, data);
    else if (report->form == REPORT_JSON)
        json_info(report, data);
    else
        csv_info(report, data);
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
