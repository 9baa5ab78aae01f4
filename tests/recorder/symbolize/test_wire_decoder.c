/* SPDX-License-Identifier: MIT */
/* The parent's end of the pipe, fed with bytes. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "wire/wire_decoder.h"

enum { OFFSETS = 3, STREAM_MAX = 2 * SYMBOLIZE_STRING_MAX };

static const uint64_t offsets[OFFSETS] = {10, 20, 30};

static const struct symbolize_module modules[] = {
    {"/a", NULL, 0, offsets, OFFSETS, false},
    {"/empty", NULL, 0, NULL, 0, false},
    {"/b", NULL, 0, offsets, OFFSETS, false},
};

struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t size;
};

static void add(struct stream *stream, uint32_t number)
{
    memcpy(stream->bytes + stream->size, &number, sizeof number);
    stream->size += sizeof number;
}

static void add_module(struct stream *stream, uint32_t module)
{
    add(stream, WIRE_MODULE);
    add(stream, 4);
    add(stream, module);
}

static void add_end(struct stream *stream, uint32_t result)
{
    add(stream, WIRE_END);
    add(stream, 4);
    add(stream, result);
}

static void add_text(struct stream *stream, const char *text)
{
    memcpy(stream->bytes + stream->size, text, strlen(text));
    stream->size += strlen(text);
}

/* One frame: function "ff", file "file". */
static void add_answer(struct stream *stream, uint32_t index)
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

static void add_finished(struct stream *stream)
{
    add(stream, WIRE_FINISHED);
    add(stream, 0);
}

static struct stream good_stream(void)
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

static void look(void *context, size_t module, uint64_t offset,
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
        cr_assert((frames[i].function == NULL) == (frames[i].function_size == 0));
        cr_assert((frames[i].file == NULL) == (frames[i].file_size == 0));
    }
}

/* Gives the bytes in pieces. Each is in a buffer of its size at the end of the decoder's. */
static bool feed(const struct stream *stream, size_t piece, struct wire_decoder *decoder,
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

static void expect_refused(const struct stream *stream)
{
    struct wire_decoder decoder;
    struct seen seen;
    cr_assert_not(feed(stream, STREAM_MAX, &decoder, &seen));
    wire_decoder_free(&decoder);
}

Test(wire_decoder, takes_pieces_of_any_size)
{
    struct stream stream = good_stream();
    for (size_t piece = 1; piece <= stream.size; piece++) {
        struct wire_decoder decoder;
        struct seen seen;
        cr_assert(feed(&stream, piece, &decoder, &seen));
        cr_assert(decoder.is_finished && !seen.odd && seen.answers == 3 && decoder.named == 3);
        cr_assert(decoder.results[WIRE_READ] == 1 && decoder.results[WIRE_ABSENT] == 1);
        cr_assert_eq(seen.nameless, 20);
        wire_decoder_free(&decoder);
    }
}

Test(wire_decoder, waits_for_the_rest)
{
    struct stream stream = good_stream();
    for (size_t size = stream.size; size-- > 0;) {
        struct wire_decoder decoder;
        struct seen seen;
        stream.size = size;
        cr_assert(feed(&stream, STREAM_MAX, &decoder, &seen));
        cr_assert_not(decoder.is_finished);
        wire_decoder_free(&decoder);
    }
}

Test(wire_decoder, survives_every_changed_bit)
{
    struct stream good = good_stream();
    for (size_t i = 0; i < good.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct wire_decoder decoder;
            struct seen seen;
            struct stream stream = good;
            stream.bytes[i] ^= (uint8_t)(1u << bit);
            feed(&stream, STREAM_MAX, &decoder, &seen);
            cr_assert(seen.answers <= 3);
            wire_decoder_free(&decoder);
        }
    }
}

Test(wire_decoder, refuses_messages_out_of_order)
{
    struct stream stream = {.size = 0};
    add_answer(&stream, 0);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_end(&stream, WIRE_READ);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 0);
    add_module(&stream, 2);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 0);
    add_finished(&stream);
    expect_refused(&stream);

    stream = good_stream();
    add_finished(&stream);
    expect_refused(&stream);
}

Test(wire_decoder, refuses_modules_that_are_passed_over_or_unknown)
{
    struct stream stream = {.size = 0};
    add_finished(&stream);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 2);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 3);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 0);
    add_end(&stream, WIRE_READ);
    add_module(&stream, 0);
    expect_refused(&stream);
}

Test(wire_decoder, refuses_bad_answers)
{
    struct stream stream = {.size = 0};
    add_module(&stream, 0);
    add_answer(&stream, OFFSETS);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 0);
    add_answer(&stream, 1);
    add_answer(&stream, 1);
    expect_refused(&stream);

    stream = (struct stream){.size = 0};
    add_module(&stream, 0);
    add_end(&stream, WIRE_RESULTS);
    expect_refused(&stream);
}

/* An answer to offset 0 with the sizes given and `bytes` bytes of strings. */
static void expect_frame_refused(uint32_t count, uint32_t function, uint32_t file, uint32_t bytes)
{
    struct stream stream = {.size = 0};
    add_module(&stream, 0);
    add(&stream, WIRE_ANSWER);
    add(&stream, 8 + 12 + bytes);
    add(&stream, 0);
    add(&stream, count);
    add(&stream, 1);
    add(&stream, function);
    add(&stream, file);
    stream.size += bytes;
    expect_refused(&stream);
}

/* An answer with so many frames that know nothing. */
static void expect_frames(uint32_t count, bool accepted)
{
    struct stream stream = {.size = 0};
    struct wire_decoder decoder;
    struct seen seen;
    add_module(&stream, 0);
    add(&stream, WIRE_ANSWER);
    add(&stream, 8 + 12 * count);
    add(&stream, 0);
    add(&stream, count);
    for (uint32_t i = 0; i < 3 * count; i++)
        add(&stream, 0);
    cr_assert_eq(feed(&stream, STREAM_MAX, &decoder, &seen), accepted);
    wire_decoder_free(&decoder);
}

Test(wire_decoder, refuses_bad_numbers_of_frames)
{
    expect_frames(0, false);
    expect_frames(1, true);
    expect_frames(SYMBOLIZE_FRAMES_MAX, true);
    expect_frames(SYMBOLIZE_FRAMES_MAX + 1, false);
}

Test(wire_decoder, refuses_bad_sizes)
{
    expect_frame_refused(0, 0, 0, 0);
    expect_frame_refused(0, 4, 4, 8);
    expect_frame_refused(2, 4, 4, 8);
    expect_frame_refused(SYMBOLIZE_FRAMES_MAX + 1, 4, 4, 8);
    expect_frame_refused(1, 5, 4, 8);
    expect_frame_refused(1, 4, 5, 8);
    expect_frame_refused(1, 4, 3, 8);
    expect_frame_refused(1, UINT32_MAX, 9, 8);
    expect_frame_refused(1, 4, UINT32_MAX, 8);
    expect_frame_refused(1, SYMBOLIZE_STRING_MAX + 1, 0, SYMBOLIZE_STRING_MAX + 1);
    expect_frame_refused(1, 0, SYMBOLIZE_STRING_MAX + 1, SYMBOLIZE_STRING_MAX + 1);

    struct stream stream = {.size = 0};
    add(&stream, WIRE_MODULE);
    add(&stream, WIRE_BODY_MAX + 1);
    expect_refused(&stream);
}

Test(wire_decoder, forgets_what_a_dead_child_began_to_say)
{
    struct stream stream = {.size = 0};
    struct wire_decoder decoder;
    struct seen seen;
    add_module(&stream, 0);
    add_answer(&stream, 0);
    add(&stream, WIRE_ANSWER);
    cr_assert(feed(&stream, STREAM_MAX, &decoder, &seen));
    wire_decoder_restart(&decoder);
    size_t room;
    struct stream next = {.size = 0};
    add_module(&next, 0);
    add_answer(&next, 1);
    memcpy(wire_decoder_room(&decoder, &room), next.bytes, next.size);
    cr_assert(wire_decoder_take(&decoder, next.size));
    cr_assert_eq(seen.answers, 2);
    next.size = 0;
    add_answer(&next, 0);
    memcpy(wire_decoder_room(&decoder, &room), next.bytes, next.size);
    cr_assert_not(wire_decoder_take(&decoder, next.size));
    wire_decoder_free(&decoder);
}

static const struct symbolize_module data = {"/data", NULL, 0, offsets, OFFSETS, true};

/* A variable "vv" for an offset of the data module. */
static struct stream variable_stream(uint32_t index, uint64_t begin, uint64_t size)
{
    struct stream stream = {.size = 0};
    add_module(&stream, 0);
    add(&stream, WIRE_VARIABLE);
    add(&stream, 4 + 16 + 2);
    add(&stream, index);
    memcpy(stream.bytes + stream.size, &begin, sizeof begin);
    memcpy(stream.bytes + stream.size + 8, &size, sizeof size);
    stream.size += 16;
    add_text(&stream, "vv");
    return stream;
}

static void look_at_variable(void *context, size_t module, uint64_t offset,
                             const struct symbolize_frame *frames, size_t count)
{
    size_t *calls = context;
    ++*calls;
    cr_expect(module == 0 && offset == 20 && count == 1);
    cr_expect(frames->begin == 16 && frames->size == 5 && frames->function_size == 2);
    cr_expect(memcmp(frames->function, "vv", 2) == 0);
}

static bool is_taken(const struct symbolize_module *module, const struct stream *stream)
{
    struct wire_decoder decoder;
    size_t room, calls = 0;
    cr_assert(wire_decoder_init(&decoder, module, 1, look_at_variable, &calls) == 0);
    memcpy(wire_decoder_room(&decoder, &room), stream->bytes, stream->size);
    bool taken = wire_decoder_take(&decoder, stream->size);
    cr_expect_eq(calls, taken);
    wire_decoder_free(&decoder);
    return taken;
}

Test(wire_decoder, takes_variables_that_hold_their_offset)
{
    static const struct {
        uint32_t index;
        uint64_t begin, size;
    } refused[] = {{1, 21, 5}, {1, 16, 4}, {1, 16, 0}, {1, 16, UINT64_MAX}, {OFFSETS, 16, 5}};
    struct stream good = variable_stream(1, 16, 5);
    cr_expect(is_taken(&data, &good));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct stream bad = variable_stream(refused[i].index, refused[i].begin, refused[i].size);
        cr_expect_not(is_taken(&data, &bad), "%zu", i);
    }
}

Test(wire_decoder, keeps_code_and_data_apart)
{
    struct stream variable = variable_stream(1, 16, 5), answer = {.size = 0};
    add_module(&answer, 0);
    add_answer(&answer, 1);
    cr_expect_not(is_taken(&modules[0], &variable));
    cr_expect_not(is_taken(&data, &answer));
}
