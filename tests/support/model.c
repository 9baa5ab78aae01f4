/* SPDX-License-Identifier: MIT */
#include "support/model.h"

#include <string.h>

uint64_t entropy_next(struct entropy *from)
{
    if (from->data) {
        uint64_t value = 0;
        for (int i = 0; i < 8 && from->size > 0; i++, from->size--)
            value = value << 8 | *from->data++;
        return value;
    }
    uint64_t z = from->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t entropy_below(struct entropy *from, uint64_t limit)
{
    if (!from->data || limit > 256)
        return entropy_next(from) % limit;
    if (from->size == 0)
        return 0;
    from->size--;
    return *from->data++ % limit;
}

uint64_t entropy_value(struct entropy *from)
{
    static const uint64_t extremes[] = {
        0,         1,          UINT64_MAX,       UINT64_MAX - 1, UINT64_C(1) << 63,
        INT64_MAX, UINT32_MAX, UINT64_C(1) << 32};
    switch (entropy_below(from, 8)) {
    case 0:
        return extremes[entropy_below(from, sizeof extremes / sizeof *extremes)];
    case 1:
        return entropy_next(from);
    case 2:
        return entropy_next(from) >> entropy_below(from, 64);
    default:
        return entropy_below(from, 256);
    }
}

static bool chance(struct entropy *from, uint64_t one_in)
{
    return entropy_below(from, one_in) == 0;
}

struct ttd_trace model_begin(struct model *m, struct entropy from, enum model_style style)
{
    memset(m, 0, sizeof *m);
    m->from = from;
    m->style = style;
    m->pages = TTD_PAGE_FIRST;
    m->time_unit = chance(&m->from, 2) ? 1 : 1 + entropy_below(&m->from, 1000);
    struct ttd_trace trace = {.trace_id = entropy_next(&m->from) | 1,
                              .parent_trace_id = entropy_value(&m->from),
                              .parent_position = {entropy_value(&m->from), entropy_value(&m->from)},
                              .start_time = (int64_t)entropy_value(&m->from),
                              .time_unit = m->time_unit,
                              .process_id = entropy_value(&m->from),
                              .parent_process_id = entropy_value(&m->from),
                              .flags = (uint32_t)entropy_below(&m->from, 2) * TTD_TRACE_ATTACHED,
                              .architecture = (uint32_t)entropy_below(&m->from, 6),
                              .pointer_size = chance(&m->from, 2) ? 4 : 8};
    if (!ttd_position_is_valid(trace.parent_position))
        trace.parent_position = ttd_position_invalid();
    trace.group.bytes[3] = (uint8_t)entropy_next(&m->from);
    struct ttd_batch batch = {.kind = TTD_KIND_TRACE, .count = 1, .u.trace = &trace};
    text_of_batch(text_table_at(&m->expected, TTD_KIND_TRACE), &batch);
    return trace;
}

void model_free(struct model *m)
{
    text_table_free(&m->expected);
}

static ttd_id any_id(struct model *m, ttd_id count)
{
    return (ttd_id)entropy_below(&m->from, (uint64_t)count + 1);
}

static struct ttd_position later(struct model *m, struct ttd_position position)
{
    uint64_t more = chance(&m->from, 16) ? entropy_value(&m->from) : entropy_below(&m->from, 4);
    if (chance(&m->from, 3)) {
        uint64_t room = TTD_SEQUENCE_MAX - position.sequence;
        if (more == 0 || room == 0)
            return position;
        return (struct ttd_position){position.sequence + (more < room ? more : room),
                                     entropy_below(&m->from, 3)};
    }
    uint64_t room = UINT64_MAX - position.steps;
    return (struct ttd_position){position.sequence, position.steps + (more < room ? more : room)};
}

static struct ttd_position earlier(struct model *m, struct ttd_position position)
{
    struct ttd_position result = {position.sequence, entropy_below(&m->from, 8)};
    if (chance(&m->from, 4))
        result.sequence = entropy_value(&m->from);
    if (chance(&m->from, 2) && position.steps > 0)
        result.steps = position.steps - 1;
    return ttd_position_compare(result, position) > 0 ? position : result;
}

/* Times, whatever they are. */
static void any_times(struct model *m, struct ttd_event *event)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_CREATE;
    struct ttd_position effect = later(m, m->position);
    event->time_start = effect;
    event->time_end = ttd_position_invalid();
    if (chance(&m->from, 8))
        return;
    event->time_end = acquires ? effect : later(m, effect);
    if (acquires)
        event->time_start = earlier(m, effect);
}

/* Times as the recorder gives them: a thread that ran before counts on, another one begins a new
 * sequence. */
static void program_times(struct model *m, struct ttd_event *event)
{
    ttd_id thread = event->thread;
    struct ttd_position *at = &m->at[thread];
    if (m->running != thread)
        *at = (struct ttd_position){m->position.sequence + 1, 0};
    else
        at->steps++;
    m->running = thread;
    event->time_start = *at;
    if (chance(&m->from, 32)) {
        at->sequence++;
        at->steps = 0;
    } else {
        at->steps++;
    }
    event->time_end = chance(&m->from, 512) ? ttd_position_invalid() : *at;
}

static void any_properties(struct model *m, struct ttd_event *event)
{
    struct entropy *from = &m->from;
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    event->api = (uint8_t)entropy_below(from, chance(from, 8) ? 256 : TTD_API_COUNT);
    event->flags = chance(from, 4) ? entropy_value(from) : 0;
    if (ttd_event_returned(event))
        event->result = chance(from, 4) ? entropy_value(from) : 1;
    if (allocates && event->result != 0)
        event->address = entropy_value(from);
    if (releases)
        event->base_address = m->block_count && chance(from, 2)
                                  ? m->blocks[entropy_below(from, m->block_count)]
                                  : entropy_value(from);
    if (event->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (allocates || (releases && chance(from, 4)))
        event->size = entropy_value(from);
    if (event->action == TTD_ACTION_CREATE) {
        event->reserve_size = entropy_value(from);
        event->commit_size = entropy_value(from);
    }
    if (event->action == TTD_ACTION_PROTECT)
        event->make_read_only = entropy_value(from);
}

static uint64_t new_block(struct model *m)
{
    uint64_t address = UINT64_C(0x7f0000000000) + 16 * entropy_below(&m->from, 1 << 20);
    if (m->block_count < MODEL_BLOCKS)
        m->blocks[m->block_count++] = address;
    else
        m->blocks[entropy_below(&m->from, MODEL_BLOCKS)] = address;
    return address;
}

/* A loop over four call sites, most of the time. */
static void choose_site(struct model *m, struct ttd_event *event)
{
    struct entropy *from = &m->from;
    uint64_t site = chance(from, 32) ? entropy_below(from, 8) : m->events % 4;
    if (!chance(from, 32))
        event->action = site % 4 < 2 ? TTD_ACTION_ALLOC : TTD_ACTION_FREE;
    event->stack = m->stacks ? (ttd_id)(1 + site % m->stacks) : TTD_NONE;
    event->heap = m->heaps && !chance(from, 64) ? 1 : TTD_NONE;
}

static void program_properties(struct model *m, struct ttd_event *event)
{
    event->result = ttd_event_returned(event);
    event->api = event->action == TTD_ACTION_FREE      ? TTD_API_FREE
                 : event->action == TTD_ACTION_REALLOC ? TTD_API_REALLOC
                                                       : TTD_API_MALLOC;
    if (event->action != TTD_ACTION_ALLOC && m->block_count) {
        size_t place = m->block_count - 1;
        if (chance(&m->from, 4))
            place = (size_t)entropy_below(&m->from, m->block_count);
        event->base_address = m->blocks[place];
        m->blocks[place] = m->blocks[--m->block_count];
    }
    if (event->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (event->action != TTD_ACTION_FREE) {
        event->size = 8 * entropy_below(&m->from, 100);
        event->address = event->result ? new_block(m) : 0;
    }
}

/* Another API and flags now and then; parameters as the template has them, but for a few. */
static void vary_properties(struct model *m, struct ttd_event *event,
                            uint64_t parameters[TTD_PARAMETERS_MAX])
{
    struct entropy *from = &m->from;
    if (event->action != TTD_ACTION_REALLOC && chance(from, 32))
        event->api = event->action == TTD_ACTION_ALLOC ? TTD_API_NEW : TTD_API_DELETE;
    event->flags = chance(from, 64);
    if (chance(from, 32))
        return;
    event->parameter_count = (uint32_t)ttd_event_parameters(event, parameters);
    event->parameters = parameters;
    if (chance(from, 64))
        parameters[entropy_below(from, event->parameter_count)] ^= 8;
}

/* Parameters: those of the template, some of them not, or anything. */
static void choose_parameters(struct model *m, struct ttd_event *event,
                              uint64_t parameters[TTD_PARAMETERS_MAX])
{
    struct entropy *from = &m->from;
    if (!chance(from, 4))
        return;
    event->parameters = parameters;
    event->parameter_count = (uint32_t)ttd_event_parameters(event, parameters);
    event->parameters = parameters;
    if (event->parameter_count == 0 || chance(from, 4)) {
        event->parameter_count = (uint32_t)entropy_below(from, TTD_PARAMETERS_MAX + 1);
        for (uint32_t i = 0; i < event->parameter_count; i++)
            parameters[i] = entropy_value(from);
    }
    if (event->api == TTD_API_CALLOC) {
        event->parameter_count = 2;
        parameters[0] = entropy_below(from, 3) * 2;
        parameters[1] = parameters[0] ? event->size / parameters[0] : entropy_value(from);
    }
    if (event->parameter_count == 0)
        event->parameters = NULL;
}

enum ttd_status model_write_event(struct model *m, struct ttd_writer *writer,
                                  const struct ttd_event *event)
{
    enum ttd_status status = ttd_writer_event(writer, event);
    if (status != TTD_OK)
        return status;
    struct ttd_event copy = *event;
    copy.number = m->events++;
    m->position = ttd_event_position(event);
    m->wall_time = event->wall_time;
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS, .count = 1, .u.events = &copy};
    text_of_batch(text_table_at(&m->expected, TTD_KIND_EVENTS), &batch);
    return TTD_OK;
}

enum ttd_status model_event(struct model *m, struct ttd_writer *writer)
{
    struct entropy *from = &m->from;
    /* One after the other: the order within an initializer is not defined. */
    struct ttd_event event = {.heap = any_id(m, m->heaps)};
    event.stack = any_id(m, m->stacks);
    event.thread = any_id(m, m->threads < MODEL_THREADS ? m->threads : MODEL_THREADS);
    uint64_t parameters[TTD_PARAMETERS_MAX];
    if (m->style != MODEL_ANYTHING) {
        event.action = (uint8_t)(TTD_ACTION_ALLOC + entropy_below(from, 3));
        if (m->running != TTD_NONE && !chance(from, 20))
            event.thread = m->running;
        if (m->style == MODEL_LOOP)
            choose_site(m, &event);
        program_times(m, &event);
        program_properties(m, &event);
        if (m->style == MODEL_LOOP)
            vary_properties(m, &event, parameters);
        event.wall_time =
            m->wall_time + m->time_unit * chance(from, m->style == MODEL_LOOP ? 32 : 4);
    } else {
        event.action = (uint8_t)(TTD_ACTION_ALLOC + entropy_below(from, 8));
        any_times(m, &event);
        any_properties(m, &event);
        choose_parameters(m, &event, parameters);
        uint64_t units = UINT64_MAX / m->time_unit;
        event.wall_time =
            chance(from, 4) ? entropy_value(from) % units * m->time_unit : m->wall_time;
    }
    return model_write_event(m, writer, &event);
}
