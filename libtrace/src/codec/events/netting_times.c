/* SPDX-License-Identifier: MIT */
/* The times of events, without an event struct. */
#include "codec/events/netting_parts.h"

/** Notes that the event before the one at `index`, a ReAlloc, ends after that one. */
static bool netting_add_late(struct ttd_netting *netting, uint32_t index, uint32_t thread,
                             struct ttd_position end)
{
    if (!NETTING_GROW(netting, lates, late_capacity, netting->late_count + 1))
        return false;
    netting->lates[netting->late_count++] = (struct ttd_net_late){index, thread, end};
    if (ttd_position_compare(end, netting->settled) > 0)
        netting->settled = end;
    /* It is of the batch before, and was netted already. */
    if (index < netting->index) {
        netting->nets[netting->last_acquired].state = NET_LATE;
        netting->late_next = netting->late_count;
    }
    return true;
}

/** Sets state.effect to the effect position of the event before, if its times were as predicted. */
static void netting_set_effect(struct ttd_netting *netting, uint32_t before, uint32_t index)
{
    struct ttd_event_state *state = &netting->decoder.state;
    if (!before || netting->marks[netting->mark_count - 1].index + 1 == index)
        return;
    state->effect = state->threads[state->thread].end;
    state->effect.steps -= !netting_acquires(netting_class(netting, before));
}

/** Decodes event `i` of the batch, whose times are an exception. */
static bool netting_read_exception(struct ttd_netting *netting, uint32_t i)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    struct ttd_event_state *state = &decoder->state;
    const struct ttd_event_class *class = netting_class(netting, netting->shapes[i]);
    uint32_t before = i ? netting->shapes[i - 1] : netting->shape_before;
    uint32_t index = netting->index + i;
    struct ttd_position start;
    struct ttd_position end;
    netting_set_effect(netting, before, index);
    uint32_t thread_before = state->thread;
    struct ttd_position ended = before ? state->threads[thread_before].end : ttd_position_min();
    if (!ttd_events_decode_exception(decoder, class, decoder->number, &start, &end))
        return false;
    decoder->number++;
    bool is_returned = ttd_position_is_valid(end);
    state->effect = netting_acquires(class) && is_returned ? end : start;
    if (index == 0 && ttd_position_compare(state->effect, decoder->first) != 0)
        ttd_events_decoder_fail(decoder, "first position of a chunk");
    bool is_moved = before && netting_is_reallocation(netting_class(netting, before));
    struct ttd_net_mark mark = {.index = index,
                                .thread = state->threads[state->thread].id,
                                .place = state->thread,
                                .start = start,
                                .end = is_returned ? end : start};
    if (!NETTING_GROW(netting, marks, mark_capacity, netting->mark_count + 1) ||
        (is_moved && ttd_position_compare(ended, state->effect) > 0 &&
         !netting_add_late(netting, index - 1, thread_before, ended)) ||
        (netting->sums.is_wanted && !ttd_netting_sum_mark(netting, &mark))) {
        decoder->no_memory = true;
        return false;
    }
    netting->marks[netting->mark_count++] = mark;
    return true;
}

/** Notes the wall time of event `i` of the batch. It is the first of `count` events whose times are
 * as predicted, all decoded; or an exception, and `count` is 0. */
static bool netting_add_time(struct ttd_netting *netting, uint32_t i, uint32_t count)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    struct ttd_position position = decoder->state.effect;
    if (count) {
        position = decoder->state.threads[decoder->state.thread].end;
        position.steps -=
            2 * (uint64_t)count - 1 - netting_acquires(netting_class(netting, netting->shapes[i]));
    }
    if (!NETTING_GROW(netting, times, time_capacity, netting->time_count + 1)) {
        decoder->no_memory = true;
        return false;
    }
    struct ttd_net_time time = {netting->index + i, position, decoder->state.wall_time};
    if (netting->sums.is_wanted)
        ttd_netting_sum_time(netting, &time);
    netting->times[netting->time_count++] = time;
    return true;
}

/** Passes over events whose times are as predicted. */
static bool netting_pass_run(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    if (state->thread == UINT32_MAX)
        return false;
    struct ttd_event_thread *thread = &state->threads[state->thread];
    if (thread->end.steps > UINT64_MAX - 2 * (uint64_t)count)
        return false;
    thread->end.steps += 2 * (uint64_t)count;
    decoder->number += count;
    return true;
}

/* Adds the places of the events before `end`, whose marks and times are there. */
static bool netting_add_places(struct ttd_netting *netting, uint32_t end)
{
    size_t count = ((size_t)end + TTD_NET_PLACE_EVENTS - 1) / TTD_NET_PLACE_EVENTS;
    struct ttd_net_place place = {0, 0};
    if (!NETTING_GROW(netting, places, place_capacity, count)) {
        netting->decoder.no_memory = true;
        return false;
    }
    if (netting->place_count)
        place = netting->places[netting->place_count - 1];
    for (; netting->place_count < count; netting->place_count++) {
        size_t index = netting->place_count * TTD_NET_PLACE_EVENTS;
        while (place.mark + 1 < netting->mark_count &&
               netting->marks[place.mark + 1].index <= index)
            place.mark++;
        while (place.time + 1 < netting->time_count &&
               netting->times[place.time + 1].index <= index)
            place.time++;
        netting->places[netting->place_count] = place;
    }
    return true;
}

bool ttd_netting_read_times(struct ttd_netting *netting, uint32_t count)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    uint32_t nevers = 0;
    for (uint32_t i = 0, n = 1; i < count; i += n, n = 1) {
        uint64_t number = decoder->number;
        bool is_decoded;
        bool has_time = number == decoder->clock_change || netting->index + i == 0;
        if (number == decoder->clock_change)
            ttd_events_change_clock(decoder);
        if (number == decoder->exception) {
            is_decoded = netting_read_exception(netting, i) &&
                         (!has_time || netting_add_time(netting, i, 0));
            nevers += TTD_TALLY_NEVERS(netting_class(netting, netting->shapes[i])->tally);
        } else {
            n = ttd_events_run_length(decoder, count - i);
            is_decoded =
                netting_pass_run(decoder, n) && (!has_time || netting_add_time(netting, i, n));
        }
        if (!is_decoded)
            return false;
    }
    /* A call that never returned is an exception. */
    if (nevers != TTD_TALLY_NEVERS(decoder->tally))
        return false;
    netting_set_effect(netting, netting->shapes[count - 1], netting->index + count);
    return netting_add_places(netting, netting->index + count);
}

struct ttd_position ttd_netting_start(const struct ttd_netting *netting, uint32_t index)
{
    const struct ttd_net_mark *mark = netting_find_mark(netting, index);
    if (mark->index == index)
        return mark->start;
    struct ttd_position end = netting_end(mark, index);
    return (struct ttd_position){end.sequence, end.steps - 1};
}

bool ttd_netting_has_ended(const struct ttd_netting *netting, uint32_t late, uint32_t index)
{
    size_t low = 0;
    size_t high = netting->late_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (netting->lates[middle].index <= late)
            low = middle;
        else
            high = middle;
    }
    return ttd_position_compare(netting->lates[low].end, ttd_netting_start(netting, index)) <= 0;
}
