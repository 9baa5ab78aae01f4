/* SPDX-License-Identifier: MIT */
/* Streams of messages such as a child sends, and a decoder that takes them in pieces. */
#ifndef TESTS_SYMBOLIZE_WIRE_STREAM_H
#define TESTS_SYMBOLIZE_WIRE_STREAM_H

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "symbolize/wire/wire.h"

enum { OFFSETS = 3, STREAM_MAX = 2 * SYMBOLIZE_STRING_MAX };

static const uint64_t offsets[OFFSETS] = {10, 20, 30};

static const struct symbolize_module modules[] = {
    {.path = "/a", .offsets = offsets, .offset_count = OFFSETS},
    {.path = "/empty", .offsets = NULL, .offset_count = 0},
    {.path = "/b", .offsets = offsets, .offset_count = OFFSETS},
};

struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t size;
};

static inline void add(struct stream *stream, uint32_t number)
{
    memcpy(stream->bytes + stream->size, &number, sizeof number);
    stream->size += sizeof number;
}

static inline void add_module(struct stream *stream, uint32_t module)
{
    add(stream, WIRE_MODULE);
    add(stream, 4);
    add(stream, module);
}

static inline void add_end(struct stream *stream, uint32_t result)
{
    add(stream, WIRE_END);
    add(stream, 4);
    add(stream, result);
}

static inline void add_text(struct stream *stream, const char *text)
{
    memcpy(stream->bytes + stream->size, text, strlen(text));
    stream->size += strlen(text);
}

/* One frame: function "ff", file "file". */
static inline void add_answer(struct stream *stream, uint32_t index)
{
    add(stream, WIRE_ANSWER);
    add(stream, 8 + 12 + 6);
    add(stream, index);
    add(stream, 1);
    add(stream, 42);
    add(stream, 2);
    add(stream, 4);
    add_text(stream, "fffile");
}

static inline void add_finished(struct stream *stream)
{
    add(stream, WIRE_FINISHED);
    add(stream, 0);
}

static inline struct stream good_stream(void)
{
    struct stream stream = {.size = 0};
    add_module(&stream, 0);
    add_answer(&stream, 2);
    add_answer(&stream, 0);
    add_end(&stream, WIRE_READ);
    add_module(&stream, 2);
    add_answer(&stream, 0);
    add_end(&stream, WIRE_ABSENT);
    add_finished(&stream);
    return stream;
}

struct seen {
    size_t answers;
    bool odd;
    /* Offsets of module 0 that have no name, added up. */
    uint64_t nameless;
};

static inline void look(void *context, size_t module, uint64_t offset,
                        const struct symbolize_frame *frames, size_t count)
{
    struct seen *seen = context;
    cr_assert(module == 0 || module == 2);
    cr_assert(offset == 10 || offset == 20 || offset == 30);
    cr_assert(count <= SYMBOLIZE_FRAMES_MAX);
    if (count == 0) {
        seen->nameless += offset;
        return;
    }
    seen->answers++;
    seen->odd = seen->odd || count != 1 || frames->line != 42 || frames->function_size != 2 ||
                frames->file_size != 4 || memcmp(frames->function, "ff", 2) != 0 ||
                memcmp(frames->file, "file", 4) != 0;
    for (size_t i = 0; i < count; i++) {
        cr_assert(frames[i].function_size <= SYMBOLIZE_STRING_MAX);
        cr_assert((!frames[i].function) == (frames[i].function_size == 0));
        cr_assert((!frames[i].file) == (frames[i].file_size == 0));
    }
}

/* Gives the bytes in pieces. Each is in a buffer of its size at the end of the decoder's. */
static inline bool feed(const struct stream *stream, size_t piece, struct wire_decoder *decoder,
                        struct seen *seen)
{
    *seen = (struct seen){0};
    cr_assert(wire_decoder_init(decoder, modules, 3, look, seen) == 0);
    for (size_t done = 0; done < stream->size;) {
        size_t room;
        uint8_t *at = wire_decoder_room(decoder, &room);
        size_t size = stream->size - done < piece ? stream->size - done : piece;
        cr_assert(room >= size);
        memcpy(at, stream->bytes + done, size);
        if (!wire_decoder_take(decoder, size))
            return false;
        done += size;
    }
    return true;
}

static inline void expect_refused(const struct stream *stream)
{
    struct wire_decoder decoder;
    struct seen seen;
    cr_assert_not(feed(stream, STREAM_MAX, &decoder, &seen));
    wire_decoder_free(&decoder);
}

#endif
