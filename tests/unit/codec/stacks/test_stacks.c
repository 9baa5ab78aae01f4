/* SPDX-License-Identifier: MIT */
/* Stacks: round trips, and what is refused. */
#include <string.h>

#include "support/entropy.h"
#include "support/fixtures/stacks.h"

#define FIRST_ID 5

TestSuite(stacks, .init = stacks_begin, .fini = stacks_finish);

static void encode(const struct ttd_stack *stacks, size_t count)
{
    ttd_stacks_encoder_clear(&encoder);
    ttd_buffer_clear(&payload);
    for (size_t i = 0; i < count; i++)
        cr_assert(ttd_stacks_encoder_add(&encoder, &stacks[i]));
    cr_assert_eq(ttd_stacks_encoder_size(&encoder) - TTD_STACKS_COLUMNS,
                 encoder.columns[0].size + encoder.columns[1].size + encoder.columns[2].size +
                     encoder.columns[3].size);
    ttd_stacks_encoder_finish(&encoder, &payload);
}

/* Decodes so many stacks of a payload of that size; NULL, or what is wrong. */
static const char *decode(size_t size, struct ttd_stack_link *links, size_t count)
{
    struct ttd_cursor cursor = ttd_cursor_of(payload.data, size);
    const char *what = NULL;
    ttd_stacks_decoder_begin(&decoder, &cursor, FIRST_ID);
    if (cursor.error)
        return cursor.error;
    cr_assert(ttd_stacks_decoder_next(&decoder, links, count, &what));
    return what ? what : ttd_stacks_decoder_finish(&decoder);
}

static void expect_round_trip(const struct ttd_stack *stacks, size_t count)
{
    struct ttd_stack_link links[200];
    cr_assert_leq(count, 200);
    encode(stacks, count);
    cr_assert_eq(payload.size, ttd_stacks_encoder_size(&encoder));
    const char *what = decode(payload.size, links, count);
    cr_assert_null(what, "%s", what);
    for (size_t i = 0; i < count; i++) {
        struct ttd_stack stack = ttd_stacks_decoder_stack(&decoder, stacks[i].id, links[i]);
        cr_assert_eq(stack.id, stacks[i].id);
        cr_assert_eq(stack.parent, stacks[i].parent);
        cr_assert_eq(stack.module, stacks[i].module);
        cr_assert_eq(stack.offset, stacks[i].offset);
    }
}

static const struct ttd_stack three[] = {
    {.id = FIRST_ID, .parent = TTD_NONE, .module = 1, .offset = 0x100},
    {.id = FIRST_ID + 1, .parent = FIRST_ID, .module = UINT32_MAX, .offset = UINT64_MAX},
    {.id = FIRST_ID + 2, .parent = 1, .module = 1, .offset = 0x100}};

Test(stacks, come_back_as_they_were)
{
    expect_round_trip(three, 3);
}

Test(stacks, name_a_frame_once_that_several_have)
{
    encode(three, 3);
    cr_assert_eq(encoder.table.count, 2);
}

Test(stacks, of_random_frames_come_back_as_they_were)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned round = 0; round < 200; round++) {
        struct ttd_stack stacks[200];
        for (ttd_id i = 0; i < 200; i++) {
            stacks[i] = (struct ttd_stack){.id = FIRST_ID + i};
            stacks[i].parent = entropy_pick(&entropy, FIRST_ID + i);
            stacks[i].module = entropy_pick(&entropy, 4);
            stacks[i].offset = entropy_value(&entropy);
        }
        expect_round_trip(stacks, entropy_pick(&entropy, 201));
    }
}

Test(stacks, are_refused_where_they_are_truncated)
{
    struct ttd_stack_link links[3];
    encode(three, 3);
    for (size_t size = 0; size < payload.size; size++)
        cr_assert_not_null(decode(size, links, 3));
}

Test(stacks, must_be_as_many_as_the_header_says)
{
    struct ttd_stack_link links[4];
    encode(three, 3);
    cr_assert_str_eq(decode(payload.size, links, 2), "bytes left over in the payload");
    cr_assert_str_eq(decode(payload.size, links, 4), "payload too short");
}

Test(stacks, must_have_a_parent_before_them)
{
    struct ttd_stack_link links[1];
    struct ttd_stack stack = {.id = FIRST_ID, .parent = 1};
    encode(&stack, 1);
    cr_assert_null(decode(payload.size, links, 1));
    payload.data[TTD_STACKS_COLUMNS] = FIRST_ID; /* as much back */
    cr_assert_str_eq(decode(payload.size, links, 1), "parent of a stack");
}

Test(stacks, must_have_a_frame_that_was_named)
{
    struct ttd_stack_link links[3];
    encode(three, 3);
    uint8_t *frames = payload.data + TTD_STACKS_COLUMNS + encoder.columns[TTD_STACK_PARENTS].size;
    cr_assert_eq(frames[2], 1, "the first one");
    frames[2] = 3;
    cr_assert_str_eq(decode(payload.size, links, 3), "frame of a stack");
}

/* Adds stacks to an encoder of its own, of whose allocations one fails; false if one did. */
static bool add_with_failure(uint64_t failing_call)
{
    struct ttd_stacks_encoder own;
    bool is_added = true;
    ttd_stacks_encoder_init(&own, &allocator);
    memory.counter = (struct chaos_counter){.fail_at = failing_call};
    for (size_t i = 0; i < 3 && is_added; i++)
        is_added = ttd_stacks_encoder_add(&own, &three[i]);
    ttd_stacks_encoder_free(&own);
    return is_added;
}

Test(stacks, say_where_memory_runs_out)
{
    cr_assert(add_with_failure(CHAOS_NEVER));
    uint64_t calls = memory.counter.calls;
    cr_assert_gt(calls, 0);
    for (uint64_t call = 0; call < calls; call++)
        cr_assert_not(add_with_failure(call), "call %u", (unsigned)call);
}
