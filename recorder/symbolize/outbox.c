/* SPDX-License-Identifier: MIT */
#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_AT = 64 * 1024 };

static void flush(struct outbox *box)
{
    size_t done = 0;
    while (done < box->size) {
        ssize_t n = write(box->fd, box->data + done, box->size - done);
        if (n < 0 && errno != EINTR)
            _exit(EXIT_FAILURE);
        if (n > 0)
            done += (size_t)n;
    }
    box->size = 0;
}

static void put(struct outbox *box, const void *data, size_t size)
{
    if (size > box->capacity - box->size) {
        size_t wanted = 2 * (box->size + size) + FLUSH_AT;
        box->data = realloc(box->data, wanted);
        if (box->data == NULL)
            _exit(EXIT_FAILURE);
        box->capacity = wanted;
    }
    if (size > 0)
        memcpy(box->data + box->size, data, size);
    box->size += size;
}

static void put_number(struct outbox *box, uint32_t value)
{
    put(box, &value, sizeof value);
}

static void put_header(struct outbox *box, enum wire_kind kind, size_t size)
{
    put_number(box, kind);
    put_number(box, (uint32_t)size);
}

void outbox_module(struct outbox *box, uint32_t module)
{
    put_header(box, WIRE_MODULE, WIRE_NUMBER);
    put_number(box, module);
    flush(box);
}

static size_t sendable(size_t size)
{
    return size <= SYMBOLIZE_STRING_MAX ? size : 0;
}

static size_t frame_size(const struct symbolize_frame *frame)
{
    return WIRE_FRAME + sendable(frame->function_size) + sendable(frame->file_size);
}

static void put_frame(struct outbox *box, const struct symbolize_frame *frame)
{
    put_number(box, frame->line);
    put_number(box, (uint32_t)sendable(frame->function_size));
    put_number(box, (uint32_t)sendable(frame->file_size));
    put(box, frame->function, sendable(frame->function_size));
    put(box, frame->file, sendable(frame->file_size));
}

void outbox_answer(struct outbox *box, uint32_t index, const struct symbolize_frame *frames,
                   size_t count)
{
    size_t size = 2 * WIRE_NUMBER;
    size_t fitting = 0;
    while (fitting < count && fitting < SYMBOLIZE_FRAMES_MAX &&
           frame_size(&frames[fitting]) <= WIRE_BODY_MAX - size)
        size += frame_size(&frames[fitting++]);
    put_header(box, WIRE_ANSWER, size);
    put_number(box, index);
    put_number(box, (uint32_t)fitting);
    for (size_t i = 0; i < fitting; i++)
        put_frame(box, &frames[i]);
    if (box->size >= FLUSH_AT)
        flush(box);
}

void outbox_end(struct outbox *box, enum wire_result result)
{
    put_header(box, WIRE_END, WIRE_NUMBER);
    put_number(box, result);
}

void outbox_finished(struct outbox *box)
{
    put_header(box, WIRE_FINISHED, 0);
    flush(box);
}
