/* SPDX-License-Identifier: MIT */
#include "support/records/model.h"

#include <string.h>

static bool chance(struct entropy *entropy, uint64_t one_in)
{
    return entropy_below(entropy, one_in) == 0;
}

struct ttd_trace model_begin(struct model *model, struct entropy entropy, enum model_style style)
{
    memset(model, 0, sizeof *model);
    model->entropy = entropy;
    model->style = style;
    model->pages = TTD_PAGE_FIRST;
    model->time_unit = chance(&model->entropy, 2) ? 1 : 1 + entropy_below(&model->entropy, 1000);
    struct ttd_trace trace = {
        .trace_id = entropy_next(&model->entropy) | 1,
        .parent_trace_id = entropy_value(&model->entropy),
        .parent_position = {entropy_value(&model->entropy), entropy_value(&model->entropy)},
        .start_time = (int64_t)entropy_value(&model->entropy),
        .time_unit = model->time_unit,
        .process_id = entropy_value(&model->entropy),
        .parent_process_id = entropy_value(&model->entropy),
        .flags = (uint32_t)entropy_below(&model->entropy, 2) * TTD_TRACE_ATTACHED,
        .architecture = (uint32_t)entropy_below(&model->entropy, 6),
        .pointer_size = chance(&model->entropy, 2) ? 4 : 8};
    if (!ttd_position_is_valid(trace.parent_position))
        trace.parent_position = ttd_position_invalid();
    trace.group.bytes[3] = (uint8_t)entropy_next(&model->entropy);
    struct ttd_batch batch = {.kind = TTD_KIND_TRACE, .count = 1, .u.trace = &trace};
    text_of_batch(text_table_at(&model->expected, TTD_KIND_TRACE), &batch);
    return trace;
}

void model_free(struct model *model)
{
    text_table_free(&model->expected);
}

static ttd_id any_id(struct model *model, ttd_id count)
{
    return (ttd_id)entropy_below(&model->entropy, (uint64_t)count + 1);
}

static struct ttd_position later(struct model *model, struct ttd_position position)
{
    uint64_t more = chance(&model->entropy, 16) ? entropy_value(&model->entropy)
                                                : entropy_below(&model->entropy, 4);
    if (chance(&model->entropy, 3)) {
        uint64_t room = TTD_SEQUENCE_MAX - position.sequence;
        if (more == 0 || room == 0)
            return position;
        return (struct ttd_position){position.sequence + (more < room ? more : room),
                                     entropy_below(&model->entropy, 3)};
    }
    uint64_t room = UINT64_MAX - position.steps;
    return (struct ttd_position){position.sequence, position.steps + (more < room ? more : room)};
}

static struct ttd_position earlier(struct model *model, struct ttd_position position)
{
    struct ttd_position result = {position.sequence, entropy_below(&model->entropy, 8)};
    if (chance(&model->entropy, 4))
        result.sequence = entropy_value(&model->entropy);
    if (chance(&model->entropy, 2) && position.steps > 0)
        result.steps = position.steps - 1;
    return ttd_position_compare(result, position) > 0 ? position : result;
}

/* Times, whatever they are. */
static void any_times(struct model *model, struct ttd_event *event)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_CREATE;
    struct ttd_position effect = later(model, model->position);
    event->time_start = effect;
    event->time_end = ttd_position_invalid();
    if (chance(&model->entropy, 8))
        return;
    event->time_end = acquires ? effect : later(model, effect);
    if (acquires)
        event->time_start = earlier(model, effect);
}

/* Times as the recorder gives them: a thread that ran before counts on, another one begins a new
 * sequence. */
static void program_times(struct model *model, struct ttd_event *event)
{
    ttd_id thread = event->thread;
    struct ttd_position *at = &model->at[thread];
    if (model->running != thread)
        *at = (struct ttd_position){model->position.sequence + 1, 0};
    else
        at->steps++;
    model->running = thread;
    event->time_start = *at;
    if (chance(&model->entropy, 32)) {
        at->sequence++;
        at->steps = 0;
    } else {
        at->steps++;
    }
    event->time_end = chance(&model->entropy, 512) ? ttd_position_invalid() : *at;
}

static void any_properties(struct model *model, struct ttd_event *event)
{
    struct entropy *entropy = &model->entropy;
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    event->api = (uint8_t)entropy_below(entropy, chance(entropy, 8) ? 256 : TTD_API_COUNT);
    event->flags = chance(entropy, 4) ? entropy_value(entropy) : 0;
    if (ttd_event_returned(event))
        event->result = chance(entropy, 4) ? entropy_value(entropy) : 1;
    if (allocates && event->result != 0)
        event->address = entropy_value(entropy);
    if (releases)
        event->base_address = model->block_count && chance(entropy, 2)
                                  ? model->blocks[entropy_below(entropy, model->block_count)]
                                  : entropy_value(entropy);
    if (event->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (allocates || (releases && chance(entropy, 4)))
        event->size = entropy_value(entropy);
    if (event->action == TTD_ACTION_CREATE) {
        event->reserve_size = entropy_value(entropy);
        event->commit_size = entropy_value(entropy);
    }
    if (event->action == TTD_ACTION_PROTECT)
        event->make_read_only = entropy_value(entropy);
}

static uint64_t new_block(struct model *model)
{
    uint64_t address = UINT64_C(0x7f0000000000) + 16 * entropy_below(&model->entropy, 1 << 20);
    if (model->block_count < MODEL_BLOCKS)
        model->blocks[model->block_count++] = address;
    else
        model->blocks[entropy_below(&model->entropy, MODEL_BLOCKS)] = address;
    return address;
}

/* A loop over four call sites, most of the time. */
static void choose_site(struct model *model, struct ttd_event *event)
{
    struct entropy *entropy = &model->entropy;
    uint64_t site = chance(entropy, 32) ? entropy_below(entropy, 8) : model->events % 4;
    if (!chance(entropy, 32))
        event->action = site % 4 < 2 ? TTD_ACTION_ALLOC : TTD_ACTION_FREE;
    event->stack = model->stacks ? (ttd_id)(1 + site % model->stacks) : TTD_NONE;
    event->heap = model->heaps && !chance(entropy, 64) ? 1 : TTD_NONE;
}

static void program_properties(struct model *model, struct ttd_event *event)
{
    event->result = ttd_event_returned(event);
    event->api = event->action == TTD_ACTION_FREE      ? TTD_API_FREE
                 : event->action == TTD_ACTION_REALLOC ? TTD_API_REALLOC
                                                       : TTD_API_MALLOC;
    if (event->action != TTD_ACTION_ALLOC && model->block_count) {
        size_t place = model->block_count - 1;
        if (chance(&model->entropy, 4))
            place = (size_t)entropy_below(&model->entropy, model->block_count);
        event->base_address = model->blocks[place];
        model->blocks[place] = model->blocks[--model->block_count];
    }
    if (event->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (event->action != TTD_ACTION_FREE) {
        event->size = 8 * entropy_below(&model->entropy, 100);
        event->address = event->result ? new_block(model) : 0;
    }
}

/* Another API and flags now and then; parameters as the template has them, but for a few. */
static void vary_properties(struct model *model, struct ttd_event *event,
                            uint64_t parameters[TTD_PARAMETERS_MAX])
{
    struct entropy *entropy = &model->entropy;
    if (event->action != TTD_ACTION_REALLOC && chance(entropy, 32))
        event->api = event->action == TTD_ACTION_ALLOC ? TTD_API_NEW : TTD_API_DELETE;
    event->flags = chance(entropy, 64);
    if (chance(entropy, 32))
        return;
    event->parameter_count = (uint32_t)ttd_event_parameters(event, parameters);
    event->parameters = parameters;
    if (chance(entropy, 64))
        parameters[entropy_below(entropy, event->parameter_count)] ^= 8;
}

/* Parameters: those of the template, some of them not, or anything. */
static void choose_parameters(struct model *model, struct ttd_event *event,
                              uint64_t parameters[TTD_PARAMETERS_MAX])
{
    struct entropy *entropy = &model->entropy;
    if (!chance(entropy, 4))
        return;
    event->parameters = parameters;
    event->parameter_count = (uint32_t)ttd_event_parameters(event, parameters);
    event->parameters = parameters;
    if (event->parameter_count == 0 || chance(entropy, 4)) {
        event->parameter_count = (uint32_t)entropy_below(entropy, TTD_PARAMETERS_MAX + 1);
        for (uint32_t i = 0; i < event->parameter_count; i++)
            parameters[i] = entropy_value(entropy);
    }
    if (event->api == TTD_API_CALLOC) {
        event->parameter_count = 2;
        parameters[0] = entropy_below(entropy, 3) * 2;
        parameters[1] = parameters[0] ? event->size / parameters[0] : entropy_value(entropy);
    }
    if (event->parameter_count == 0)
        event->parameters = NULL;
}

enum ttd_status model_write_event(struct model *model, struct ttd_writer *writer,
                                  const struct ttd_event *event)
{
    enum ttd_status status = ttd_writer_event(writer, event);
    if (status != TTD_OK)
        return status;
    struct ttd_event copy = *event;
    copy.number = model->events++;
    model->position = ttd_event_position(event);
    model->wall_time = event->wall_time;
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS, .count = 1, .u.events = &copy};
    text_of_batch(text_table_at(&model->expected, TTD_KIND_EVENTS), &batch);
    return TTD_OK;
}

enum ttd_status model_event(struct model *model, struct ttd_writer *writer)
{
    struct entropy *entropy = &model->entropy;
    /* One after the other: the order within an initializer is not defined. */
    struct ttd_event event = {.heap = any_id(model, model->heaps)};
    event.stack = any_id(model, model->stacks);
    event.thread = any_id(model, model->threads < MODEL_THREADS ? model->threads : MODEL_THREADS);
    uint64_t parameters[TTD_PARAMETERS_MAX];
    if (model->style != MODEL_ANYTHING) {
        event.action = (uint8_t)(TTD_ACTION_ALLOC + entropy_below(entropy, 3));
        if (model->running != TTD_NONE && !chance(entropy, 20))
            event.thread = model->running;
        if (model->style == MODEL_LOOP)
            choose_site(model, &event);
        program_times(model, &event);
        program_properties(model, &event);
        if (model->style == MODEL_LOOP)
            vary_properties(model, &event, parameters);
        event.wall_time = model->wall_time +
                          model->time_unit * chance(entropy, model->style == MODEL_LOOP ? 32 : 4);
    } else {
        event.action = (uint8_t)(TTD_ACTION_ALLOC + entropy_below(entropy, 8));
        any_times(model, &event);
        any_properties(model, &event);
        choose_parameters(model, &event, parameters);
        uint64_t units = UINT64_MAX / model->time_unit;
        event.wall_time = chance(entropy, 4) ? entropy_value(entropy) % units * model->time_unit
                                             : model->wall_time;
    }
    return model_write_event(model, writer, &event);
}
