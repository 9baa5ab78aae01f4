/* SPDX-License-Identifier: MIT */
/* Calls, read from the trace. */
#include "engine/engine_parts.h"

static void engine_add_event(const struct ttd_event *event)
{
    engine_add(event->number);
    engine_add_position(event->time_start);
    engine_add_position(event->time_end);
    engine_add(event->wall_time);
    engine_add(event->action);
    engine_add(event->api);
    engine_add(event->thread);
    engine_add(event->stack);
    engine_add(event->heap);
    engine_add(event->address);
    engine_add(event->base_address);
    engine_add(event->size);
    engine_add(event->result);
}

size_t engine_events(uint64_t first, size_t count)
{
    struct ttd_batch batch;
    engine_answer();
    enum ttd_status status = ttd_reader_rewind(engine.reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    if (status == TTD_OK)
        status = ttd_reader_seek_event(engine.reader, first, &engine.error);
    while (status == TTD_OK && count) {
        status = ttd_reader_next(engine.reader, &batch, &engine.error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_EVENTS && i < batch.count && count; i++) {
            if (batch.u.events[i].number < first)
                continue;
            engine_add_event(&batch.u.events[i]);
            count--;
        }
    }
    return engine_end();
}
