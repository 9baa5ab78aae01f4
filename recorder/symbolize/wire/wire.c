/* SPDX-License-Identifier: MIT */
#include "symbolize/wire/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrays.h"

enum {
    FLUSH_AT = 64 * 1024,
    CUT_NAME_KEPT = 1024, /* bytes of a name that is too long */
    CUT_NAME_SIZE = CUT_NAME_KEPT + 32,
};

/* ---- Encoding, in the child ---- */

static void wire_flush(struct wire_encoder *encoder)
{
    size_t written = 0;
    while (written < encoder->size) {
        ssize_t n = write(encoder->fd, encoder->data + written, encoder->size - written);
        if (n < 0 && errno != EINTR)
            _exit(EXIT_FAILURE);
        if (n > 0)
            written += (size_t)n;
    }
    encoder->size = 0;
}

static void wire_put(struct wire_encoder *encoder, const void *data, size_t size)
{
    if (size > 0) {
        encoder->data = array_reserve(encoder->data, encoder->size + size, &encoder->capacity, 1);
        if (!encoder->data)
            _exit(EXIT_FAILURE);
        memcpy(encoder->data + encoder->size, data, size);
    }
    encoder->size += size;
}

static void wire_put_number(struct wire_encoder *encoder, uint32_t value)
{
    wire_put(encoder, &value, sizeof value);
}

static void wire_encoder_put_header(struct wire_encoder *encoder, enum wire_kind kind, size_t size)
{
    wire_put_number(encoder, kind);
    wire_put_number(encoder, (uint32_t)size);
}

void wire_encoder_module(struct wire_encoder *encoder, uint32_t module)
{
    wire_encoder_put_header(encoder, WIRE_MODULE, WIRE_NUMBER);
    wire_put_number(encoder, module);
    wire_flush(encoder);
}

/* Size of a string on the wire: overlong ones are sent as unknown. */
static size_t sendable(size_t size)
{
    return size <= SYMBOLIZE_STRING_MAX ? size : 0;
}

/* Returns a name that can be sent: an overlong one is cut, and ends with the hash of the whole,
 * since others may begin alike. */
static const char *sendable_name(const char *name, size_t *size, char cut[CUT_NAME_SIZE])
{
    if (*size <= SYMBOLIZE_STRING_MAX)
        return name;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < *size; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    memcpy(cut, name, CUT_NAME_KEPT);
    *size = CUT_NAME_KEPT + (size_t)snprintf(cut + CUT_NAME_KEPT, CUT_NAME_SIZE - CUT_NAME_KEPT,
                                             "… [%016" PRIx64 "]", hash);
    return cut;
}

static void wire_encoder_put_frame(struct wire_encoder *encoder,
                                   const struct symbolize_frame *frame)
{
    char cut[CUT_NAME_SIZE];
    size_t function_size = frame->function_size;
    const char *function = sendable_name(frame->function, &function_size, cut);
    wire_put_number(encoder, frame->line);
    wire_put_number(encoder, (uint32_t)function_size);
    wire_put_number(encoder, (uint32_t)sendable(frame->file_size));
    wire_put(encoder, function, function_size);
    wire_put(encoder, frame->file, sendable(frame->file_size));
}

static size_t wire_encoder_frame_size(const struct symbolize_frame *frame)
{
    char cut[CUT_NAME_SIZE];
    size_t function_size = frame->function_size;
    sendable_name(frame->function, &function_size, cut);
    return WIRE_FRAME + function_size + sendable(frame->file_size);
}

void wire_encoder_answer(struct wire_encoder *encoder, uint32_t index,
                         const struct symbolize_frame *frames, size_t count)
{
    size_t size = 2 * WIRE_NUMBER;
    size_t fitting = 0;
    while (fitting < count && fitting < SYMBOLIZE_FRAMES_MAX &&
           wire_encoder_frame_size(&frames[fitting]) <= WIRE_BODY_MAX - size)
        size += wire_encoder_frame_size(&frames[fitting++]);
    wire_encoder_put_header(encoder, WIRE_ANSWER, size);
    wire_put_number(encoder, index);
    wire_put_number(encoder, (uint32_t)fitting);
    for (size_t i = 0; i < fitting; i++)
        wire_encoder_put_frame(encoder, &frames[i]);
    if (encoder->size >= FLUSH_AT)
        wire_flush(encoder);
}

void wire_encoder_variable(struct wire_encoder *encoder, uint32_t index,
                           const struct symbolize_frame *variable)
{
    char cut[CUT_NAME_SIZE];
    size_t name_size = variable->function_size;
    const char *name = sendable_name(variable->function, &name_size, cut);
    wire_encoder_put_header(encoder, WIRE_VARIABLE, WIRE_NUMBER + WIRE_SPAN + name_size);
    wire_put_number(encoder, index);
    wire_put(encoder, &variable->begin, sizeof variable->begin);
    wire_put(encoder, &variable->size, sizeof variable->size);
    wire_put(encoder, name, name_size);
    if (encoder->size >= FLUSH_AT)
        wire_flush(encoder);
}

void wire_encoder_end(struct wire_encoder *encoder, enum wire_result result)
{
    wire_encoder_put_header(encoder, WIRE_END, WIRE_NUMBER);
    wire_put_number(encoder, result);
}

void wire_encoder_finished(struct wire_encoder *encoder)
{
    wire_encoder_put_header(encoder, WIRE_FINISHED, 0);
    wire_flush(encoder);
}

/* ---- Decoding, in its parent ---- */

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
static void wire_go_to(struct wire_decoder *decoder, size_t module)
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
    wire_go_to(decoder, decoder->module + 1);
}

static bool wire_take_number(struct body *body, uint32_t *value)
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

static bool wire_take_string(struct body *body, uint32_t size, const char **string)
{
    if (size > SYMBOLIZE_STRING_MAX || size > body->size)
        return false;
    *string = size > 0 ? (const char *)body->next : NULL;
    body->next += size;
    body->size -= size;
    return true;
}

static bool wire_take_frame(struct body *body, struct symbolize_frame *frame)
{
    *frame = (struct symbolize_frame){.line = 0};
    uint32_t function_size;
    uint32_t file_size;
    if (!wire_take_number(body, &frame->line) || !wire_take_number(body, &function_size) ||
        !wire_take_number(body, &file_size) ||
        !wire_take_string(body, function_size, &frame->function) ||
        !wire_take_string(body, file_size, &frame->file))
        return false;
    frame->function_size = function_size;
    frame->file_size = file_size;
    return true;
}

/* Takes the index of an offset that has no answer yet, in a module of data or of code. */
static bool wire_decoder_take_index(const struct wire_decoder *decoder, struct body *body,
                                    bool is_data, uint32_t *index)
{
    if (!decoder->is_in_module || !wire_take_number(body, index))
        return false;
    const struct symbolize_module *module = &decoder->modules[decoder->module];
    return module->is_data == is_data && *index < module->offset_count &&
           !decoder->answered[*index];
}

static bool wire_take_variable(struct wire_decoder *decoder, struct body *body)
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

static bool wire_take_answer(struct wire_decoder *decoder, struct body *body)
{
    struct symbolize_frame frames[SYMBOLIZE_FRAMES_MAX];
    uint32_t index;
    uint32_t count;
    if (!wire_decoder_take_index(decoder, body, false, &index) || !wire_take_number(body, &count) ||
        count < 1 || count > SYMBOLIZE_FRAMES_MAX)
        return false;
    const struct symbolize_module *module = &decoder->modules[decoder->module];
    for (uint32_t i = 0; i < count; i++) {
        if (!wire_take_frame(body, &frames[i]))
            return false;
    }
    if (body->size != 0)
        return false;
    decoder->answered[index] = 1;
    decoder->named++;
    decoder->function(decoder->context, decoder->module, module->offsets[index], frames, count);
    return true;
}

static bool wire_take_module(struct wire_decoder *decoder, struct body *body)
{
    uint32_t module;
    if (decoder->is_in_module || !wire_take_number(body, &module) || body->size != 0 ||
        module < decoder->module || module >= decoder->count)
        return false;
    for (size_t i = decoder->module; i < module; i++) {
        if (decoder->modules[i].offset_count > 0)
            return false;
    }
    wire_go_to(decoder, module);
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
    if (!decoder->is_in_module || !wire_take_number(body, &result) || body->size != 0 ||
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
    wire_go_to(decoder, decoder->module + 1);
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
        return wire_take_module(decoder, &body);
    case WIRE_ANSWER:
        return wire_take_answer(decoder, &body);
    case WIRE_VARIABLE:
        return wire_take_variable(decoder, &body);
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
        wire_take_number(&after, &kind);
        wire_take_number(&after, &body_size);
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
