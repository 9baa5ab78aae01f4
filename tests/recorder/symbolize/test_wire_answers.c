/* SPDX-License-Identifier: MIT */
/* The parent's end of the pipe: the frames and the variables of an answer. */
#include "wire_stream.h"

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

Test(wire_answers, refuses_bad_numbers_of_frames)
{
    expect_frames(0, false);
    expect_frames(1, true);
    expect_frames(SYMBOLIZE_FRAMES_MAX, true);
    expect_frames(SYMBOLIZE_FRAMES_MAX + 1, false);
}

Test(wire_answers, refuses_bad_sizes)
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

static const struct symbolize_module data = {
    .path = "/data", .offsets = offsets, .offset_count = OFFSETS, .is_data = true};

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

Test(wire_answers, takes_variables_that_hold_their_offset)
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

Test(wire_answers, keeps_code_and_data_apart)
{
    struct stream variable = variable_stream(1, 16, 5), answer = {.size = 0};
    add_module(&answer, 0);
    add_answer(&answer, 1);
    cr_expect_not(is_taken(&modules[0], &variable));
    cr_expect_not(is_taken(&data, &answer));
}
