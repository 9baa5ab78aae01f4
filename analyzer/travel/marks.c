/* SPDX-License-Identifier: MIT */
#include "travel/marks.h"

#include <string.h>

const char *heap_mark_kind_name(enum heap_mark_kind kind)
{
    static const char *const names[] = {"event", "mark",      "open",   "close",   "start",
                                        "stop",  "throttled", "paused", "resumed", "reset"};
    return names[kind];
}

/* Reads a field of an event of the format's own clients. */
static uint64_t field_of(const uint8_t *data, size_t index)
{
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
        value = value << 8 | data[8 * index + i];
    return value;
}

static bool mark_is_of_client(const struct ttd_user_event *event, const char *client)
{
    return memcmp(event->client, client, sizeof event->client) == 0;
}

/* Takes the fields that come before the user's data, and the client among them. */
static void take_fields(struct heap_mark *mark, size_t fields)
{
    const struct ttd_user_event *event = mark->event;
    memcpy(mark->client, event->data + 8, sizeof mark->client);
    mark->data.data += 8 * fields;
    mark->data.size -= 8 * fields;
}

struct heap_mark heap_mark_of(const struct ttd_user_event *event)
{
    struct heap_mark mark = {.event = event, .data = {(const char *)event->data, event->size}};
    memcpy(mark.client, event->client, sizeof mark.client);
    uint64_t kind = event->size >= 8 ? field_of(event->data, 0) : 0;
    if (mark_is_of_client(event, TTD_CLIENT_MARKS)) {
        mark.kind = HEAP_MARK_OUTSIDE;
        memset(mark.client, 0, sizeof mark.client);
    } else if (mark_is_of_client(event, TTD_CLIENT_CLIENTS) &&
               event->size >= 8 * TTD_CLIENT_EVENT_FIELDS && kind >= TTD_CLIENT_OPENED &&
               kind <= TTD_CLIENT_CLOSED) {
        mark.kind = kind == TTD_CLIENT_OPENED ? HEAP_MARK_OPENED : HEAP_MARK_CLOSED;
        take_fields(&mark, TTD_CLIENT_EVENT_FIELDS);
    } else if (mark_is_of_client(event, TTD_CLIENT_THREADS) &&
               event->size >= 8 * TTD_THREAD_EVENT_FIELDS && kind >= TTD_THREAD_STARTED &&
               kind <= TTD_THREAD_RESET) {
        mark.kind = (enum heap_mark_kind)(HEAP_MARK_STARTED + (kind - TTD_THREAD_STARTED));
        mark.activity = field_of(event->data, 3);
        mark.maximum = field_of(event->data, 4);
        take_fields(&mark, TTD_THREAD_EVENT_FIELDS);
    }
    return mark;
}

bool heap_mark_is_named(const struct heap_mark *mark, const char *text)
{
    size_t size = strlen(text);
    return mark->data.size == size && memcmp(mark->data.data, text, size) == 0;
}
