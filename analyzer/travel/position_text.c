/* SPDX-License-Identifier: MIT */
#include "travel/position_text.h"

#include <ctype.h>
#include <string.h>

#include "base/numbers.h"
#include "travel/islands.h"

/* Range of events that is scanned instead of bisected further. */
#define POSITION_SCAN_MAX 65536

/* Prefix of a position that names a mark. */
#define MARK "mark:"

/* Digits behind the decimal point that count: enough for a percentage to be exact. */
#define FRACTION_MAX 1e13

/* Parses a decimal number. Unlike strtod() it has the same decimal point in every locale, and no
 * signs, exponents or infinities. */
static bool position_take_decimal(const char *text, const char **end, double *value)
{
    double digits = 0;
    double scale = 1;
    bool has_digit = false;
    bool has_point = false;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        has_digit = true;
        if (has_point && scale >= FRACTION_MAX)
            continue;
        digits = 10 * digits + (*text - '0');
        scale *= has_point ? 10 : 1;
    }
    *value = digits / scale;
    *end = text;
    return has_digit;
}

static bool position_parse_time(const char *text, uint64_t *time)
{
    static const struct {
        const char *name;
        double nanoseconds;
    } units[] = {{"", 1e9},   {"s", 1e9},    {"ms", 1e6},  {"us", 1e3},
                 {"ns", 1.0}, {"min", 60e9}, {"h", 3600e9}};
    const char *end;
    double value;
    if (!position_take_decimal(text, &end, &value))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double nanoseconds = value * units[i].nanoseconds;
        if (strcmp(end, units[i].name) == 0 && nanoseconds < 1.8e19) {
            *time = (uint64_t)nanoseconds;
            return true;
        }
    }
    return false;
}

static bool position_parse_percent(const char *text, double *percent)
{
    const char *end;
    return position_take_decimal(text, &end, percent) && strcmp(end, "%") == 0 && *percent <= 100;
}

bool position_spec_parse(const char *text, struct position_spec *result)
{
    struct position_spec spec = {.kind = POSITION_SPEC_START};
    if (strcmp(text, "start") == 0)
        spec.kind = POSITION_SPEC_START;
    else if (strcmp(text, "end") == 0)
        spec.kind = POSITION_SPEC_END;
    else if (strncmp(text, MARK, sizeof MARK - 1) == 0 && text[sizeof MARK - 1]) {
        spec.kind = POSITION_SPEC_MARK;
        spec.mark = text + sizeof MARK - 1;
    } else if (*text == '#' && number_parse(text + 1, &spec.event))
        spec.kind = POSITION_SPEC_EVENT;
    else if (*text == '+' && position_parse_time(text + 1, &spec.time))
        spec.kind = POSITION_SPEC_TIME;
    else if (position_parse_percent(text, &spec.percent))
        spec.kind = POSITION_SPEC_PERCENT;
    else if (ttd_position_parse(text, &spec.position))
        spec.kind = POSITION_SPEC_POSITION;
    else
        return false;
    *result = spec;
    return true;
}

/* A search for a position. */
struct position_search {
    const struct heap_trace *trace;
    struct ttd_reader *reader;
    /** NULL if the trace has none. */
    const struct ttd_end *end;
    enum position_purpose purpose;
};

/* Whether the End states how many events were recorded, readable or not. */
static bool position_says_events(const struct position_search *search)
{
    return search->end && search->end->reason != TTD_END_REASON_NOT_RECORDED;
}

/* Counts the events: one more than the number of the last. */
static enum ttd_status position_count_events(const struct position_search *search, uint64_t *count,
                                             struct ttd_error *error)
{
    *count = 0;
    if (position_says_events(search)) {
        *count = search->end->events;
        return TTD_OK;
    }
    enum ttd_status status = ttd_reader_rewind(search->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    struct ttd_chunk chunk;
    while (status == TTD_OK) {
        status = ttd_reader_next_chunk(search->reader, &chunk, error);
        if (status == TTD_OK && chunk.kind == TTD_KIND_EVENTS)
            *count = chunk.first_record + chunk.record_count;
    }
    return heap_is_over(status) ? TTD_OK : status;
}

/* Reads the next batch of events; TTD_END if there is none. */
static enum ttd_status position_next_events(const struct position_search *search,
                                            struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status;
    do
        status = ttd_reader_next(search->reader, batch, error);
    while (status == TTD_OK && batch->kind != TTD_KIND_EVENTS);
    return heap_is_over(status) ? TTD_END : status;
}

static struct ttd_position position_of(const struct position_search *search,
                                       const struct ttd_event *event)
{
    bool completes = search->purpose == POSITION_FOR_STATE && event->action == TTD_ACTION_REALLOC;
    return completes && ttd_event_returned(event) ? event->time_end : ttd_event_position(event);
}

/* Finds the position of an event. For a missing event that is the gap in the order where it would
 * be. TTD_END if it is after all events. */
static enum ttd_status position_find_event(const struct position_search *search, uint64_t number,
                                           struct ttd_position *position, struct ttd_error *error)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind(search->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    if (status == TTD_OK)
        status = ttd_reader_seek_event(search->reader, number, error);
    while (status == TTD_OK) {
        status = position_next_events(search, &batch, error);
        for (size_t i = 0; status == TTD_OK && i < batch.count; i++) {
            const struct ttd_event *event = &batch.u.events[i];
            if (event->number < number)
                continue;
            *position = position_of(search, event);
            if (event->number > number && search->purpose == POSITION_FOR_STATE)
                *position = heap_position_before(ttd_event_position(event));
            return TTD_OK;
        }
    }
    return status;
}

/* Whether event `number`, the first of a chunk, happened at `time` or before. */
static enum ttd_status position_is_before(const struct position_search *search, uint64_t number,
                                          uint64_t time, bool *result, struct ttd_error *error)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_seek_event(search->reader, number, error);
    if (status == TTD_OK)
        status = position_next_events(search, &batch, error);
    *result = status == TTD_OK && batch.count && batch.u.events[0].wall_time <= time;
    return status == TTD_END ? TTD_OK : status;
}

/* Finds the first event after `time`: its position, or the state before it. TTD_END if there is
 * none. */
static enum ttd_status position_find_time(const struct position_search *search, uint64_t time,
                                          struct ttd_position *position, struct ttd_error *error)
{
    uint64_t low = 0;
    uint64_t high = 0;
    enum ttd_status status = position_count_events(search, &high, error);
    if (status == TTD_OK)
        status = ttd_reader_rewind(search->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    while (status == TTD_OK && high - low > POSITION_SCAN_MAX) {
        uint64_t middle = low + (high - low) / 2;
        bool result = false;
        status = position_is_before(search, middle, time, &result, error);
        if (result)
            low = middle;
        else
            high = middle;
    }
    if (status == TTD_OK)
        status = ttd_reader_seek_event(search->reader, low, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = position_next_events(search, &batch, error);
        for (size_t i = 0; status == TTD_OK && i < batch.count; i++) {
            const struct ttd_event *event = &batch.u.events[i];
            if (event->wall_time <= time)
                continue;
            *position = ttd_event_position(event);
            if (search->purpose == POSITION_FOR_STATE)
                *position = heap_position_before(*position);
            return TTD_OK;
        }
    }
    return status;
}

static enum ttd_status position_find_percent(const struct position_search *search, double percent,
                                             struct position_found *found, struct ttd_error *error)
{
    uint64_t count = 0;
    enum ttd_status status = position_count_events(search, &count, error);
    if (!position_says_events(search))
        found->part_of = count;
    uint64_t number = (uint64_t)((double)count * percent / 100 + 0.5);
    if (status == TTD_OK && number >= count)
        return TTD_END;
    if (status != TTD_OK || (!number && search->purpose == POSITION_FOR_STATE))
        return status;
    /* `number` events have happened in the state; in the order as many are before the position. */
    return position_find_event(search, search->purpose == POSITION_FOR_STATE ? number - 1 : number,
                               &found->position, error);
}

/* Looks for a mark; the first one by position may be anywhere in the file. */
struct position_marks {
    const char *text;
    bool is_found;
    struct ttd_position first;
};

static void position_see_marks(struct position_marks *marks, const struct ttd_batch *batch)
{
    for (size_t i = 0; batch->kind == TTD_KIND_USER_EVENTS && i < batch->count; i++) {
        const struct ttd_user_event *event = &batch->u.user_events[i];
        struct heap_mark mark = heap_mark_of(event);
        bool is_earlier =
            !marks->is_found || ttd_position_compare(event->position, marks->first) < 0;
        if (!is_earlier || !heap_mark_is_named(&mark, marks->text))
            continue;
        marks->is_found = true;
        marks->first = event->position;
    }
}

/* Finds the earliest mark with a text. TTD_END if there is none. */
static enum ttd_status position_find_mark(const struct position_search *search, const char *text,
                                          struct position_found *found, struct ttd_error *error)
{
    const struct heap_batch_hook *hook = &search->trace->hook;
    struct position_marks marks = {.text = text};
    /* Losses are read because the reader reports damage as losses. */
    enum ttd_status status = ttd_reader_rewind(search->reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS) |
                                                                   TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(search->reader, &batch, error);
        if (status != TTD_OK)
            break;
        if (hook->batch && (status = hook->batch(hook->context, &batch)) != TTD_OK)
            return status;
        position_see_marks(&marks, &batch);
    }
    if (status != TTD_END && heap_is_over(status))
        found->ended = *error;
    else if (status != TTD_END && status != TTD_ERROR_UNSUPPORTED)
        return status;
    found->position = marks.first;
    return marks.is_found ? TTD_OK : TTD_END;
}

/* Finds a position; TTD_END if it is behind all events. */
static enum ttd_status position_search_for(const struct position_search *search,
                                           const struct position_spec *spec,
                                           struct position_found *found, struct ttd_error *error)
{
    switch (spec->kind) {
    case POSITION_SPEC_START:
    case POSITION_SPEC_MARK:
        break;
    case POSITION_SPEC_END:
        return TTD_END;
    case POSITION_SPEC_POSITION:
        found->position = spec->position;
        break;
    case POSITION_SPEC_EVENT:
        return position_find_event(search, spec->event, &found->position, error);
    case POSITION_SPEC_PERCENT:
        return position_find_percent(search, spec->percent, found, error);
    case POSITION_SPEC_TIME:
        return position_find_time(search, spec->time, &found->position, error);
    }
    return TTD_OK;
}

enum ttd_status position_spec_find(const struct heap_trace *trace, const struct ttd_end *end,
                                   const struct position_spec *spec, enum position_purpose purpose,
                                   struct position_found *found, struct ttd_error *error)
{
    struct position_search search = {trace, trace->reader, end, purpose};
    struct position_found result = {.position = ttd_position_min()};
    if (spec->kind == POSITION_SPEC_TIME && !trace_has_times(ttd_reader_trace(trace->reader)))
        return TTD_ERROR_MISUSE;
    enum ttd_status status = spec->kind == POSITION_SPEC_MARK
                                 ? position_find_mark(&search, spec->mark, &result, error)
                                 : position_search_for(&search, spec, &result, error);
    if (status == TTD_END && spec->kind != POSITION_SPEC_MARK) {
        result.position = ttd_position_max();
        status = TTD_OK;
    }
    if (status == TTD_OK || status == TTD_END)
        *found = result;
    return status;
}
