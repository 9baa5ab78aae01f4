/* SPDX-License-Identifier: MIT */
#include "collect/trace/written.h"

static void written_add(struct trace *written, const struct ttd_batch *batch)
{
    if (batch->kind != TTD_KIND_EVENTS)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        written->acquisitions += event->address != 0;
        written->releases += event->action == TTD_ACTION_FREE;
    }
    written->events += batch->count;
}

void written_count(struct trace *trace, void (*tick)(void *context), void *context)
{
    struct ttd_input input;
    struct ttd_batch batch;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    struct trace written = {.events = 0};
    options.kinds = TTD_KIND_BIT(TTD_KIND_EVENTS);
    options.whole_chunks = true;
    if (ttd_input_file(trace->created, NULL, &input, NULL) == TTD_OK &&
        ttd_reader_open(&input, &options, NULL, &reader, NULL) == TTD_OK) {
        while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
            written_add(&written, &batch);
            tick(context);
        }
        ttd_reader_close(reader);
    }
    if (written.events >= trace->events)
        return;
    trace->lost += trace->events - written.events;
    trace->events = written.events;
    trace->acquisitions = written.acquisitions;
    trace->releases = written.releases;
}
