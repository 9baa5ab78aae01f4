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
