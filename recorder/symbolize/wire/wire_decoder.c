/* SPDX-License-Identifier: MIT */
#include "symbolize/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 2 * (WIRE_HEADER + WIRE_BODY_MAX) };

/* Cursor over the rest of a message's body. */
struct body {
    const uint8_t *next;
    size_t size;
};

int wire_decoder_init(struct wire_decoder *decoder, const struct symbolize_module *modules,
                      size_t count, symbolize_function *function, void *context)
{
    *decoder = (struct wire_decoder){
        .modules = modules, .count = count, .function = function, .context = context};
    size_t max_offsets = 1;
    for (size_t i = 0; i < count; i++) {
        if (modules[i].offset_count > max_offsets)
            max_offsets = modules[i].offset_count;
    }
    decoder->answered = calloc(max_offsets, 1);
    decoder->data = malloc(CAPACITY);
    return decoder->answered && decoder->data ? 0 : ENOMEM;
}

void wire_decoder_free(struct wire_decoder *decoder)
{
    free(decoder->answered);
    free(decoder->data);
}

/* Goes to a module, possibly one past the last. */
static void decoder_go_to(struct wire_decoder *decoder, size_t module)
{
    if (module == decoder->module)
        return;
    if (decoder->module < decoder->count)
        memset(decoder->answered, 0, decoder->modules[decoder->module].offset_count);
    decoder->module = module;
}

void wire_decoder_restart(struct wire_decoder *decoder)
{
    decoder->size = 0;
    decoder->is_in_module = false;
}

static void wire_decoder_set_result(struct wire_decoder *decoder, enum symbolize_result result)
{
    if (decoder->module_results)
        decoder->module_results[decoder->module] = result;
}

void wire_decoder_skip(struct wire_decoder *decoder)
{
    wire_decoder_set_result(decoder, SYMBOLIZE_FAILED);
    decoder_go_to(decoder, decoder->module + 1);
}

static bool decoder_take_number(struct body *body, uint32_t *value)
{
    if (body->size < sizeof *value)
        return false;
    memcpy(value, body->next, sizeof *value);
    body->next += sizeof *value;
    body->size -= sizeof *value;
    return true;
}

static bool wire_decoder_take_span(struct body *body, struct symbolize_frame *variable)
{
    if (body->size < WIRE_SPAN)
        return false;
    memcpy(&variable->begin, body->next, sizeof variable->begin);
    memcpy(&variable->size, body->next + sizeof variable->begin, sizeof variable->size);
    body->next += WIRE_SPAN;
    body->size -= WIRE_SPAN;
    return variable->size > 0 && variable->size - 1 <= UINT64_MAX - variable->begin;
}

static bool decoder_take_string(struct body *body, uint32_t size, const char **string)
{
    if (size > SYMBOLIZE_STRING_MAX || size > body->size)
        return false;
    *string = size > 0 ? (const char *)body->next : NULL;
    body->next += size;
    body->size -= size;
    return true;
}

static bool decoder_take_frame(struct body *body, struct symbolize_frame *frame)
{
    *frame = (struct symbolize_frame){.line = 0};
    uint32_t function_size;
    uint32_t file_size;
    if (!decoder_take_number(body, &frame->line) || !decoder_take_number(body, &function_size) ||
        !decoder_take_number(body, &file_size) ||
        !decoder_take_string(body, function_size, &frame->function) ||
        !decoder_take_string(body, file_size, &frame->file))
        return false;
    frame->function_size = function_size;
    frame->file_size = file_size;
    return true;
}

/* Takes the index of an offset that has no answer yet, in a module of data or of code. */
static bool wire_decoder_take_index(const struct wire_decoder *decoder, struct body *body,
                                    bool is_data, uint32_t *index)
{
    if (!decoder->is_in_module || !decoder_take_number(body, index))
        return false;
    const struct symbolize_module *module = &decoder->modules[decoder->module];
    return module->is_data == is_data && *index < module->offset_count &&
           !decoder->answered[*index];
}

static bool decoder_take_variable(struct wire_decoder *decoder, struct body *body)
{
    struct symbolize_frame variable = {.line = 0};
    uint32_t index;
    if (!wire_decoder_take_index(decoder, body, true, &index) ||
        !wire_decoder_take_span(body, &variable) || body->size > SYMBOLIZE_STRING_MAX)
        return false;
    uint64_t offset = decoder->modules[decoder->module].offsets[index];
    if (offset < variable.begin || offset - variable.begin >= variable.size)
        return false;
    variable.function_size = body->size;
    variable.function = body->size > 0 ? (const char *)body->next : NULL;
    decoder->answered[index] = 1;
    decoder->named += body->size > 0;
    decoder->function(decoder->context, decoder->module, offset, &variable, 1);
    return true;
}

static bool decoder_take_answer(struct wire_decoder *decoder, struct body *body)
{
    struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
    uint32_t index;
    uint32_t count;
    if (!wire_decoder_take_index(decoder, body, false, &index) ||
        !decoder_take_number(body, &count) || count < 1 || count > SYMBOLIZE_FRAMES_MAX)
        return false;
    const struct symbolize_module *module = &decoder->modules[decoder->module];
    for (uint32_t i = 0; i < count; i++) {
        if (!decoder_take_frame(body, &frames[i]))
            return false;
    }
    if (body->size != 0)
        return false;
    decoder->answered[index] = 1;
    decoder->named++;
    decoder->function(decoder->context, decoder->module, module->offsets[index], frames, count);
    return true;
}

static bool decoder_take_module(struct wire_decoder *decoder, struct body *body)
{
    uint32_t module;
    if (decoder->is_in_module || !decoder_take_number(body, &module) || body->size != 0 ||
        module < decoder->module || module >= decoder->count)
        return false;
    for (size_t i = decoder->module; i < module; i++) {
        if (decoder->modules[i].offset_count > 0)
            return false;
    }
    decoder_go_to(decoder, module);
    decoder->is_in_module = true;
    if (decoder->begin)
        decoder->begin(decoder->context, module);
    return true;
}

static void wire_decoder_tell_nameless(const struct wire_decoder *decoder)
{
    const struct symbolize_module *module = &decoder->modules[decoder->module];
    for (size_t i = 0; i < module->offset_count; i++) {
        if (!decoder->answered[i])
            decoder->function(decoder->context, decoder->module, module->offsets[i], NULL, 0);
    }
}

static enum symbolize_result wire_decoder_result_of(uint32_t result, bool is_reduced)
{
    if (result != WIRE_READ)
        return result == WIRE_ABSENT ? SYMBOLIZE_ABSENT : SYMBOLIZE_FAILED;
    return is_reduced ? SYMBOLIZE_REDUCED : SYMBOLIZE_READ;
}

static bool wire_decoder_take_end(struct wire_decoder *decoder, struct body *body)
{
    uint32_t result;
    if (!decoder->is_in_module || !decoder_take_number(body, &result) || body->size != 0 ||
        result >= WIRE_RESULTS)
        return false;
    bool reduced = decoder->is_reduced && decoder->reduced_module == decoder->module;
    if (result == WIRE_READ && reduced)
        decoder->reduced_count++;
    else
        decoder->results[result]++;
    wire_decoder_set_result(decoder, wire_decoder_result_of(result, reduced));
    if (result == WIRE_READ && !reduced && !decoder->modules[decoder->module].is_data)
        wire_decoder_tell_nameless(decoder);
    decoder->is_in_module = false;
    decoder_go_to(decoder, decoder->module + 1);
    return true;
}

static bool wire_decoder_take_finished(struct wire_decoder *decoder, const struct body *body)
{
    if (decoder->is_in_module || body->size != 0)
        return false;
    for (size_t i = decoder->module; i < decoder->count; i++) {
        if (decoder->modules[i].offset_count > 0)
            return false;
    }
    decoder->is_finished = true;
    return true;
}

static bool wire_decoder_take_message(struct wire_decoder *decoder, uint32_t kind, struct body body)
{
    if (decoder->is_finished)
        return false;
    switch (kind) {
    case WIRE_MODULE:
        return decoder_take_module(decoder, &body);
    case WIRE_ANSWER:
        return decoder_take_answer(decoder, &body);
    case WIRE_VARIABLE:
        return decoder_take_variable(decoder, &body);
    case WIRE_END:
        return wire_decoder_take_end(decoder, &body);
    case WIRE_FINISHED:
        return wire_decoder_take_finished(decoder, &body);
    default:
        return false;
    }
}

uint8_t *wire_decoder_room(struct wire_decoder *decoder, size_t *size)
{
    *size = CAPACITY - decoder->size;
    return decoder->data + decoder->size;
}

bool wire_decoder_take(struct wire_decoder *decoder, size_t size)
{
    decoder->size += size;
    struct body input = {decoder->data, decoder->size};
    while (input.size >= WIRE_HEADER) {
        struct body after = input;
        uint32_t kind = 0;
        uint32_t body_size = 0;
        decoder_take_number(&after, &kind);
        decoder_take_number(&after, &body_size);
        if (body_size > WIRE_BODY_MAX)
            return false;
        if (body_size > after.size)
            break;
        if (!wire_decoder_take_message(decoder, kind, (struct body){after.next, body_size}))
            return false;
        input = (struct body){after.next + body_size, after.size - body_size};
    }
    memmove(decoder->data, input.next, input.size);
    decoder->size = input.size;
    return true;
}
