/* SPDX-License-Identifier: MIT */
/* The check of stacks that decodes none: it accepts what decodes, and refuses each violation. */
#include <string.h>

#include "support/entropy.h"
#include "support/fixtures/stacks.h"

#define FIRST_ID   100
#define COUNT_MAX  5000
#define MODULE_MAX 9

static uint16_t depths[FIRST_ID + COUNT_MAX];

TestSuite(stacks_check, .init = stacks_begin, .fini = stacks_finish);

/* The stacks before the chunk are one frame deep; those of the chunk have no depths yet. */
static void set_depths_before(void)
{
    memset(depths, 0xFF, sizeof depths);
    depths[TTD_NONE] = 0;
    for (ttd_id id = 1; id < FIRST_ID; id++)
        depths[id] = 1;
}

static void encode(const struct ttd_stack *stacks, size_t count)
{
    ttd_stacks_encoder_clear(&encoder);
    ttd_buffer_clear(&payload);
    for (size_t i = 0; i < count; i++)
        cr_assert(ttd_stacks_encoder_add(&encoder, &stacks[i]));
    ttd_stacks_encoder_finish(&encoder, &payload);
}

/* Begins the payload as a chunk. Returns whether its columns are in order. */
static bool begin_chunk(void)
{
    struct ttd_cursor cursor = ttd_cursor_of(payload.data, payload.size);
    set_depths_before();
    ttd_stacks_decoder_begin(&decoder, &cursor, FIRST_ID);
    return !cursor.error;
}

static bool accepts(size_t count)
{
    cr_assert(begin_chunk());
    return ttd_stacks_decoder_accepts(&decoder, count, MODULE_MAX, depths);
}

static const struct ttd_stack three[] = {
    {.id = FIRST_ID, .parent = TTD_NONE, .module = 1, .offset = 0x100},
    {.id = FIRST_ID + 1, .parent = FIRST_ID, .module = MODULE_MAX, .offset = UINT64_MAX},
    {.id = FIRST_ID + 2, .parent = 1, .module = 1, .offset = 0x100}};

/* ---- What is accepted ---- */

Test(stacks_check, accepts_valid_stacks_and_notes_their_depths)
{
    encode(three, 3);

    cr_assert(accepts(3));

    cr_assert_eq(depths[FIRST_ID], 1);
    cr_assert_eq(depths[FIRST_ID + 1], 2);
    cr_assert_eq(depths[FIRST_ID + 2], 2);
}

/* Encodes `depth` stacks each of which is called from the one before, and stacks without a caller
 * after them. */
static void encode_chain(size_t depth, size_t count)
{
    static struct ttd_stack stacks[COUNT_MAX];
    for (ttd_id i = 0; i < count; i++) {
        stacks[i] = (struct ttd_stack){.id = FIRST_ID + i, .offset = i % 3};
        if (i > 0 && i < depth)
            stacks[i].parent = FIRST_ID + i - 1;
    }
    encode(stacks, count);
}

Test(stacks_check, accepts_stacks_that_are_nearly_as_deep_as_they_may_be)
{
    encode_chain(TTD_STACK_DEPTH_MAX - 1, TTD_STACK_DEPTH_MAX - 1);

    cr_assert(accepts(TTD_STACK_DEPTH_MAX - 1));

    cr_assert_eq(depths[FIRST_ID + TTD_STACK_DEPTH_MAX - 2], TTD_STACK_DEPTH_MAX - 1);
}

/* ---- What is refused ---- */

Test(stacks_check, refuses_stacks_that_are_too_deep)
{
    encode_chain(TTD_STACK_DEPTH_MAX + 1, TTD_STACK_DEPTH_MAX + 1);
    cr_assert_not(accepts(TTD_STACK_DEPTH_MAX + 1));
}

/* Those that follow are read one by one, the deep ones eight at a time. */
Test(stacks_check, refuses_stacks_that_are_too_deep_before_others)
{
    encode_chain(TTD_STACK_DEPTH_MAX + 8, TTD_STACK_DEPTH_MAX + 40);
    cr_assert_not(accepts(TTD_STACK_DEPTH_MAX + 40));
}

Test(stacks_check, refuses_a_number_that_is_longer_than_it_needs)
{
    static const uint8_t one[] = {0x81, 0x00};
    encode(three, 1);
    cr_assert(begin_chunk());
    decoder.columns[TTD_STACK_PARENTS] = ttd_cursor_of(one, sizeof one);
    cr_assert_not(ttd_stacks_decoder_accepts(&decoder, 1, MODULE_MAX, depths));
}

Test(stacks_check, refuses_a_module_that_is_not_defined)
{
    struct ttd_stack stack = {.id = FIRST_ID, .module = MODULE_MAX + 1};
    encode(&stack, 1);
    cr_assert_not(accepts(1));
}

Test(stacks_check, refuses_other_numbers_of_stacks_than_there_are)
{
    encode(three, 3);
    cr_assert_not(accepts(2));
    cr_assert_not(accepts(4));
}

static uint8_t *column_bytes(int column)
{
    uint8_t *bytes = payload.data + TTD_STACKS_COLUMNS;
    for (int i = 0; i < column; i++)
        bytes += encoder.columns[i].size;
    return bytes;
}

Test(stacks_check, refuses_a_parent_before_the_first_stack)
{
    struct ttd_stack stack = {.id = FIRST_ID, .parent = 1};
    encode(&stack, 1);
    cr_assert(accepts(1));
    *column_bytes(TTD_STACK_PARENTS) = FIRST_ID; /* as many ids back as there are */
    cr_assert_not(accepts(1));
}

Test(stacks_check, refuses_a_frame_that_was_not_named)
{
    encode(three, 3);
    uint8_t *frames = column_bytes(TTD_STACK_FRAMES);
    cr_assert_eq(frames[2], 1, "the third stack repeats the first frame");
    frames[2] = 3;
    cr_assert_not(accepts(3));
}

Test(stacks_check, refuses_each_column_that_is_cut_short)
{
    encode(three, 3);
    for (int column = 0; column < TTD_STACK_COLUMN_COUNT; column++) {
        cr_assert(begin_chunk());
        decoder.columns[column].end--;
        cr_assert_not(ttd_stacks_decoder_accepts(&decoder, 3, MODULE_MAX, depths), "column %d",
                      column);
    }
}

Test(stacks_check, refuses_each_column_with_a_byte_left_over)
{
    uint8_t longer[64] = {0};
    encode(three, 3);
    for (int column = 0; column < TTD_STACK_COLUMN_COUNT; column++) {
        cr_assert(begin_chunk());
        size_t size = ttd_cursor_left(&decoder.columns[column]);
        cr_assert_lt(size, sizeof longer);
        memcpy(longer, decoder.columns[column].next, size);
        longer[size] = 0;
        decoder.columns[column] = ttd_cursor_of(longer, size + 1);
        cr_assert_not(ttd_stacks_decoder_accepts(&decoder, 3, MODULE_MAX, depths), "column %d",
                      column);
    }
}

/* ---- The same answer as decoding ---- */

/* Decodes a chunk that was begun, and checks each stack by itself. */
static bool decodes(size_t count, uint16_t *expected_depths)
{
    static struct ttd_stack_link links[COUNT_MAX];
    const char *what;
    cr_assert(ttd_stacks_decoder_next(&decoder, links, count, &what));
    if (what || ttd_stacks_decoder_finish(&decoder))
        return false;
    for (size_t i = 0; i < count; i++) {
        ttd_id id = FIRST_ID + (ttd_id)i;
        struct ttd_stack stack = ttd_stacks_decoder_stack(&decoder, id, links[i]);
        expected_depths[id] = (uint16_t)(expected_depths[stack.parent] + 1);
        if (stack.module > MODULE_MAX || expected_depths[id] > TTD_STACK_DEPTH_MAX)
            return false;
    }
    return true;
}

/* Returns whether the chunk is accepted. */
static bool expect_same_answer(size_t count)
{
    static uint16_t expected_depths[FIRST_ID + COUNT_MAX];
    set_depths_before();
    memcpy(expected_depths, depths, sizeof depths);
    if (!begin_chunk())
        return false;
    bool is_accepted = ttd_stacks_decoder_accepts(&decoder, count, MODULE_MAX, depths);
    cr_assert_eq(is_accepted, decodes(count, expected_depths));
    if (is_accepted)
        cr_assert_eq(memcmp(depths, expected_depths, (FIRST_ID + count) * sizeof *depths), 0);
    return is_accepted;
}

/* Encodes random valid stacks, most of which are called from one shortly before. */
static size_t encode_at_random(struct entropy *entropy)
{
    struct ttd_stack stacks[200];
    size_t count = 1 + entropy_pick(entropy, 200);
    for (ttd_id i = 0; i < count; i++) {
        ttd_id id = FIRST_ID + i;
        stacks[i] = (struct ttd_stack){.id = id};
        stacks[i].parent = entropy_pick(entropy, 50) ? id - 1 - entropy_pick(entropy, 90)
                                                     : entropy_pick(entropy, id);
        stacks[i].module = entropy_pick(entropy, MODULE_MAX + 1);
        stacks[i].offset =
            entropy_pick(entropy, 4) ? entropy_pick(entropy, 10) : entropy_value(entropy);
    }
    encode(stacks, count);
    return count;
}

Test(stacks_check, accepts_random_stacks)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned round = 0; round < 300; round++)
        cr_assert(expect_same_answer(encode_at_random(&entropy)), "round %u", round);
}

Test(stacks_check, answers_as_decoding_does_with_any_byte_changed)
{
    struct entropy entropy = entropy_of_seed(2);
    unsigned accepted = 0, refused = 0;
    for (unsigned round = 0; round < 3000; round++) {
        size_t count = encode_at_random(&entropy);
        size_t at = TTD_STACKS_COLUMNS +
                    entropy_pick(&entropy, (unsigned)payload.size - TTD_STACKS_COLUMNS);
        payload.data[at] = (uint8_t)entropy_pick(&entropy, 256);
        if (expect_same_answer(count))
            accepted++;
        else
            refused++;
    }
    cr_assert_gt(accepted, 100);
    cr_assert_gt(refused, 100);
}
