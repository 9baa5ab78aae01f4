/* SPDX-License-Identifier: MIT */
#include "wire_encoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_AT = 64 * 1024 };

static void flush(struct wire_encoder *encoder)
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

static void put(struct wire_encoder *encoder, const void *data, size_t size)
{
    if (size > encoder->capacity - encoder->size) {
        size_t new_capacity = 2 * (encoder->size + size) + FLUSH_AT;
        encoder->data = realloc(encoder->data, new_capacity);
        if (encoder->data == NULL)
            _exit(EXIT_FAILURE);
        encoder->capacity = new_capacity;
    }
    if (size > 0)
        memcpy(encoder->data + encoder->size, data, size);
    encoder->size += size;
}

static void put_number(struct wire_encoder *encoder, uint32_t value)
{
    put(encoder, &value, sizeof value);
}

static void put_header(struct wire_encoder *encoder, enum wire_kind kind, size_t size)
{
    put_number(encoder, kind);
    put_number(encoder, (uint32_t)size);
}

void wire_encoder_module(struct wire_encoder *encoder, uint32_t module)
{
    put_header(encoder, WIRE_MODULE, WIRE_NUMBER);
    put_number(encoder, module);
    flush(encoder);
}

/* Size of a string on the wire: overlong ones are sent as unknown. */
static size_t sendable(size_t size)
{
    return size <= SYMBOLIZE_STRING_MAX ? size : 0;
}

static size_t frame_size(const struct symbolize_frame *frame)
{
    return WIRE_FRAME + sendable(frame->function_size) + sendable(frame->file_size);
}

static void put_frame(struct wire_encoder *encoder, const struct symbolize_frame *frame)
{
    put_number(encoder, frame->line);
    put_number(encoder, (uint32_t)sendable(frame->function_size));
    put_number(encoder, (uint32_t)sendable(frame->file_size));
    put(encoder, frame->function, sendable(frame->function_size));
    put(encoder, frame->file, sendable(frame->file_size));
}

void wire_encoder_answer(struct wire_encoder *encoder, uint32_t index,
                         const struct symbolize_frame *frames, size_t count)
{
    size_t size = 2 * WIRE_NUMBER;
    size_t fitting = 0;
    while (fitting < count && fitting < SYMBOLIZE_FRAMES_MAX &&
           frame_size(&frames[fitting]) <= WIRE_BODY_MAX - size)
        size += frame_size(&frames[fitting++]);
    put_header(encoder, WIRE_ANSWER, size);
    put_number(encoder, index);
    put_number(encoder, (uint32_t)fitting);
    for (size_t i = 0; i < fitting; i++)
        put_frame(encoder, &frames[i]);
    if (encoder->size >= FLUSH_AT)
        flush(encoder);
}

void wire_encoder_variable(struct wire_encoder *encoder, uint32_t index,
                           const struct symbolize_frame *variable)
{
    size_t name_size = sendable(variable->function_size);
    put_header(encoder, WIRE_VARIABLE, WIRE_NUMBER + WIRE_SPAN + name_size);
    put_number(encoder, index);
    put(encoder, &variable->begin, sizeof variable->begin);
    put(encoder, &variable->size, sizeof variable->size);
    put(encoder, variable->function, name_size);
    if (encoder->size >= FLUSH_AT)
        flush(encoder);
}

void wire_encoder_end(struct wire_encoder *encoder, enum wire_result result)
{
    put_header(encoder, WIRE_END, WIRE_NUMBER);
    put_number(encoder, result);
}

void wire_encoder_finished(struct wire_encoder *encoder)
{
    put_header(encoder, WIRE_FINISHED, 0);
    flush(encoder);
}
