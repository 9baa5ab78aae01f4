/* SPDX-License-Identifier: MIT */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/grow.h"

struct engine engine;

void engine_answer(void)
{
    engine.count = 0;
    engine.is_short = false;
}

void engine_add(uint64_t value)
{
    enum ttd_status status = grow_array((void **)&engine.values, &engine.capacity, engine.count + 1,
                                        sizeof *engine.values);
    engine.is_short |= status != TTD_OK;
    if (status == TTD_OK)
        engine.values[engine.count++] = value;
}

void engine_add_position(struct ttd_position position)
{
    engine_add(position.sequence);
    engine_add(position.steps);
}

size_t engine_end(void)
{
    return engine.is_short ? 0 : engine.count;
}

const uint64_t *engine_values(void)
{
    return engine.values;
}

void *engine_reserve(size_t size)
{
    engine_close();
    engine.trace = malloc(size + 1);
    return engine.trace;
}

static enum ttd_status engine_see_batch(void *context, const struct ttd_batch *batch)
{
    (void)context;
    if (batch->kind == TTD_KIND_EVENTS && batch->count)
        engine_progress((double)batch->u.events[0].number);
    return TTD_OK;
}

int engine_open(size_t size)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    struct ttd_input input;
    struct ttd_end end;
    options.tolerant = true;
    options.lazy_stacks = true;
    enum ttd_status status = ttd_input_memory(engine.trace, size, NULL, &input);
    if (status == TTD_OK)
        status = ttd_reader_open(&input, &options, NULL, &engine.reader, &engine.error);
    if (status != TTD_OK)
        return (int)status;
    struct heap_trace trace = {
        .reader = engine.reader, .hook = {.batch = engine_see_batch}, .is_checked = true};
    uint64_t events = ttd_reader_end(engine.reader, &end) == TTD_OK ? end.events : 0;
    return (int)chronicle_make(&engine.chronicle, &trace, events, &engine.error);
}

void engine_close(void)
{
    ttd_reader_close(engine.reader);
    chronicle_free(&engine.chronicle);
    free(engine.trace);
    free(engine.values);
    free(engine.given);
    free(engine.wanted);
    engine = (struct engine){.reader = NULL};
}

const char *engine_error(void)
{
    return engine.error.what ? engine.error.what : "";
}

uint32_t *engine_stacks(size_t count)
{
    free(engine.given);
    engine.given = calloc(count + 1, sizeof *engine.given);
    engine.given_count = count;
    return engine.given;
}

int engine_filter(void)
{
    ttd_id largest = 0;
    for (size_t i = 0; i < engine.given_count; i++)
        largest = engine.given[i] > largest ? engine.given[i] : largest;
    engine.wanted = calloc((size_t)largest + 1, sizeof *engine.wanted);
    if (!engine.wanted)
        return TTD_ERROR_NO_MEMORY;
    engine.wanted_count = (size_t)largest + 1;
    for (size_t i = 0; i < engine.given_count; i++)
        engine.wanted[engine.given[i]] = true;
    return TTD_OK;
}

uint32_t engine_find(uint64_t sequence, uint64_t steps)
{
    return chronicle_find(&engine.chronicle, (struct ttd_position){sequence, steps});
}

uint32_t engine_find_time(uint64_t time)
{
    return chronicle_find_time(&engine.chronicle, time);
}

uint32_t engine_find_event(uint64_t event)
{
    return chronicle_find_event(&engine.chronicle, event);
}

uint32_t engine_before(uint32_t moment)
{
    return chronicle_before(&engine.chronicle, moment);
}

uint32_t engine_after(uint32_t moment)
{
    return chronicle_after(&engine.chronicle, moment);
}

const char *engine_action(unsigned action)
{
    return ttd_action_name((enum ttd_action)action);
}

const char *engine_api(unsigned api)
{
    return ttd_api_name(api);
}
