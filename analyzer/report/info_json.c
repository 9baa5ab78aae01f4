/* SPDX-License-Identifier: MIT */
#include "report/formats.h"
#include "report/info.h"

static void summary(struct json *writer, const struct report_info *data)
{
    const struct trace_stats *all = data->survey;
    struct ttd_position none = ttd_position_invalid();
    json_unsigned(writer, "file_bytes", data->file_bytes);
    json_unsigned(writer, "chunks", all->all.chunks);
    json_unsigned(writer, "events", all->events);
    json_unsigned(writer, "allocs", all->actions[TTD_ACTION_ALLOC]);
    json_unsigned(writer, "frees", all->actions[TTD_ACTION_FREE]);
    json_unsigned(writer, "reallocs", all->actions[TTD_ACTION_REALLOC]);
    json_unsigned(writer, "creates", all->actions[TTD_ACTION_CREATE]);
    json_unsigned(writer, "protects", all->actions[TTD_ACTION_PROTECT]);
    json_unsigned(writer, "locks", all->actions[TTD_ACTION_LOCK]);
    json_unsigned(writer, "unlocks", all->actions[TTD_ACTION_UNLOCK]);
    json_unsigned(writer, "destroys", all->actions[TTD_ACTION_DESTROY]);
    json_unsigned(writer, "failed", all->failed);
    json_unsigned(writer, "unfinished", all->unfinished);
    json_unsigned(writer, "bytes_requested", all->bytes_requested);
    json_unsigned(writer, "user_events", all->user_events);
    json_unsigned(writer, "threads", all->thread_count);
    json_unsigned(writer, "lost_events", all->losses.events);
    json_bool(writer, "lost_events_exact", !all->losses.unknown);
    json_double(writer, "bytes_per_event", info_bytes_per_event(all));
    json_position(writer, "first_position", all->events ? all->first : none);
    json_position(writer, "last_position", all->events ? all->last : none);
    json_count(writer, "last_wall_time_ns",
               data->trace->time_unit ? all->last_wall_time : TTD_UNKNOWN);
    json_bool(writer, "closed", data->is_closed);
    json_text(writer, "end_reason", data->is_closed ? info_end_reason(data) : NULL);
    if (info_has_end_code(data))
        json_unsigned(writer, "end_code", data->end->code);
    else
        json_null(writer, "end_code");
}

static void trace_object(struct json *writer, const struct report_info *data)
{
    const struct ttd_trace *trace = data->trace;
    char text[INFO_TIME_SIZE];
    info_start_time(data, text);
    json_begin_object(writer, "trace");
    json_hex(writer, "trace_id", trace->trace_id);
    json_bytes(writer, "group", trace->group.bytes, sizeof trace->group.bytes);
    if (trace->parent_trace_id) {
        json_hex(writer, "parent_trace_id", trace->parent_trace_id);
        json_position(writer, "parent_position", trace->parent_position);
    } else {
        json_null(writer, "parent_trace_id");
        json_null(writer, "parent_position");
    }
    json_text(writer, "start_time", trace->time_unit ? text : NULL);
    json_count(writer, "time_unit_ns", trace->time_unit ? trace->time_unit : TTD_UNKNOWN);
    json_unsigned(writer, "process_id", trace->process_id);
    json_unsigned(writer, "parent_process_id", trace->parent_process_id);
    json_text(writer, "architecture", info_architecture(trace->architecture));
    json_unsigned(writer, "pointer_size", trace->pointer_size);
    json_bool(writer, "derived", trace->flags & TTD_TRACE_DERIVED);
    json_bool(writer, "inherits", trace->flags & TTD_TRACE_INHERITS);
    json_bool(writer, "recovered", trace->flags & TTD_TRACE_RECOVERED);
    json_bool(writer, "attached", trace->flags & TTD_TRACE_ATTACHED);
    json_end_object(writer);
}

static void thread_list(struct report *to, struct json *writer, const struct trace_stats *all)
{
    json_begin_array(writer, "thread_list");
    for (size_t i = 0; i < all->thread_count; i++) {
        const struct trace_stats_thread *thread = &all->threads[i];
        const struct definition_thread *known = definitions_thread(to->names, thread->id);
        json_begin_object(writer, NULL);
        json_unsigned(writer, "thread", thread->id);
        if (known)
            json_unsigned(writer, "os_id", known->os_id);
        else
            json_null(writer, "os_id");
        json_name(writer, "name", definitions_text(to->names, known ? known->name : TTD_NONE));
        json_position(writer, "begun", known ? known->begun : ttd_position_invalid());
        json_position(writer, "ended", known ? known->ended : ttd_position_invalid());
        json_unsigned(writer, "events", thread->events);
        json_unsigned(writer, "allocs", thread->allocs);
        json_unsigned(writer, "frees", thread->frees);
        json_unsigned(writer, "reallocs", thread->reallocs);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void module_list(struct report *to, struct json *writer)
{
    const struct idtable *modules = &to->names->modules;
    json_begin_array(writer, "module_list");
    for (size_t run = 0; run < modules->run_count; run++) {
        const struct definition_module *items = modules->runs[run].records;
        for (size_t i = 0; i < modules->runs[run].count; i++) {
            json_begin_object(writer, NULL);
            json_unsigned(writer, "module", modules->runs[run].first + i);
            json_name(writer, "path", definitions_text(to->names, items[i].path));
            json_bytes(writer, "build_id", items[i].build_id, items[i].build_id_size);
            json_hex(writer, "begin", items[i].begin);
            json_hex(writer, "end", items[i].end);
            json_hex(writer, "bias", items[i].bias);
            json_position(writer, "loaded", items[i].loaded);
            json_position(writer, "unloaded", items[i].unloaded);
            json_end_object(writer);
        }
    }
    json_end_array(writer);
}

static void chunk_list(struct json *writer, const struct trace_stats *all)
{
    json_begin_array(writer, "chunk_list");
    for (unsigned kind = 0; kind < TRACE_STATS_KINDS; kind++) {
        const struct trace_stats_chunks *chunks = &all->kinds[kind];
        if (!chunks->chunks)
            continue;
        json_begin_object(writer, NULL);
        json_text(writer, "kind", kind ? ttd_kind_name(kind) : "other");
        json_unsigned(writer, "chunks", chunks->chunks);
        json_unsigned(writer, "items", chunks->items);
        json_unsigned(writer, "stored_bytes", chunks->stored_bytes);
        json_unsigned(writer, "raw_bytes", chunks->raw_bytes);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void loss_list(struct json *writer, const struct heap_losses *losses)
{
    json_begin_array(writer, "loss_list");
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        json_begin_object(writer, NULL);
        json_text(writer, "reason", heap_loss_text(loss->reason));
        json_unsigned(writer, "thread", loss->thread);
        json_count(writer, "events", loss->count);
        json_position(writer, "last_good", loss->last_good);
        json_position(writer, "first_good", loss->first_good);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void json_info(struct report *to, const struct report_info *data)
{
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    report_doubts_json(to, &writer);
    summary(&writer, data);
    trace_object(&writer, data);
    json_begin_array(&writer, "metadata");
    for (size_t i = 0; i < data->metadata_count; i++) {
        json_begin_object(&writer, NULL);
        json_string(&writer, "key", data->metadata[i].key);
        json_string(&writer, "value", data->metadata[i].value);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    thread_list(to, &writer, data->survey);
    module_list(to, &writer);
    chunk_list(&writer, data->survey);
    loss_list(&writer, &data->survey->losses);
    json_end_object(&writer);
}
