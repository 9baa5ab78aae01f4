/* SPDX-License-Identifier: MIT */
/* Records of derived files, states: round trips, and the violations that are refused. */
#include "codec/heap_state/heap_states.h"
#include "support/fixtures/buffer.h"
#include "support/fixtures/position.h"

TestSuite(states, .init = buffer_begin, .fini = buffer_finish);

/* A different value in each count, so that two that change places are noticed. */
static struct ttd_state keyframe(void)
{
    return (struct ttd_state){.form = TTD_STATE_KEYFRAME,
                              .position = {.sequence = 7, .steps = 8},
                              .blocks = 300,
                              .next_event = 5000,
                              .events = 4999,
                              .failed = 11,
                              .unfinished = 12,
                              .unknown_releases = 13,
                              .overlaps = 14,
                              .actions = {20, 21, 22, 23, 24, 25, 26, 27, UINT64_MAX}};
}

static struct ttd_state summary(void)
{
    struct ttd_state state = keyframe();
    state.form = TTD_STATE_SUMMARY;
    state.sums = 40;
    state.end = (struct ttd_position){.sequence = 9, .steps = 0};
    return state;
}

static struct ttd_state peak(void)
{
    return (struct ttd_state){.form = TTD_STATE_PEAK,
                              .position = {.sequence = 7, .steps = 8},
                              .blocks = 300,
                              .bytes = UINT64_MAX,
                              .bytes_high = 2};
}

/* Decodes a state from the first `size` encoded bytes. Returns the error, or NULL. */
static const char *decode_state_of_size(struct ttd_state *decoded, size_t size)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
    ttd_decode_state(&cursor, decoded);
    ttd_cursor_finish(&cursor);
    return cursor.error;
}

static struct ttd_state round_trip_state(struct ttd_state state)
{
    struct ttd_state decoded;
    ttd_buffer_clear(&buffer);
    ttd_encode_state(&buffer, &state);
    const char *error = decode_state_of_size(&decoded, buffer.size);
    cr_assert_null(error, "%s", error);
    return decoded;
}

static void expect_counts(const struct ttd_state *state, const struct ttd_state *expected)
{
    cr_assert_eq(state->form, expected->form);
    expect_position(state->position, expected->position);
    cr_assert_eq(state->blocks, expected->blocks);
    cr_assert_eq(state->next_event, expected->next_event);
    cr_assert_eq(state->events, expected->events);
    cr_assert_eq(state->failed, expected->failed);
    cr_assert_eq(state->unfinished, expected->unfinished);
    cr_assert_eq(state->unknown_releases, expected->unknown_releases);
    cr_assert_eq(state->overlaps, expected->overlaps);
    for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
        cr_assert_eq(state->actions[i], expected->actions[i], "action %zu", i);
}

Test(states, keyframe_comes_back_as_it_was)
{
    struct ttd_state expected = keyframe();

    struct ttd_state decoded = round_trip_state(expected);

    expect_counts(&decoded, &expected);
    cr_assert_eq(decoded.sums, 0);
}

Test(states, summary_comes_back_as_it_was)
{
    struct ttd_state expected = summary();

    struct ttd_state decoded = round_trip_state(expected);

    expect_counts(&decoded, &expected);
    cr_assert_eq(decoded.sums, 40);
    expect_position(decoded.end, expected.end);
}

Test(states, summary_may_serve_all_positions_to_the_end_of_the_trace)
{
    struct ttd_state state = summary();
    state.end = ttd_position_invalid();

    struct ttd_state decoded = round_trip_state(state);

    cr_assert_not(ttd_position_is_valid(decoded.end));
}

Test(states, peak_comes_back_as_it_was)
{
    struct ttd_state decoded = round_trip_state(peak());

    cr_assert_eq(decoded.form, TTD_STATE_PEAK);
    expect_position(decoded.position, peak().position);
    cr_assert_eq(decoded.blocks, 300);
    cr_assert_eq(decoded.bytes, UINT64_MAX);
    cr_assert_eq(decoded.bytes_high, 2);
}

static void expect_state_refused_where_truncated(struct ttd_state state)
{
    struct ttd_state decoded;
    ttd_encode_state(&buffer, &state);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode_state_of_size(&decoded, size), "size %zu", size);
}

Test(states, keyframe_is_refused_where_it_is_truncated)
{
    expect_state_refused_where_truncated(keyframe());
}

Test(states, summary_is_refused_where_it_is_truncated)
{
    expect_state_refused_where_truncated(summary());
}

Test(states, peak_is_refused_where_it_is_truncated)
{
    expect_state_refused_where_truncated(peak());
}

static void expect_state_refused(struct ttd_state state, const char *expected)
{
    struct ttd_state decoded;
    ttd_encode_state(&buffer, &state);
    const char *error = decode_state_of_size(&decoded, buffer.size);
    cr_assert_not_null(error);
    cr_assert_str_eq(error, expected);
}

Test(states, state_must_have_a_form)
{
    struct ttd_state state = keyframe();
    state.form = (enum ttd_state_form)0;
    expect_state_refused(state, "form of a state");
}

Test(states, state_must_have_a_known_form)
{
    struct ttd_state state = peak();
    ttd_encode_state(&buffer, &state);
    buffer.data[0] = TTD_STATE_PEAK + 1;

    struct ttd_state decoded;
    cr_assert_str_eq(decode_state_of_size(&decoded, buffer.size), "value out of range");
}

Test(states, state_must_have_a_position)
{
    struct ttd_state state = keyframe();
    state.position = ttd_position_invalid();
    expect_state_refused(state, "invalid position");
}

Test(states, state_must_not_have_more_unknown_releases_than_events)
{
    struct ttd_state state = keyframe();
    state.unknown_releases = state.events + 1;
    expect_state_refused(state, "counts of a state");
}

Test(states, state_must_not_have_more_overlaps_than_events)
{
    struct ttd_state state = keyframe();
    state.overlaps = state.events + 1;
    expect_state_refused(state, "counts of a state");
}

Test(states, summary_must_not_end_before_it_begins)
{
    struct ttd_state state = summary();
    state.end = (struct ttd_position){.sequence = 7, .steps = 7};
    expect_state_refused(state, "end of a summary");
}

Test(states, summary_must_have_the_one_form_of_the_invalid_position)
{
    struct ttd_state state = summary();
    state.end = (struct ttd_position){.sequence = TTD_SEQUENCE_INVALID, .steps = 0};
    expect_state_refused(state, "end of a summary");
}
