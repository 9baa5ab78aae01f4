/* SPDX-License-Identifier: MIT */
/* The reports of `events`, `marks` and `snapshots`. */
#include <stdbool.h>

#include <ttdtrace/model.h>

#include "report/trace/trace_reports.h"
#include "report/writers/out.h"

/* The report of `events`: a grid of text, JSON lines, CSV. */

/** Whether the event has the sizes that a heap reserves and commits. */
static bool event_has_limits(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_CREATE;
}

static bool event_has_read_only(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_PROTECT;
}

/* Events as a grid of text: the columns of the properties that WinDbg shows for heap calls. */

/* Column where each property begins; a wider value pushes the rest of its row to the right. */
enum {
    COLUMN_ACTION = 12,
    COLUMN_API = 21,
    COLUMN_HEAP = 40,
    COLUMN_ADDRESS = 47,
    COLUMN_PREVIOUS = 63,
    COLUMN_SIZE = 80,
    COLUMN_BASE = 91,
    COLUMN_FLAGS = 107,
    COLUMN_RESULT = 114,
    COLUMN_RESERVE = 122,
    COLUMN_COMMIT = 135,
    COLUMN_READ_ONLY = 147,
    COLUMN_START = 161,
    COLUMN_END = 178,
    COLUMN_THREAD = 195,
    COLUMN_STACK = 203,
    COLUMN_PARAMETERS = 211
};

static void text_events_begin(struct report *report, const struct report_events *options)
{
    static const struct {
        int column;
        const char *name;
    } columns[] = {{COLUMN_ACTION, "Action"},
                   {COLUMN_API, "Api"},
                   {COLUMN_HEAP, "Heap"},
                   {COLUMN_ADDRESS, "Address"},
                   {COLUMN_PREVIOUS, "PreviousAddress"},
                   {COLUMN_SIZE, "Size"},
                   {COLUMN_BASE, "BaseAddress"},
                   {COLUMN_FLAGS, "Flags"},
                   {COLUMN_RESULT, "Result"},
                   {COLUMN_RESERVE, "ReserveSize"},
                   {COLUMN_COMMIT, "CommitSize"},
                   {COLUMN_READ_ONLY, "MakeReadOnly"},
                   {COLUMN_START, "TimeStart"},
                   {COLUMN_END, "TimeEnd"},
                   {COLUMN_THREAD, "Thread"},
                   {COLUMN_STACK, "Stack"}};
    out_bold(report->output);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        say(report->output, tab((size_t)columns[i].column), columns[i].name);
    if (options->shows_parameters)
        say(report->output, tab(COLUMN_PARAMETERS), "Parameters");
    say(report->output, PLAIN, "\n");
}

static void events_cell(struct text_output *output, size_t column, bool has, uint64_t value)
{
    if (!has)
        return;
    say(output, tab(column), hex(value));
}

/* "{}" is a call without parameters, "{?}" one whose parameters were not recorded. */
static void events_text_parameters(struct text_output *output, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    say(output, tab(COLUMN_PARAMETERS), "{");
    if (!count && !event->parameters)
        out_char(output, '?');
    for (size_t i = 0; i < count; i++) {
        if (i)
            out_text(output, ", ");
        out_hex(output, parameters[i]);
    }
    out_char(output, '}');
}

static void text_event(struct report *report, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    struct text_output *output = report->output;
    say(output, "[", hex(event->number), "]", tab(COLUMN_ACTION),
        ttd_action_name((enum ttd_action)event->action), tab(COLUMN_API), ttd_api_name(event->api));
    events_cell(output, COLUMN_HEAP, true,
                definitions_heap_handle(report->definitions, event->heap));
    events_cell(output, COLUMN_ADDRESS, event_has_address(event), event->address);
    events_cell(output, COLUMN_PREVIOUS, event_has_previous_address(event),
                event->previous_address);
    events_cell(output, COLUMN_SIZE, event_has_size(event), event->size);
    events_cell(output, COLUMN_BASE, event_has_base_address(event), event->base_address);
    events_cell(output, COLUMN_FLAGS, true, event->flags);
    events_cell(output, COLUMN_RESULT, true, event->result);
    events_cell(output, COLUMN_RESERVE, event_has_limits(event), event->reserve_size);
    events_cell(output, COLUMN_COMMIT, event_has_limits(event), event->commit_size);
    events_cell(output, COLUMN_READ_ONLY, event_has_read_only(event), event->make_read_only);
    say(output, tab(COLUMN_START), event->time_start, tab(COLUMN_END));
    if (ttd_event_returned(event))
        out_position(output, event->time_end);
    else
        out_text(output, "never");
    events_cell(output, COLUMN_THREAD, true, event->thread);
    say(output, tab(COLUMN_STACK), "#", number(event->stack));
    if (data->options->shows_parameters)
        events_text_parameters(output, event);
    out_char(output, '\n');
    if (data->options->shows_stacks)
        report_stack_text(report, event->stack);
}

/* "{}" is a call without parameters: an empty list; the list is null if they were not recorded. In
 * CSV one field has all of them, since their number differs from call to call. */
static void events_row_parameters(struct row *row, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    if (!row->is_json || (!count && !event->parameters)) {
        row_null(row, "parameters");
        for (size_t i = 0; i < count; i++) {
            if (i)
                out_char(row->output, ';');
            out_hex(row->output, parameters[i]);
        }
        return;
    }
    row_begin_array(row, "parameters");
    for (size_t i = 0; i < count; i++)
        row_hex(row, NULL, parameters[i]);
    row_end_array(row);
}

static void row_event(struct row *row, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    bool has_limits = event_has_limits(event);
    row_unsigned(row, "number", event->number);
    row_text(row, "action", ttd_action_name((enum ttd_action)event->action));
    row_text(row, "api", ttd_api_name(event->api));
    row_hex(row, "heap", definitions_heap_handle(row->report->definitions, event->heap));
    row_unsigned(row, "heap_id", event->heap);
    if (row_has(row, "address", event_has_address(event)))
        row_hex(row, "address", event->address);
    if (row_has(row, "previous_address", event_has_previous_address(event)))
        row_hex(row, "previous_address", event->previous_address);
    if (row_has(row, "base_address", event_has_base_address(event)))
        row_hex(row, "base_address", event->base_address);
    if (row_has(row, "size", event_has_size(event)))
        row_unsigned(row, "size", event->size);
    row_hex(row, "flags", event->flags);
    row_unsigned(row, "result", event->result);
    if (row_has(row, "reserve_size", has_limits))
        row_unsigned(row, "reserve_size", event->reserve_size);
    if (row_has(row, "commit_size", has_limits))
        row_unsigned(row, "commit_size", event->commit_size);
    if (row_has(row, "make_read_only", event_has_read_only(event)))
        row_unsigned(row, "make_read_only", event->make_read_only);
    row_position(row, "time_start", event->time_start);
    row_position(row, "time_end", event->time_end);
    row_count(row, "wall_time_ns", data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    row_unsigned(row, "thread", event->thread);
    row_unsigned(row, "stack", event->stack);
    row->is_certain = data->is_certain;
    if (row->is_json)
        row_bool(row, "certain", data->is_certain);
    if (data->options->shows_parameters)
        events_row_parameters(row, event);
    if (data->options->shows_stacks)
        row_stack(row, "frames", event->stack);
}

void report_events_begin(struct report *report, const struct report_events *options)
{
    static const struct ttd_event no_event;
    struct row row;
    if (report->form == REPORT_TEXT)
        text_events_begin(report, options);
    if (report->form != REPORT_CSV)
        return;
    row_open_line(&row, report, true);
    row_event(&row, &(struct report_event){&no_event, options, false});
    row_close_line(&row);
}

void report_event(struct report *report, const struct report_event *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_event(report, data);
        return;
    }
    row_open_line(&row, report, false);
    row_event(&row, data);
    row_close_line(&row);
}

/* Marks as a table of text, as JSON lines and as CSV. */

/* Column where each property begins; a wider value pushes the rest of its row to the right. */
enum {
    MARK_COLUMN_TIME = 18,
    MARK_COLUMN_THREAD = 32,
    MARK_COLUMN_KIND = 40,
    MARK_COLUMN_DATA = 51
};

/* Bytes of data that text shows, if they are no text. */
enum { BYTES_MAX = 32, TEXT_MAX = 200 };

/* Whether data are UTF-8 without control characters, other than tabs and new lines. */
static bool events_is_text(struct ttd_string data)
{
    const unsigned char *text = (const unsigned char *)data.data;
    size_t more = 0;
    for (size_t i = 0; i < data.size; i++) {
        unsigned char c = text[i];
        if (more) {
            if ((c & 0xc0) != 0x80)
                return false;
            more--;
        } else if (c >= 0xc2 && c < 0xf5) {
            more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        } else if (c >= 0x7f || (c < 0x20 && c != '\t' && c != '\n')) {
            return false;
        }
    }
    return !more;
}

/* Data of a client are bytes of any form. They are written as text only if they are text, because
 * other bytes would do as they like with a terminal. */
static void events_text_data(struct text_output *output, struct ttd_string data)
{
    bool shows_text = events_is_text(data);
    size_t limit = shows_text ? TEXT_MAX : BYTES_MAX;
    if (!data.size)
        return;
    if (shows_text) {
        struct ttd_string part = {data.data, data.size < limit ? data.size : limit};
        say(output, "\"", part, "\"");
    } else {
        out_text(output, "0x");
        for (size_t i = 0; i < data.size && i < limit; i++)
            out_format(output, "%02x", (unsigned char)data.data[i]);
    }
    if (data.size > limit)
        say(output, "... ", bytes(data.size));
}

static void events_text_marks_begin(struct report *report)
{
    static const struct {
        size_t column;
        const char *name;
    } columns[] = {{MARK_COLUMN_TIME, "Time"},
                   {MARK_COLUMN_THREAD, "Thread"},
                   {MARK_COLUMN_KIND, "Kind"},
                   {MARK_COLUMN_DATA, "Data"}};
    say(report->output, BOLD, "Position");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        say(report->output, tab(columns[i].column), columns[i].name);
    say(report->output, PLAIN, "\n");
}

static void events_text_mark(struct report *report, bool has_times, const struct heap_mark *mark)
{
    char guid[GUID_TEXT];
    struct text_output *output = report->output;
    out_position(output, mark->event->position);
    if (has_times) {
        char time[TIME_TEXT];
        time_text(time, mark->event->wall_time);
        say(output, tab(MARK_COLUMN_TIME), time);
    }
    out_tab(output, MARK_COLUMN_THREAD);
    if (mark->event->thread)
        out_unsigned(output, mark->event->thread);
    else
        out_text(output, "all");
    say(output, tab(MARK_COLUMN_KIND), heap_mark_kind_name(mark->kind));
    out_tab(output, MARK_COLUMN_DATA);
    events_text_data(output, mark->data);
    if (mark->activity)
        say(output, mark->data.size ? "  " : "", "activity ", number(mark->activity));
    if (guid_is_given(mark->client))
        say(output, mark->data.size || mark->activity ? "  " : "", "client ",
            guid_text(mark->client, guid));
    out_char(output, '\n');
}

static void events_row_mark(struct row *row, bool has_times, const struct heap_mark *mark)
{
    const struct ttd_user_event *event = mark->event;
    bool is_of_recording = mark->kind >= HEAP_MARK_STARTED;
    char guid[GUID_TEXT];
    row_position(row, "position", event->position);
    if (row->is_json)
        row_bool(row, "certain", row->is_certain);
    row_count(row, "wall_time_ns", has_times ? event->wall_time : TTD_UNKNOWN);
    row_unsigned(row, "thread", event->thread);
    row_text(row, "kind", heap_mark_kind_name(mark->kind));
    row_text(row, "client", guid_is_given(mark->client) ? guid_text(mark->client, guid) : NULL);
    row_bool(row, "keyframe", event->flags & TTD_USER_EVENT_KEYFRAME);
    row_count(row, "activity", is_of_recording ? mark->activity : TTD_UNKNOWN);
    row_count(row, "throttle", is_of_recording ? mark->maximum : TTD_UNKNOWN);
    if (events_is_text(mark->data))
        row_string(row, "text", mark->data);
    else
        row_null(row, "text");
    row_bytes(row, "data", (const uint8_t *)mark->data.data, mark->data.size);
}

void report_marks_begin(struct report *report)
{
    static const struct ttd_user_event no_event;
    struct row row;
    if (report->form == REPORT_TEXT)
        events_text_marks_begin(report);
    if (report->form != REPORT_CSV)
        return;
    row_open_line(&row, report, true);
    events_row_mark(&row, false, &(struct heap_mark){.event = &no_event});
    row_close_line(&row);
}

void report_mark(struct report *report, bool has_times, const struct heap_mark *mark)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        events_text_mark(report, has_times, mark);
        return;
    }
    row_open_line(&row, report, false);
    events_row_mark(&row, has_times, mark);
    row_close_line(&row);
}

/* The report of `snapshots`. */

/** Names of the contents of a snapshot, by the bits of ttd_snapshot_contents. */
static const char *const contents_names[] = {"blocks", "references", "memory"};

static void events_text_snapshot_contents(struct text_output *output,
                                          const struct heap_listed_snapshot *listed)
{
    const struct heap_snapshot_parts *parts = &listed->parts;
    bool is_first = true;
    for (unsigned bit = 0; bit < 3; bit++) {
        if (!(listed->snapshot.contents & 1u << bit))
            continue;
        out_text(output, is_first ? "  " : ", ");
        is_first = false;
        out_text(output, contents_names[bit]);
        if (1u << bit == TTD_SNAPSHOT_REFERENCES)
            say(output, " (", grouped(parts->references), " in ", counted(parts->regions, "region"),
                ")");
        if (1u << bit == TTD_SNAPSHOT_MEMORY)
            say(output, " (", bytes(parts->mapped_bytes), ", ", grouped(parts->page_bytes),
                " of them stored)");
    }
}

static void events_text_listed_snapshot(struct report *report,
                                        const struct heap_listed_snapshot *listed)
{
    static const char *const reasons[] = {"",
                                          ", asked for from outside",
                                          ", taken at intervals",
                                          ", asked for by the program",
                                          ", at the end of the program",
                                          ", when the program died of a signal"};
    const struct ttd_snapshot *snapshot = &listed->snapshot;
    struct text_output *output = report->output;
    out_char(output, '\n');
    report_snapshot_text(report, snapshot);
    if (snapshot->reason < sizeof reasons / sizeof reasons[0])
        out_text(output, reasons[snapshot->reason]);
    if (snapshot->thread)
        out_format(output, " (thread %u)", snapshot->thread);
    out_char(output, '\n');
    events_text_snapshot_contents(output, listed);
    say(output, "\n  ", bytes(listed->parts.stored_bytes), " in the trace; taken after ",
        lasting(snapshot->wall_time), "; the program was held for ", lasting(snapshot->duration),
        snapshot->flags & TTD_SNAPSHOT_STOPPED ? ", all threads stopped" : "",
        snapshot->flags & TTD_SNAPSHOT_COPIED ? ", and copied\n" : "\n");
}

static void events_text_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    say(report->output, BOLD, counted(list->count, "snapshot"), PLAIN);
    if (list->cut_short)
        say(report->output, "; ", grouped(list->cut_short), " more cut short, and not used");
    out_char(report->output, '\n');
    report_certainty_text(report);
    for (size_t i = 0; i < list->count; i++)
        events_text_listed_snapshot(report, &list->snapshots[i]);
}

static void events_row_listed_snapshot(struct row *row, const struct heap_listed_snapshot *listed)
{
    const struct ttd_snapshot *snapshot = &listed->snapshot;
    const struct heap_snapshot_parts *parts = &listed->parts;
    row_unsigned(row, "number", snapshot->number);
    row_position(row, "position", snapshot->position);
    if (!row->is_json)
        row_unsigned(row, "wall_time_ns", snapshot->wall_time);
    row_text(row, "reason", report_snapshot_reason(snapshot));
    row_bool(row, "stopped", snapshot->flags & TTD_SNAPSHOT_STOPPED);
    row_bool(row, "complete", !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
    row_unsigned(row, "missing_bytes", snapshot->missing);
    if (row->is_json)
        row_unsigned(row, "wall_time_ns", snapshot->wall_time);
    row_unsigned(row, "held_ns", snapshot->duration);
    row_bool(row, "copied", snapshot->flags & TTD_SNAPSHOT_COPIED);
    if (row->is_json) {
        row_unsigned(row, "thread", snapshot->thread);
        row_begin_array(row, "contents");
        for (unsigned bit = 0; bit < 3; bit++)
            if (snapshot->contents & 1u << bit)
                row_text(row, NULL, contents_names[bit]);
        row_end_array(row);
    } else {
        row_bool(row, "blocks", snapshot->contents & TTD_SNAPSHOT_BLOCKS);
        row_unsigned_if(row, "references", snapshot->contents & TTD_SNAPSHOT_REFERENCES,
                        parts->references);
        row_bool(row, "memory", snapshot->contents & TTD_SNAPSHOT_MEMORY);
    }
    row_unsigned(row, "stored_bytes", parts->stored_bytes);
    if (row->is_json) {
        row_unsigned(row, "regions", parts->regions);
        row_unsigned(row, "references", parts->references);
        row_unsigned(row, "classes", parts->classes);
    }
    row_unsigned(row, "mapped_bytes", parts->mapped_bytes);
    row_unsigned(row, "page_bytes", parts->page_bytes);
}

void report_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        events_text_snapshots(report, list);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_unsigned(&row, "cut_short", list->cut_short);
    ROW_EACH(&row, "snapshots", struct heap_listed_snapshot, listed, list->snapshots, list->count)
    events_row_listed_snapshot(&row, listed);
    row_end_object(&row);
}
