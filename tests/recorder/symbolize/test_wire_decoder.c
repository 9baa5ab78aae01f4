/* SPDX-License-Identifier: MIT */
/* The parent's end of the pipe: the order of messages, in pieces of any size. */
#include "wire_stream.h"

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
