/* SPDX-License-Identifier: MIT */
/* The table of events. There may be billions: they are read as the query asks for them, and a range
 * of numbers or positions reads its chunks only. */
#include <stdlib.h>
#include <string.h>

#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/sidecar.h"
#include "query/event_filter.h"
#include "query/tables.h"
#include "report/trace/trace_reports.h"
#include "travel/heap_cursor.h"

#define EVENTS_KINDS (TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES))

#define EVENT_TABLE_COLUMN(id, name, type) {name, QUERY_##type},
const struct query_column query_events_columns[] = {
    EVENT_COLUMNS(EVENT_TABLE_COLUMN){NULL, QUERY_INTEGER}};
#undef EVENT_TABLE_COLUMN

struct event_table_cursor {
    sqlite3_vtab_cursor base;
    struct query *query;
    /** A session of its own, whose reader no other cursor moves. */
    struct session session;
    /** Decodes the next batches while SQLite works on the rows of this one. */
    struct heap_prefetcher ahead;
    struct ttd_batch batch;
    /** Events of the batch, and the number of the present one. */
    size_t rows;
    size_t next;
    struct event_filter filter;
    /** Losses that the trace has; the outcome also has those by damage that the reading meets. */
    struct heap_losses recorded;
    struct heap_outcome outcome;
    /** The filter has neither a beginning nor an end, nor conditions: all events are rows. */
    bool takes_all;
    /** Besides, no column is asked for: chunks are checked, and their events counted. */
    bool is_counting;
    bool has_times;
    bool is_over;
    int status;
};

/* Finds the position of the present event, which was counted and not decoded. */
static struct ttd_position event_table_find_position(struct event_table_cursor *cursor)
{
    struct ttd_reader *reader = cursor->session.source.reader;
    const struct ttd_chunk *chunk = &cursor->batch.chunk;
    struct ttd_batch batch = {.count = 0};
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    if (status == TTD_OK)
        status = ttd_reader_seek_event(reader, chunk->first_record, NULL);
    size_t index = cursor->next;
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, NULL)) == TTD_OK) {
        if (batch.kind != TTD_KIND_EVENTS || batch.chunk.number != chunk->number)
            continue;
        if (index < batch.count)
            return ttd_event_position(&batch.u.events[index]);
        index -= batch.count;
    }
    return chunk->last_position;
}

/* Takes over the facts about certainty from the cursor, once. */
static void event_table_judge(struct event_table_cursor *cursor)
{
    struct session *session = &cursor->session;
    if (cursor->is_over)
        return;
    cursor->is_over = true;
    heap_prefetcher_forget(&cursor->ahead);
    if (cursor->is_counting && cursor->next < cursor->rows)
        cursor->outcome.position = event_table_find_position(cursor);
    else if (cursor->takes_all && cursor->next < cursor->rows)
        cursor->outcome.position = ttd_event_position(&cursor->batch.u.events[cursor->next]);
    source_take_intact(&session->source, &cursor->query->session->source);
    session->source.is_partly_read =
        event_filter_is_range(&cursor->filter) && !session->source.is_known_intact &&
        !ttd_reader_is_intact(session->source.reader) && sidecar_pays(session);
    session_outcome(session, &cursor->outcome,
                    cursor->outcome.reached_end ? ttd_position_max() : cursor->outcome.position);
    query_add_reasons(cursor->query, &session->report.certainty);
    source_take_intact(&cursor->query->session->source, &session->source);
}

static enum ttd_status event_table_see_losses(void *context, const struct ttd_batch *batch)
{
    struct event_table_cursor *cursor = context;
    if (batch->kind == TTD_KIND_LOSSES && !batch->synthetic)
        heap_losses_add(&cursor->recorded, batch);
    return TTD_OK;
}

static int event_table_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    struct event_table_cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    cursor->query = query_of_table(table);
    struct session *session = &cursor->session;
    int status = query_open_session(cursor->query, session, &command_events);
    if (status != STATUS_OK) {
        free(cursor);
        return query_failed(query_of_table(table), status);
    }
    heap_prefetcher_init(&cursor->ahead, session->source.reader);
    struct heap_batch_hook losses = {.context = cursor, .batch = event_table_see_losses};
    status = source_define(&session->source, TTD_KIND_BIT(TTD_KIND_HEAPS), &session->definitions);
    if (status == STATUS_OK)
        status = source_read(&session->source, 0, &losses);
    cursor->has_times = source_has_times(&session->source);
    cursor->is_over = true;
    *result = &cursor->base;
    if (status == STATUS_OK)
        return SQLITE_OK;
    heap_prefetcher_free(&cursor->ahead);
    session_close(session, status, false);
    free(cursor);
    return query_failed(query_of_table(table), status);
}

static int event_table_close(sqlite3_vtab_cursor *base)
{
    struct event_table_cursor *cursor = (struct event_table_cursor *)base;
    event_table_judge(cursor);
    event_filter_free(&cursor->filter);
    heap_prefetcher_free(&cursor->ahead);
    session_close(&cursor->session, STATUS_OK, false);
    free(cursor);
    return SQLITE_OK;
}

static enum ttd_status event_table_seek(struct event_table_cursor *cursor, struct ttd_error *error)
{
    struct ttd_reader *reader = cursor->session.source.reader;
    heap_prefetcher_forget(&cursor->ahead);
    bool has_position = ttd_position_compare(cursor->filter.from, ttd_position_min()) > 0;
    if (cursor->is_counting)
        return ttd_reader_rewind_unread(reader, EVENTS_KINDS);
    if (!cursor->filter.first && !has_position)
        return ttd_reader_rewind_checked(reader, EVENTS_KINDS);
    enum ttd_status status = ttd_reader_rewind(reader, EVENTS_KINDS);
    if (status == TTD_OK)
        status = cursor->filter.first ? ttd_reader_seek_event(reader, cursor->filter.first, error)
                                      : ttd_reader_seek(reader, cursor->filter.from, error);
    return status;
}

/* Reads the next batch of events. Returns a status of SQLite. */
static int event_table_read(struct event_table_cursor *cursor)
{
    struct source *source = &cursor->session.source;
    enum ttd_status status = TTD_OK;
    if (cursor->rows)
        cursor->outcome.position =
            cursor->is_counting ? cursor->batch.chunk.last_position
                                : ttd_event_position(&cursor->batch.u.events[cursor->rows - 1]);
    cursor->next = cursor->rows = 0;
    do {
        status = heap_prefetcher_next(&cursor->ahead, &cursor->batch, &cursor->outcome.error);
        if (status == TTD_OK && cursor->batch.kind == TTD_KIND_LOSSES && cursor->batch.synthetic) {
            source_damaged(source, &cursor->batch.error);
            heap_losses_add(&cursor->outcome.losses, &cursor->batch);
        }
    } while (status == TTD_OK && cursor->batch.kind != TTD_KIND_EVENTS);
    if (status == TTD_OK) {
        cursor->rows = cursor->is_counting ? cursor->batch.chunk.record_count : cursor->batch.count;
        cursor->query->work.events += cursor->rows;
        return interrupt_cause() == INTERRUPT_NONE ? SQLITE_OK : SQLITE_INTERRUPT;
    }
    if (!heap_is_over(status))
        return query_failed(cursor->query, source_fail(source, status, &cursor->outcome.error));
    cursor->outcome.reached_end = true;
    cursor->outcome.truncated = status != TTD_END;
    event_table_judge(cursor);
    return SQLITE_OK;
}

static const struct ttd_event *event_table_current(const struct event_table_cursor *cursor)
{
    return &cursor->batch.u.events[cursor->next];
}

/* Goes on to the next event that passes the filter, from the present one inclusive. */
static int event_table_settle(struct event_table_cursor *cursor)
{
    const struct event_filter *filter = &cursor->filter;
    bool has_values = event_filter_has_values(filter);
    while (!cursor->is_over) {
        if (cursor->next == cursor->rows) {
            int status = event_table_read(cursor);
            if (status != SQLITE_OK)
                return status;
            continue;
        }
        if (cursor->is_counting)
            break;
        const struct ttd_event *event = event_table_current(cursor);
        struct ttd_position position = ttd_event_position(event);
        if (event->number >= filter->end || ttd_position_compare(position, filter->to) > 0) {
            event_table_judge(cursor);
            break;
        }
        cursor->outcome.position = position;
        if (event->number >= filter->first && ttd_position_compare(position, filter->from) >= 0 &&
            (!has_values || event_filter_passes(filter, event)))
            break;
        cursor->next++;
    }
    cursor->query->work.rows += !cursor->is_over;
    return SQLITE_OK;
}

static int event_table_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int count,
                              sqlite3_value **values)
{
    struct event_table_cursor *cursor = (struct event_table_cursor *)base;
    struct ttd_error error = {.what = NULL};
    int result = event_filter_set(&cursor->filter, plan, count, values);
    if (result != SQLITE_OK)
        return result;
    cursor->outcome.losses = cursor->recorded;
    cursor->takes_all = !count;
    cursor->is_counting = number == EVENT_PLAN_COUNTS;
    cursor->outcome.reached_end = false;
    cursor->is_over = false;
    cursor->next = cursor->rows = 0;
    cursor->query->work.readings++;
    enum ttd_status status = event_table_seek(cursor, &error);
    if (status != TTD_OK)
        return query_failed(cursor->query, source_fail(&cursor->session.source, status, &error));
    return event_table_settle(cursor);
}

static int event_table_next(sqlite3_vtab_cursor *base)
{
    struct event_table_cursor *cursor = (struct event_table_cursor *)base;
    cursor->next++;
    if (cursor->takes_all && cursor->next < cursor->rows) {
        cursor->query->work.rows++;
        return SQLITE_OK;
    }
    return event_table_settle(cursor);
}

static int event_table_eof(sqlite3_vtab_cursor *base)
{
    return ((const struct event_table_cursor *)base)->is_over;
}

static void event_table_answer_position(sqlite3_context *answer, struct ttd_position position)
{
    char text[QUERY_POSITION_SIZE];
    if (!ttd_position_is_valid(position))
        return;
    query_position_text(text, position);
    sqlite3_result_text(answer, text, -1, SQLITE_TRANSIENT);
}

static void event_table_answer_number(sqlite3_context *answer, bool has, uint64_t value)
{
    if (has && value > INT64_MAX)
        sqlite3_result_double(answer, (double)value);
    else if (has)
        sqlite3_result_int64(answer, (sqlite3_int64)value);
}

static void event_table_answer_bits(sqlite3_context *answer, bool has, uint64_t value)
{
    if (has)
        sqlite3_result_int64(answer, (sqlite3_int64)value);
}

/* Answers a column that is a position or a name. False if it is none of them. */
static bool event_table_answer_text(sqlite3_context *answer, const struct ttd_event *event,
                                    enum event_column column)
{
    switch (column) {
    case EVENTS_POSITION:
        event_table_answer_position(answer, ttd_event_position(event));
        return true;
    case EVENTS_ACTION:
        sqlite3_result_text(answer, ttd_action_name((enum ttd_action)event->action), -1,
                            SQLITE_STATIC);
        return true;
    case EVENTS_API:
        sqlite3_result_text(answer, ttd_api_name(event->api), -1, SQLITE_STATIC);
        return true;
    case EVENTS_TIME_START:
        event_table_answer_position(answer, event->time_start);
        return true;
    case EVENTS_TIME_END:
        event_table_answer_position(answer, event->time_end);
        return true;
    default:
        return false;
    }
}

/* The same for addresses, handles and flags. */
static bool event_table_answer_address(sqlite3_context *answer, struct event_table_cursor *cursor,
                                       enum event_column column)
{
    const struct ttd_event *event = event_table_current(cursor);
    switch (column) {
    case EVENTS_HEAP:
        event_table_answer_bits(answer, true,
                                definitions_heap_handle(&cursor->session.definitions, event->heap));
        return true;
    case EVENTS_ADDRESS:
        event_table_answer_bits(answer, event_has_address(event), event->address);
        return true;
    case EVENTS_PREVIOUS_ADDRESS:
        event_table_answer_bits(answer, event_has_previous_address(event), event->previous_address);
        return true;
    case EVENTS_BASE_ADDRESS:
        event_table_answer_bits(answer, event_has_base_address(event), event->base_address);
        return true;
    case EVENTS_FLAGS:
        event_table_answer_bits(answer, true, event->flags);
        return true;
    default:
        return false;
    }
}

static void event_table_answer_count(sqlite3_context *answer,
                                     const struct event_table_cursor *cursor,
                                     enum event_column column)
{
    const struct ttd_event *event = event_table_current(cursor);
    if (column == EVENTS_NUMBER)
        event_table_answer_number(answer, true, event->number);
    else if (column == EVENTS_HEAP_ID)
        event_table_answer_number(answer, true, event->heap);
    else if (column == EVENTS_SIZE)
        event_table_answer_number(answer, event_has_size(event), event->size);
    else if (column == EVENTS_RESULT)
        event_table_answer_number(answer, true, event->result);
    else if (column == EVENTS_WALL_TIME)
        event_table_answer_number(answer, cursor->has_times && event->wall_time != TTD_UNKNOWN,
                                  event->wall_time);
    else if (column == EVENTS_THREAD)
        event_table_answer_number(answer, true, event->thread);
    else if (column == EVENTS_STACK_ID)
        event_table_answer_number(answer, true, event->stack);
}

static int event_table_column(sqlite3_vtab_cursor *base, sqlite3_context *answer, int number)
{
    struct event_table_cursor *cursor = (struct event_table_cursor *)base;
    enum event_column column = (enum event_column)number;
    if (!event_table_answer_text(answer, event_table_current(cursor), column) &&
        !event_table_answer_address(answer, cursor, column))
        event_table_answer_count(answer, cursor, column);
    return SQLITE_OK;
}

static int event_table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    const struct event_table_cursor *cursor = (const struct event_table_cursor *)base;
    *row = (sqlite3_int64)(cursor->is_counting ? cursor->batch.chunk.first_record + cursor->next
                                               : event_table_current(cursor)->number);
    return SQLITE_OK;
}

const sqlite3_module query_events_functions = {.xCreate = query_table_connect,
                                               .xConnect = query_table_connect,
                                               .xBestIndex = event_filter_plan,
                                               .xDisconnect = query_table_disconnect,
                                               .xDestroy = query_table_disconnect,
                                               .xOpen = event_table_open,
                                               .xClose = event_table_close,
                                               .xFilter = event_table_filter,
                                               .xNext = event_table_next,
                                               .xEof = event_table_eof,
                                               .xColumn = event_table_column,
                                               .xRowid = event_table_rowid};
