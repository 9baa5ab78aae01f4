/* SPDX-License-Identifier: MIT */
/*
 * Events of LTTng's wrapper of the C library (liblttng-ust-libc-wrapper.so), as babeltrace2 prints
 * them:
 *
 *     [00:04:32.245734852] (+?.?????????) host lttng_ust_libc:calloc: { cpu_id = 1 },
 *     { vpid = 7633, vtid = 7633, ip = 139934232 }, { nmemb = 100, size = 1, ptr = 0x5647DB447540 }
 *
 * in one line. The contexts vpid, vtid and ip are used if they are there. Positions are made up: a
 * sequence for each call.
 */
#include <string.h>

#include "import/import.h"

#define LTTNG_PREFIX "lttng_ust_libc:"
#define LTTNG_SECOND UINT64_C(1000000000)
#define LTTNG_DAY    (24 * 3600 * LTTNG_SECOND)

struct lttng {
    struct import_text *text;
    struct import_builder *builder;
    /* Ids of stacks by the address of their one frame. */
    struct hash_map frames;
    /* The process of the first event that names one. */
    bool has_process;
    uint64_t process;
    /* Time of the first event, and the amount to add to times behind midnight. */
    bool has_start;
    uint64_t start;
    uint64_t days;
    uint64_t wall_time;
};

static enum ttd_status lttng_fail(const struct lttng *source, const char *reason)
{
    return import_text_fail(source->text, TTD_ERROR_CORRUPT, "%s", reason);
}

/* Finds a field of a part of the line: "NAME = NUMBER" behind "{ " or ", ". */
static bool lttng_field(struct ttd_string part, const char *name, uint64_t *number)
{
    size_t size = strlen(name);
    for (size_t i = 2; i + size + 3 < part.size; i++) {
        if (part.data[i - 1] != ' ' || (part.data[i - 2] != '{' && part.data[i - 2] != ','))
            continue;
        struct ttd_string rest = {part.data + i, part.size - i};
        if (import_take(&rest, name) && import_take(&rest, " = "))
            return import_take_number(&rest, number);
    }
    return false;
}

/* Takes the fraction of a second: up to nine digits. */
static uint64_t lttng_fraction(struct ttd_string *rest)
{
    uint64_t value = 0;
    int digits = 0;
    if (!import_take(rest, "."))
        return 0;
    for (; digits < 9; digits++) {
        bool is_digit = rest->size && *rest->data >= '0' && *rest->data <= '9';
        value = value * 10 + (is_digit ? (uint64_t)(*rest->data - '0') : 0);
        rest->data += is_digit;
        rest->size -= is_digit;
    }
    return value;
}

/* Reads a time stamp: HH:MM:SS.N or S.N, perhaps behind a date. */
static bool lttng_time(struct ttd_string stamp, uint64_t *time)
{
    struct ttd_string date;
    uint64_t parts[3];
    size_t count = 0;
    import_take_until(&stamp, " ", &date);
    do {
        if (count == 3 || !import_take_decimal(&stamp, &parts[count]) || parts[count] >> 33)
            return false;
        count++;
    } while (import_take(&stamp, ":"));
    uint64_t seconds = count == 3 ? (parts[0] * 60 + parts[1]) * 60 + parts[2] : parts[0];
    if (count == 2 || (count == 3 && (parts[0] > 23 || parts[1] > 59 || parts[2] > 60)))
        return false;
    *time = seconds * LTTNG_SECOND + lttng_fraction(&stamp);
    return !stamp.size;
}

/* Sets the time since the first event. One before it by half a day is of the next day; any other
 * that goes back counts as the latest one. */
static void lttng_set_time(struct lttng *source, struct ttd_string stamp)
{
    uint64_t time = 0;
    if (!lttng_time(stamp, &time))
        return;
    if (!source->has_start)
        source->start = time;
    source->has_start = true;
    uint64_t latest = source->start + source->wall_time;
    time += source->days;
    if (time < latest && latest - time > LTTNG_DAY / 2 && source->days < 1000 * LTTNG_DAY) {
        source->days += LTTNG_DAY;
        time += LTTNG_DAY;
    }
    if (time > latest)
        source->wall_time = time - source->start;
}

/* Sets the thread and the caller of a call. Addresses of several processes do not go together. */
static enum ttd_status lttng_set_context(struct lttng *source, struct ttd_string context,
                                         struct ttd_event *event)
{
    uint64_t number = 0;
    enum ttd_status status = TTD_OK;
    if (lttng_field(context, "vpid", &number)) {
        if (source->has_process && number != source->process)
            return import_text_fail(source->text, TTD_ERROR_UNSUPPORTED,
                                    "calls of a second process: select one, as by grep "
                                    "'vpid = %llu,'",
                                    (unsigned long long)source->process);
        source->has_process = true;
        source->process = number;
    }
    if (lttng_field(context, "vtid", &number))
        status = import_thread(source->builder, number, &event->thread);
    if (status != TTD_OK || !lttng_field(context, "ip", &number) ||
        TTD_FRAMES_LEFT_OUT_COUNT(number))
        return status;
    event->stack = map_get(&source->frames, number, 1);
    if (event->stack != MAP_NONE)
        return TTD_OK;
    status = ttd_writer_stack(source->builder->writer, TTD_NONE, TTD_NONE, number, &event->stack);
    return status == TTD_OK ? map_set(&source->frames, number, 1, event->stack) : status;
}

/* Sets the properties of a call by its name; false if a field is missing, or the call is unknown.
 */
static bool lttng_set_call(struct ttd_string name, struct ttd_string fields,
                           struct ttd_event *event)
{
    uint64_t number = 0;
    event->result = 1;
    if (import_is(name, "free")) {
        event->action = TTD_ACTION_FREE;
        event->api = TTD_API_FREE;
        return lttng_field(fields, "ptr", &event->base_address);
    }
    event->action = TTD_ACTION_ALLOC;
    bool is_complete = lttng_field(fields, "size", &event->size);
    if (import_is(name, "posix_memalign")) {
        event->api = TTD_API_POSIX_MEMALIGN;
        is_complete = is_complete && lttng_field(fields, "out_ptr", &event->address) &&
                      lttng_field(fields, "result", &number);
        event->address = number ? 0 : event->address;
    } else {
        is_complete = is_complete && lttng_field(fields, "ptr", &event->address);
    }
    if (import_is(name, "malloc")) {
        event->api = TTD_API_MALLOC;
    } else if (import_is(name, "memalign")) {
        event->api = TTD_API_MEMALIGN;
    } else if (import_is(name, "calloc")) {
        event->api = TTD_API_CALLOC;
        is_complete = is_complete && lttng_field(fields, "nmemb", &number);
        if (__builtin_mul_overflow(event->size, number, &event->size))
            event->size = UINT64_MAX;
    } else if (import_is(name, "realloc")) {
        event->action = TTD_ACTION_REALLOC;
        event->api = TTD_API_REALLOC;
        is_complete = is_complete && lttng_field(fields, "in_ptr", &event->base_address);
        event->previous_address = event->base_address;
    } else if (event->api != TTD_API_POSIX_MEMALIGN) {
        return false;
    }
    event->result = event->address != 0;
    return is_complete;
}

/* Turns realloc(p, 0) without a new block, which releases p, into a Free. */
static void lttng_normalise(struct ttd_event *event)
{
    if (event->action != TTD_ACTION_REALLOC || event->address || event->size)
        return;
    event->action = TTD_ACTION_FREE;
    event->previous_address = 0;
    event->result = 1;
}

static enum ttd_status lttng_line(struct lttng *source, struct ttd_string line)
{
    struct ttd_string stamp;
    struct ttd_string before;
    struct ttd_string name;
    struct ttd_event event = {.action = 0};
    if (!import_take(&line, "[") || !import_take_until(&line, "]", &stamp) ||
        !import_take_until(&line, " " LTTNG_PREFIX, &before) ||
        !import_take_until(&line, ":", &name)) {
        source->text->result->ignored++;
        return TTD_OK;
    }
    enum ttd_status status = TTD_OK;
    if (!source->builder->writer) {
        source->builder->trace.time_unit = 1;
        status = import_source(source->builder, "from LTTng's wrapper of the C library");
    }
    const char *last = line.size ? memrchr(line.data, '{', line.size) : NULL;
    if (!last || line.data[line.size - 1] != '}')
        return lttng_fail(source, "the event is cut off");
    size_t size = (size_t)(last - line.data);
    struct ttd_string fields = {last, line.size - size};
    lttng_set_time(source, stamp);
    event.wall_time = source->wall_time;
    if (!lttng_set_call(name, fields, &event))
        return lttng_fail(source, "the call is unknown, or one of its fields is missing");
    lttng_normalise(&event);
    if (status == TTD_OK)
        status = lttng_set_context(source, (struct ttd_string){line.data, size}, &event);
    if (status != TTD_OK)
        return status;
    import_place(source->builder, &event);
    return import_event(source->builder, &event);
}

enum ttd_status import_lttng(struct import_text *text, struct import_builder *builder)
{
    struct lttng source = {.text = text, .builder = builder};
    struct ttd_string line;
    map_init(&source.frames);
    enum ttd_status status = import_text_line(text, &line);
    for (; status == TTD_OK; status = import_text_line(text, &line)) {
        status = lttng_line(&source, line);
        if (status != TTD_OK)
            break;
    }
    map_free(&source.frames);
    return status == TTD_END ? TTD_OK : status;
}
