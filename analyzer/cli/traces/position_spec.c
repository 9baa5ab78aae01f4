/* SPDX-License-Identifier: MIT */
#include "cli/traces/position_spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "travel/islands.h"
#include "cli/process/message.h"
#include "cli/process/numbers.h"
#include "travel/heap_trace.h"

/* Range of events that is scanned instead of bisected further. */
#define SCAN_MAX 65536

/* Prefix of a position that names a mark. */
#define MARK "mark:"

/* Parses a decimal number, without the other forms that strtod() accepts: signs, hexadecimal,
 * infinity. */
static bool take_decimal(const char *text, char **end, double *value)
{
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    if (*text == '0' && tolower((unsigned char)text[1]) == 'x')
        return false;
    *value = strtod(text, end);
    return *end != text;
}

static bool parse_time(const char *text, uint64_t *time)
{
    static const struct {
        const char *name;
        double nanoseconds;
    } units[] = {{"", 1e9},   {"s", 1e9},    {"ms", 1e6},  {"us", 1e3},
                 {"ns", 1.0}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    double value;
    if (!take_decimal(text, &end, &value))
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

static bool parse_percent(const char *text, double *percent)
{
    char *end;
    return take_decimal(text, &end, percent) && strcmp(end, "%") == 0 && *percent <= 100;
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
    else if (*text == '+' && parse_time(text + 1, &spec.time))
        spec.kind = POSITION_SPEC_TIME;
    else if (parse_percent(text, &spec.percent))
        spec.kind = POSITION_SPEC_PERCENT;
    else if (ttd_position_parse(text, &spec.position))
        spec.kind = POSITION_SPEC_POSITION;
    else
        return false;
    *result = spec;
    return true;
}

/* Whether the End states how many events were recorded, readable or not. */
static bool says_events(const struct source *source)
{
    return source->is_closed && source->end.reason != TTD_END_REASON_NOT_RECORDED;
}

/* Counts the events: one more than the number of the last. */
static enum ttd_status position_count_events(struct source *source, uint64_t *count,
                                             struct ttd_error *error)
{
    *count = 0;
    if (says_events(source)) {
        *count = source->end.events;
        return TTD_OK;
    }
    enum ttd_status status = ttd_reader_rewind(source->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    struct ttd_chunk chunk;
    while (status == TTD_OK) {
        status = ttd_reader_next_chunk(source->reader, &chunk, error);
        if (status == TTD_OK && chunk.kind == TTD_KIND_EVENTS)
            *count = chunk.first_record + chunk.record_count;
    }
    return heap_is_over(status) ? TTD_OK : status;
}

/* Reads the next batch of events; TTD_END if there is none. */
static enum ttd_status position_next_events(struct source *source, struct ttd_batch *batch,
                                            struct ttd_error *error)
{
    enum ttd_status status;
    do
        status = ttd_reader_next(source->reader, batch, error);
    while (status == TTD_OK && batch->kind != TTD_KIND_EVENTS);
    return heap_is_over(status) ? TTD_END : status;
}

static struct ttd_position position_of(const struct ttd_event *event, enum position_purpose purpose)
{
    bool completes = purpose == POSITION_FOR_STATE && event->action == TTD_ACTION_REALLOC;
    return completes && ttd_event_returned(event) ? event->time_end : ttd_event_position(event);
}

/* Finds the position of an event. For a missing event that is the gap in the order where it would
 * be. TTD_END if it is after all events. */
static enum ttd_status position_find_event(struct source *source, uint64_t number,
                                           enum position_purpose purpose,
                                           struct ttd_position *position, struct ttd_error *error)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind(source->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    if (status == TTD_OK)
        status = ttd_reader_seek_event(source->reader, number, error);
    while (status == TTD_OK) {
        status = position_next_events(source, &batch, error);
        for (size_t i = 0; status == TTD_OK && i < batch.count; i++) {
            const struct ttd_event *event = &batch.u.events[i];
            if (event->number < number)
                continue;
            *position = position_of(event, purpose);
            if (event->number > number && purpose == POSITION_FOR_STATE)
                *position = heap_position_before(ttd_event_position(event));
            return TTD_OK;
        }
    }
    return status;
}

/* Whether event `number`, the first of a chunk, happened at `time` or before. */
static enum ttd_status position_is_before(struct source *source, uint64_t number, uint64_t time,
                                          bool *result, struct ttd_error *error)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_seek_event(source->reader, number, error);
    if (status == TTD_OK)
        status = position_next_events(source, &batch, error);
    *result = status == TTD_OK && batch.count && batch.u.events[0].wall_time <= time;
    return status == TTD_END ? TTD_OK : status;
}

/* Finds the first event after `time`: its position, or the state before it. TTD_END if there is
 * none. */
static enum ttd_status position_find_time(struct source *source, uint64_t time,
                                          enum position_purpose purpose,
                                          struct ttd_position *position, struct ttd_error *error)
{
    uint64_t low = 0;
    uint64_t high = 0;
    enum ttd_status status = position_count_events(source, &high, error);
    if (status == TTD_OK)
        status = ttd_reader_rewind(source->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    while (status == TTD_OK && high - low > SCAN_MAX) {
        uint64_t middle = low + (high - low) / 2;
        bool result = false;
        status = position_is_before(source, middle, time, &result, error);
        if (result)
            low = middle;
        else
            high = middle;
    }
    if (status == TTD_OK)
        status = ttd_reader_seek_event(source->reader, low, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = position_next_events(source, &batch, error);
        for (size_t i = 0; status == TTD_OK && i < batch.count; i++) {
            const struct ttd_event *event = &batch.u.events[i];
            if (event->wall_time <= time)
                continue;
            *position = ttd_event_position(event);
            if (purpose == POSITION_FOR_STATE)
                *position = heap_position_before(*position);
            return TTD_OK;
        }
    }
    return status;
}

static enum ttd_status find_percent(struct source *source, double percent,
                                    enum position_purpose purpose, struct ttd_position *position,
                                    struct ttd_error *error)
{
    uint64_t count = 0;
    enum ttd_status status = position_count_events(source, &count, error);
    if (!says_events(source))
        source->part_of = count;
    uint64_t number = (uint64_t)((double)count * percent / 100 + 0.5);
    if (status == TTD_OK && number >= count)
        return TTD_END;
    if (status != TTD_OK || (!number && purpose == POSITION_FOR_STATE))
        return status;
    /* `number` events have happened in the state; in the order as many are before the position. */
    return position_find_event(source, purpose == POSITION_FOR_STATE ? number - 1 : number, purpose,
                               position, error);
}

struct mark_search {
    const char *text;
    bool is_found;
    struct ttd_position position;
};

static enum ttd_status see_mark(void *context, const struct ttd_batch *batch)
{
    struct mark_search *search = context;
    for (size_t i = 0; batch->kind == TTD_KIND_USER_EVENTS && i < batch->count; i++) {
        const struct ttd_user_event *event = &batch->u.user_events[i];
        struct heap_mark mark = heap_mark_of(event);
        bool is_earlier =
            !search->is_found || ttd_position_compare(event->position, search->position) < 0;
        if (!is_earlier || !heap_mark_is_named(&mark, search->text))
            continue;
        search->is_found = true;
        search->position = event->position;
    }
    return TTD_OK;
}

/* Finds the earliest mark with a text, wherever in the file it is. Returns an exit status. */
static int find_mark(struct source *source, const char *text, struct ttd_position *position)
{
    struct mark_search search = {.text = text};
    struct heap_batch_hook hook = {.context = &search, .batch = see_mark};
    int status = source_read(source, TTD_KIND_BIT(TTD_KIND_USER_EVENTS), &hook);
    if (status == STATUS_OK && !search.is_found) {
        message("%s: no mark has the text '%s'; 'ttdanalyze marks' lists them", source->path, text);
        return STATUS_USAGE;
    }
    *position = search.position;
    return status;
}

int position_spec_resolve(const struct position_spec *spec, enum position_purpose purpose,
                          struct source *source, struct ttd_position *position)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = TTD_OK;
    if (spec->kind == POSITION_SPEC_TIME && !source_has_times(source))
        return source_fail_times(source);
    if (spec->kind == POSITION_SPEC_MARK)
        return find_mark(source, spec->mark, position);
    *position = ttd_position_min();
    switch (spec->kind) {
    case POSITION_SPEC_START:
    case POSITION_SPEC_MARK:
        break;
    case POSITION_SPEC_END:
        status = TTD_END;
        break;
    case POSITION_SPEC_POSITION:
        *position = spec->position;
        break;
    case POSITION_SPEC_EVENT:
        status = position_find_event(source, spec->event, purpose, position, &error);
        break;
    case POSITION_SPEC_PERCENT:
        status = find_percent(source, spec->percent, purpose, position, &error);
        break;
    case POSITION_SPEC_TIME:
        status = position_find_time(source, spec->time, purpose, position, &error);
        break;
    }
    if (status == TTD_END)
        *position = ttd_position_max();
    else if (status != TTD_OK)
        return source_fail(source, status, &error);
    return STATUS_OK;
}

int position_range_check(const char *command, const struct source *source,
                         struct ttd_position begin, struct ttd_position end)
{
    if (ttd_position_compare(end, begin) > 0)
        return STATUS_OK;
    if (ttd_position_compare(begin, ttd_position_max()) != 0)
        return message_usage(command, POSITION_RANGE_EMPTY);
    message("%s: the range is empty: no event that can be read comes at --from or after it",
            source->path);
    return STATUS_USAGE;
}
