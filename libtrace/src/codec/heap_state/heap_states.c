/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/heap_states.h"

#include <string.h>

#include "codec/columns.h"

/* Binary digits of a size. */
#define SIZE_CLASS_MAX 64

/* ---- States ---- */

/* The counts of a keyframe or a summary, in the order of the record. */
static size_t list_counts(struct ttd_state *state, uint64_t *counts[6 + TTD_STATE_ACTIONS])
{
    size_t n = 0;
    counts[n++] = &state->next_event;
    counts[n++] = &state->events;
    counts[n++] = &state->failed;
    counts[n++] = &state->unfinished;
    counts[n++] = &state->unknown_releases;
    counts[n++] = &state->overlaps;
    for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
        counts[n++] = &state->actions[i];
    return n;
}

void ttd_encode_state(struct ttd_buffer *buffer, const struct ttd_state *state)
{
    struct ttd_state copy = *state;
    uint64_t *counts[6 + TTD_STATE_ACTIONS];
    ttd_buffer_put_varint(buffer, state->form);
    ttd_encode_position(buffer, state->position);
    ttd_buffer_put_varint(buffer, state->blocks);
    if (state->form == TTD_STATE_PEAK) {
        ttd_buffer_put_varint(buffer, state->bytes_high);
        ttd_buffer_put_varint(buffer, state->bytes);
        return;
    }
    size_t count = list_counts(&copy, counts);
    for (size_t i = 0; i < count; i++)
        ttd_buffer_put_varint(buffer, *counts[i]);
    if (state->form != TTD_STATE_SUMMARY)
        return;
    ttd_buffer_put_varint(buffer, state->sums);
    ttd_encode_position(buffer, state->end);
}

void ttd_decode_state(struct ttd_cursor *cursor, struct ttd_state *state)
{
    memset(state, 0, sizeof *state);
    state->form = (enum ttd_state_form)ttd_cursor_varint_max(cursor, TTD_STATE_PEAK);
    state->position = ttd_decode_position(cursor);
    state->blocks = ttd_cursor_varint(cursor);
    if (state->form == TTD_STATE_PEAK) {
        state->bytes_high = ttd_cursor_varint(cursor);
        state->bytes = ttd_cursor_varint(cursor);
    } else {
        uint64_t *counts[6 + TTD_STATE_ACTIONS];
        size_t count = list_counts(state, counts);
        for (size_t i = 0; i < count; i++)
            *counts[i] = ttd_cursor_varint(cursor);
    }
    if (state->form == TTD_STATE_SUMMARY) {
        state->sums = ttd_cursor_varint(cursor);
        state->end = ttd_decode_position(cursor);
    }
    ttd_cursor_check(cursor, ttd_check_state(state));
}

const char *ttd_check_state(const struct ttd_state *state)
{
    if (state->form < TTD_STATE_KEYFRAME || state->form > TTD_STATE_PEAK)
        return "form of a state";
    if (!ttd_position_is_valid(state->position))
        return "invalid position";
    if (state->unknown_releases > state->events || state->overlaps > state->events)
        return "counts of a state";
    if (state->form != TTD_STATE_SUMMARY)
        return NULL;
    /* The invalid position, for the end of the trace, compares as the last of all. */
    if (!ttd_position_is_canonical(state->end) ||
        ttd_position_compare(state->position, state->end) > 0)
        return "end of a summary";
    return NULL;
}

/* ---- Sums ---- */

void ttd_encode_sum(struct ttd_buffer *buffer, const struct ttd_sum *sum)
{
    ttd_buffer_put_varint(buffer, sum->table);
    ttd_buffer_put_varint(buffer, sum->key);
    ttd_buffer_put8(buffer, sum->api);
    ttd_buffer_put_varint(buffer, sum->blocks);
    ttd_buffer_put_varint(buffer, sum->bytes);
    if (sum->table != TTD_SUMS_BY_STACK)
        return;
    ttd_encode_position(buffer, sum->first);
    ttd_encode_position(buffer, sum->last);
}

void ttd_decode_sum(struct ttd_cursor *cursor, struct ttd_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->table = (enum ttd_sum_table)ttd_cursor_varint_max(cursor, TTD_SUMS_BY_SIZE);
    sum->key = ttd_cursor_varint32(cursor);
    sum->api = ttd_cursor_get8(cursor);
    sum->blocks = ttd_cursor_varint(cursor);
    sum->bytes = ttd_cursor_varint(cursor);
    if (sum->table == TTD_SUMS_BY_STACK) {
        sum->first = ttd_decode_position(cursor);
        sum->last = ttd_decode_position(cursor);
    }
    ttd_cursor_check(cursor, ttd_check_sum(sum));
}

const char *ttd_check_sum(const struct ttd_sum *sum)
{
    if (sum->table < TTD_SUMS_BY_STACK || sum->table > TTD_SUMS_BY_SIZE)
        return "table of a sum";
    if (sum->table == TTD_SUMS_BY_SIZE && sum->key > SIZE_CLASS_MAX)
        return "size of a sum";
    if (!sum->blocks)
        return "sum of no blocks";
    if (sum->table != TTD_SUMS_BY_STACK)
        return NULL;
    if (!ttd_position_is_valid(sum->first) || !ttd_position_is_valid(sum->last))
        return "invalid position";
    return ttd_position_compare(sum->first, sum->last) > 0 ? "positions of a sum" : NULL;
}
