/* SPDX-License-Identifier: MIT */
/* The report of `info` as text. */
#include "report/trace/trace_reports.h"
#include "report/writers/out.h"

/* Writes a number in the column of a table that begins at a position of the line. */
static void info_text_put_column(struct text_output *output, size_t position, uint64_t value)
{
    say(output, tab(position), grouped(value));
}

/* Writes the bold name of a line, and aligns its value. */
static void info_text_label(struct report *report, const char *name)
{
    say(report->output, BOLD, name, PLAIN, tab(16));
}

static void text_end(struct report *report, const struct report_info *data)
{
    struct text_output *output = report->output;
    info_text_label(report, "End");
    if (!data->is_closed) {
        say(output, ALARM, "not closed cleanly: the recorder died, or is still recording\n", PLAIN);
        return;
    }
    switch (data->end->reason) {
    case TTD_END_REASON_EXITED:
        out_format(output, "exited %u", data->end->code);
        break;
    case TTD_END_REASON_SIGNALED:
        out_text(output, "killed by ");
        report_signal_number_text(output, data->end->code);
        break;
    case TTD_END_REASON_DETACHED:
        out_text(output, "the recorder let go, the process went on");
        break;
    case TTD_END_REASON_NOT_RECORDED:
        /* Without a time, because nobody saw the process end. */
        out_text(output, "not recorded: the file was recovered or computed\n");
        return;
    case TTD_END_REASON_UNKNOWN:
        out_text(output, "unknown");
        break;
    }
    say(output, " after ", lasting(data->end->wall_time), "\n");
}

static void text_fatal_signal(struct report *report, const struct heap_trace_stats *stats)
{
    struct text_output *output = report->output;
    if (!stats->has_fatal_signal)
        return;
    info_text_label(report, "Fatal signal");
    report_signal_text(report, &stats->fatal_signal);
    if (heap_fatal_has_address(&stats->fatal_signal))
        say(output, ", fault address ", hex(stats->fatal_signal.address));
    out_text(output, heap_fatal_is_fault(stats->fatal_signal.signal)
                         ? " ('ttdanalyze errors' tells more)\n"
                         : "\n");
}

static void text_origin(struct report *report, const struct report_info *data)
{
    const struct ttd_trace *trace = data->trace;
    struct text_output *output = report->output;
    char text[INFO_TIME_SIZE];
    info_start_time(data, text);
    info_text_label(report, "Trace");
    say(output, escape_string(report->path), ", ", bytes(data->file_bytes));
    out_format(output, ", id %016llx\n", (unsigned long long)trace->trace_id);
    if (!info_has_origin(trace)) {
        info_text_label(report, "Process");
        out_text(output, "unknown: the first chunk of the trace is lost\n");
        return;
    }
    info_text_label(report, "Process");
    if (!info_has_process(trace)) {
        out_text(output, "unknown\n");
        return;
    }
    out_format(output, "%llu, child of %llu, %s, started %s\n",
               (unsigned long long)trace->process_id, (unsigned long long)trace->parent_process_id,
               info_architecture(trace->architecture), text);
    info_text_label(report, "Group");
    for (size_t i = 0; i < sizeof trace->group.bytes; i++)
        out_format(output, "%02x", trace->group.bytes[i]);
    if (trace->parent_trace_id) {
        out_format(output, ", child of %016llx from ", (unsigned long long)trace->parent_trace_id);
        out_position(output, trace->parent_position);
    }
    out_char(output, '\n');
    static const struct {
        uint32_t flag;
        const char *text;
    } flags[] = {{TTD_TRACE_DERIVED, "computed from another trace"},
                 {TTD_TRACE_INHERITS, "began with its parent's live blocks"},
                 {TTD_TRACE_RECOVERED, "recovered from a damaged file"},
                 {TTD_TRACE_ATTACHED, "the process had run before recording began"}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!(trace->flags & flags[i].flag))
            continue;
        info_text_label(report, "Note");
        say(output, flags[i].text, "\n");
    }
}

static void text_info_counts(struct report *report, const struct report_info *data)
{
    const struct heap_trace_stats *stats = data->stats;
    struct text_output *output = report->output;
    info_text_label(report, "Events");
    out_grouped(output, stats->events);
    if (stats->events) {
        say(output, " from ", stats->first, " to ", stats->last);
        if (trace_has_times(data->trace))
            say(output, ", ", lasting(stats->last_wall_time));
        out_format(output, ", %.3g bytes each", info_bytes_per_event(stats));
    }
    out_char(output, '\n');
    for (int i = TTD_ACTION_ALLOC; i <= TTD_ACTION_DESTROY; i++) {
        if (!stats->actions[i])
            continue;
        say(output, "  ", ttd_action_name((enum ttd_action)i));
        info_text_put_column(output, 16, stats->actions[i]);
        out_char(output, '\n');
    }
    if (stats->failed || stats->unfinished) {
        info_text_label(report, "  Unsuccessful");
        say(output, grouped(stats->failed), " failed, ", grouped(stats->unfinished),
            " never returned\n");
    }
    info_text_label(report, "Lost events");
    if (!heap_losses_are_exact(&stats->outcome.losses))
        out_text(output, "at least ");
    say(output, grouped(stats->outcome.losses.events), "\n");
}

static void text_info_contents(struct report *report, const struct heap_trace_stats *stats)
{
    struct text_output *output = report->output;
    info_text_label(report, "Snapshots");
    out_grouped(output, stats->kinds[TTD_KIND_SNAPSHOTS].records);
    if (heap_trace_stats_references(stats))
        say(output, ", with ", counted(heap_trace_stats_references(stats), "reference"));
    out_char(output, '\n');
    info_text_label(report, "Contents");
    if (stats->kinds[TTD_KIND_PAGES].chunks) {
        say(output, bytes(info_memory_bytes(stats)),
            " of the program's memory ('ttdanalyze redact' removes them)\n");
    } else {
        out_text(output, "none: the trace has nothing of what the program's memory held\n");
    }
}

static void text_losses(struct report *report, const struct heap_losses *losses)
{
    struct text_output *output = report->output;
    for (size_t i = 0; i < losses->kept_count; i++) {
        const struct ttd_loss *loss = &losses->kept[i];
        out_text(output, "  ");
        if (loss->count == TTD_UNKNOWN)
            out_text(output, "unknown");
        else
            out_grouped(output, loss->count);
        say(output, tab(16), loss->last_good, " to ", loss->first_good, ": ",
            heap_loss_text(loss->reason), "\n");
    }
}

static void text_threads(struct report *report, const struct heap_trace_stats *stats)
{
    struct text_output *output = report->output;
    say(output, BOLD, "\nThread  OS id       Events      Alloc      Free       ReAlloc    Name\n",
        PLAIN);
    for (size_t i = 0; i < stats->thread_count; i++) {
        const struct heap_trace_stats_thread *thread = &stats->threads[i];
        const struct definition_thread *definition =
            definitions_thread(report->definitions, thread->id);
        say(output, number(thread->id), tab(8));
        if (definition)
            out_unsigned(output, definition->os_id);
        else
            out_char(output, '?');
        info_text_put_column(output, 20, thread->events);
        info_text_put_column(output, 32, thread->actions[TTD_ACTION_ALLOC]);
        info_text_put_column(output, 43, thread->actions[TTD_ACTION_FREE]);
        info_text_put_column(output, 54, thread->actions[TTD_ACTION_REALLOC]);
        out_tab(output, 65);
        if (definition)
            escape_text(output, definitions_text(report->definitions, definition->name));
        out_char(output, '\n');
    }
}

static void text_chunks(struct report *report, const struct heap_trace_stats *stats)
{
    struct text_output *output = report->output;
    say(output, BOLD,
        "\nChunks             Number    Items         Stored        Raw           Ratio\n", PLAIN);
    for (unsigned kind = 0; kind <= HEAP_TRACE_STATS_KINDS; kind++) {
        const struct heap_trace_stats_chunks *chunks =
            kind < HEAP_TRACE_STATS_KINDS ? &stats->kinds[kind] : &stats->all;
        if (!chunks->chunks)
            continue;
        out_text(output, kind == HEAP_TRACE_STATS_KINDS ? "all"
                         : kind                         ? ttd_kind_name(kind)
                                                        : "other");
        info_text_put_column(output, 19, chunks->chunks);
        info_text_put_column(output, 29, chunks->records);
        info_text_put_column(output, 43, chunks->stored_bytes);
        info_text_put_column(output, 57, chunks->raw_bytes);
        out_tab(output, 71);
        if (chunks->stored_bytes)
            out_format(output, "%.2f", (double)chunks->raw_bytes / (double)chunks->stored_bytes);
        out_char(output, '\n');
    }
}

static void text_modules(struct report *report)
{
    struct text_output *output = report->output;
    const struct idtable *modules = &report->definitions->modules;
    if (idtable_count(modules))
        say(output, BOLD, "\nModules\n", PLAIN);
    for (size_t run = 0; run < modules->run_count; run++) {
        const struct definition_module *records = modules->runs[run].records;
        for (size_t i = 0; i < modules->runs[run].count; i++) {
            say(output, hex(records[i].begin), "-", hex(records[i].end), " ",
                definitions_text(report->definitions, records[i].path), " build-id ");
            for (uint32_t k = 0; k < records[i].build_id_size; k++)
                out_format(output, "%02x", records[i].build_id[k]);
            say(output, records[i].build_id_size ? " loaded " : "unknown, loaded ",
                records[i].loaded);
            if (ttd_position_is_valid(records[i].unloaded))
                say(output, " unloaded ", records[i].unloaded);
            out_char(output, '\n');
        }
    }
}

void text_info(struct report *report, const struct report_info *data)
{
    text_origin(report, data);
    text_end(report, data);
    text_fatal_signal(report, data->stats);
    for (size_t i = 0; i < data->metadata_count; i++)
        say(report->output, "  ", data->metadata[i].key, tab(16), data->metadata[i].value, "\n");
    text_info_counts(report, data);
    text_losses(report, &data->stats->outcome.losses);
    text_info_contents(report, data->stats);
    text_threads(report, data->stats);
    info_text_clients(report->output, &data->stats->clients);
    text_chunks(report, data->stats);
    text_modules(report);
    report_certainty_text(report);
}
