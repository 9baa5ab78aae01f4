/* SPDX-License-Identifier: MIT */
/* Marks as a table of text, as JSON lines and as CSV. */
#include "report/trace/trace_reports.h"
#include "report/writers/escape.h"

/* Column at which each property begins; a wider value pushes the rest of its row to the right. */
enum {
    COLUMN_TIME = 18,
    COLUMN_THREAD = 32,
    COLUMN_KIND = 40,
    COLUMN_CLIENT = 51,
    COLUMN_DATA = 89
};

/* Bytes of data that text shows, if they are no text. */
enum { BYTES_MAX = 32, TEXT_MAX = 200 };

/* Whether data are UTF-8 without control characters, other than tabs and new lines. */
static bool is_text(struct ttd_string data)
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

static void mark_write_bytes(struct text_output *output, struct ttd_string data, size_t limit)
{
    for (size_t i = 0; i < data.size && i < limit; i++)
        out_format(output, "%02x", (unsigned char)data.data[i]);
}

/* Data of a client are bytes of any form. They are written as text only if they are text, because
 * other bytes would do as they like with a terminal. */
static void text_data(struct text_output *output, struct ttd_string data)
{
    bool shows_text = is_text(data);
    size_t limit = shows_text ? TEXT_MAX : BYTES_MAX;
    if (!data.size)
        return;
    out_tab(output, COLUMN_DATA);
    if (shows_text) {
        struct ttd_string part = {data.data, data.size < limit ? data.size : limit};
        out_char(output, '"');
        escape_text(output, part);
        out_char(output, '"');
    } else {
        out_text(output, "0x");
        mark_write_bytes(output, data, limit);
    }
    if (data.size > limit) {
        out_text(output, "... ");
        report_count(output, data.size, "byte");
    }
}

static void text_marks_begin(struct report *report)
{
    static const struct {
        size_t column;
        const char *name;
    } columns[] = {{COLUMN_TIME, "Time"},
                   {COLUMN_THREAD, "Thread"},
                   {COLUMN_KIND, "Kind"},
                   {COLUMN_CLIENT, "Client"},
                   {COLUMN_DATA, "Data"}};
    out_bold(report->output);
    out_text(report->output, "Position");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        out_tab(report->output, columns[i].column);
        out_text(report->output, columns[i].name);
    }
    out_plain(report->output);
    out_char(report->output, '\n');
}

static void text_mark(struct report *report, bool has_times, const struct heap_mark *mark)
{
    char guid[GUID_TEXT];
    struct text_output *output = report->output;
    out_position(output, mark->event->position);
    if (has_times) {
        out_tab(output, COLUMN_TIME);
        out_format(output, "+%.6f s", (double)mark->event->wall_time / 1e9);
    }
    out_tab(output, COLUMN_THREAD);
    if (mark->event->thread)
        out_unsigned(output, mark->event->thread);
    else
        out_text(output, "all");
    out_tab(output, COLUMN_KIND);
    out_text(output, heap_mark_kind_name(mark->kind));
    if (guid_is_given(mark->client)) {
        out_tab(output, COLUMN_CLIENT);
        out_text(output, guid_text(mark->client, guid));
    }
    text_data(output, mark->data);
    if (mark->activity) {
        out_text(output, "  activity ");
        out_unsigned(output, mark->activity);
    }
    out_char(output, '\n');
}

static void row_mark(struct row *row, bool has_times, const struct heap_mark *mark)
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
    if (is_text(mark->data))
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
        text_marks_begin(report);
    if (report->form != REPORT_CSV)
        return;
    row_open_line(&row, report, true);
    row_mark(&row, false, &(struct heap_mark){.event = &no_event});
    row_close_line(&row);
}

void report_mark(struct report *report, bool has_times, const struct heap_mark *mark)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_mark(report, has_times, mark);
        return;
    }
    row_open_line(&row, report, false);
    row_mark(&row, has_times, mark);
    row_close_line(&row);
}
