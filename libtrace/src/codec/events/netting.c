/* SPDX-License-Identifier: MIT */
/*
 * The loops are those of the decoder (decoder_loop.c, decoder_columns.c), and check the same; but
 * an event leaves nothing but a change of its address's net.
 */
#include "codec/events/netting.h"

#include <string.h>

#include "base/memory.h"
#include "codec/events/decoder.h"

/** States of an address besides those of enum ttd_net_state, while events are decoded. */
enum netting_state {
    /** Acquired by a call of ttd_netting.lates, whose end may be ahead. */
    NET_LATE = 2,
    /** No event has changed it. */
    NET_UNTOUCHED = 3
};

void ttd_netting_init(struct ttd_netting *netting, const struct ttd_allocator *allocator)
{
    memset(netting, 0, sizeof *netting);
    ttd_events_decoder_init(&netting->decoder, allocator, 1);
}

void ttd_netting_free(struct ttd_netting *netting)
{
    const struct ttd_allocator *allocator = netting->decoder.state.allocator;
    if (!allocator)
        return;
    ttd_release(allocator, netting->nets);
    ttd_release(allocator, netting->forms);
    ttd_release(allocator, netting->marks);
    ttd_release(allocator, netting->lates);
    ttd_release(allocator, netting->times);
    ttd_release(allocator, netting->slots);
    ttd_events_decoder_free(&netting->decoder);
}

/** Makes room for `count` elements of an array of the netting. False without memory. */
#define NETTING_GROW(netting, array, capacity, count)                                              \
    netting_grow((netting)->decoder.state.allocator, (void **)&(netting)->array,                   \
                 &(netting)->capacity, (count), sizeof *(netting)->array)

static bool netting_grow(const struct ttd_allocator *allocator, void **array, size_t *capacity,
                         size_t count, size_t size)
{
    void *items = *array;
    if (ttd_grow_array(allocator, &items, capacity, count, size))
        return false;
    *array = items;
    return true;
}

static const struct ttd_event_class *netting_class(const struct ttd_netting *netting,
                                                   uint32_t shape)
{
    const struct ttd_event_state *state = &netting->decoder.state;
    return &state->classes[state->shapes[shape].class_index];
}

/** Whether events of the class take effect when they end. */
static bool netting_acquires(const struct ttd_event_class *class)
{
    return class->action == TTD_ACTION_ALLOC || class->action == TTD_ACTION_CREATE;
}

/* The tables: whether nets can say all that the events do. */

static void netting_judge_classes(struct ttd_netting *netting)
{
    const struct ttd_event_state *state = &netting->decoder.state;
    struct ttd_netted *netted = &netting->netted;
    netted->is_plain = true;
    netted->has_heap = false;
    for (size_t i = 0; i < state->class_count; i++) {
        const struct ttd_event_class *class = &state->classes[i];
        if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_NEVER ||
            class->action == TTD_ACTION_DESTROY)
            netted->is_plain = false;
        if (!class->releases && !(class->form & TTD_FORM_ADDRESS))
            continue;
        if (netted->has_heap && netted->heap != class->heap)
            netted->is_plain = false;
        netted->heap = class->heap;
        netted->has_heap = true;
    }
}

static bool netting_begin(struct ttd_netting *netting, const struct ttd_header *header)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    const struct ttd_event_state *state = &decoder->state;
    netting->netted = (struct ttd_netted){.nets = NULL};
    netting->count = netting->mark_count = netting->late_count = netting->late_next = 0;
    netting->time_count = 0;
    netting->shape_before = netting->last_acquired = netting->index = 0;
    netting->first_event = header->first_record;
    decoder->batch = decoder->buffers;
    /* The general values of one event at a time are decoded there. */
    memset(decoder->batch, 0, sizeof *decoder->batch);
    /* As many as the decoder's addresses: reading past the end of a column gives some, too. */
    if (!NETTING_GROW(netting, nets, capacity, decoder->addresses.capacity) ||
        !NETTING_GROW(netting, forms, form_capacity, state->shape_count + 1))
        return false;
    netting->nets[0] = (struct ttd_net){.address = 0};
    for (uint32_t i = 1; i <= state->shape_count; i++)
        netting->forms[i] = netting_class(netting, i)->fast;
    netting_judge_classes(netting);
    return true;
}

/** Sets the shapes of a batch, and its tally. False if one is wrong. */
static bool netting_read_shapes(struct ttd_netting *netting, uint32_t count)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    struct ttd_event_state *state = &decoder->state;
    const struct ttd_event_shape *shapes = state->shapes;
    const struct ttd_event_class *classes = state->classes;
    uint32_t *next = state->next_shapes;
    uint32_t shape_count = (uint32_t)state->shape_count;
    const uint8_t *symbols = decoder->columns[TTD_COLUMN_SHAPES_FIRST].next;
    uint32_t before = state->shape;
    uint32_t tally = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t symbol = symbols[i];
        if (symbol >= TTD_SHAPE_ONE_BYTE)
            symbol = ttd_events_read_symbol(&decoder->columns[TTD_COLUMN_SHAPES_MORE], symbol);
        symbol |= next[before] & (0 - (uint32_t)(symbol == 0));
        if (symbol - 1 >= shape_count) {
            ttd_events_decoder_fail(decoder, "shape of an event");
            return false;
        }
        next[before] = symbol;
        before = symbol;
        netting->shapes[i] = symbol;
        tally += classes[shapes[symbol].class_index].tally;
    }
    state->shape = before;
    decoder->tally = tally;
    decoder->columns[TTD_COLUMN_SHAPES_FIRST].next += count;
    return true;
}

/* Times. */

/** Notes that the event before the one at `index`, a ReAlloc, ends after that one. */
static bool netting_add_late(struct ttd_netting *netting, uint32_t index, struct ttd_position end)
{
    if (!NETTING_GROW(netting, lates, late_capacity, netting->late_count + 1))
        return false;
    netting->lates[netting->late_count++] = (struct ttd_net_late){index, end};
    if (ttd_position_compare(end, netting->netted.settled) > 0)
        netting->netted.settled = end;
    /* It is of the batch before, and was netted already. */
    if (index < netting->index) {
        netting->nets[netting->last_acquired].state = NET_LATE;
        netting->late_next = netting->late_count;
    }
    return true;
}

/** Whether a call acquires a block after its effect position. */
static bool netting_is_reallocation(const struct ttd_event_class *class)
{
    return class->action == TTD_ACTION_REALLOC && (class->form & TTD_FORM_ADDRESS);
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
    struct ttd_position ended = before ? state->threads[state->thread].end : ttd_position_min();
    if (!ttd_events_decode_exception(decoder, class, decoder->number, &start, &end))
        return false;
    decoder->number++;
    bool is_returned = ttd_position_is_valid(end);
    state->effect = netting_acquires(class) && is_returned ? end : start;
    if (index == 0 && ttd_position_compare(state->effect, decoder->first) != 0)
        ttd_events_decoder_fail(decoder, "first position of a chunk");
    if (!NETTING_GROW(netting, marks, mark_capacity, netting->mark_count + 1) ||
        (before && netting_is_reallocation(netting_class(netting, before)) &&
         ttd_position_compare(ended, state->effect) > 0 &&
         !netting_add_late(netting, index - 1, ended))) {
        decoder->no_memory = true;
        return false;
    }
    netting->marks[netting->mark_count++] = (struct ttd_net_mark){
        index, state->threads[state->thread].id, start, is_returned ? end : start};
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
    netting->times[netting->time_count++] =
        (struct ttd_net_time){position, decoder->state.wall_time};
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

/** Decodes the times of a batch. False if they are wrong. */
static bool netting_read_times(struct ttd_netting *netting, uint32_t count)
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
            n = count - i;
            n = n < decoder->exception - number ? n : (uint32_t)(decoder->exception - number);
            n = n < decoder->clock_change - number ? n : (uint32_t)(decoder->clock_change - number);
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
    return true;
}

/** Returns the last mark at or before an event. */
static const struct ttd_net_mark *netting_find_mark(const struct ttd_netting *netting,
                                                    uint32_t index)
{
    size_t low = 0;
    size_t high = netting->mark_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (netting->marks[middle].index <= index)
            low = middle;
        else
            high = middle;
    }
    return &netting->marks[low];
}

static struct ttd_position netting_end(const struct ttd_net_mark *mark, uint32_t index)
{
    return (struct ttd_position){mark->end.sequence,
                                 mark->end.steps + 2 * (uint64_t)(index - mark->index)};
}

static struct ttd_position netting_start(const struct ttd_netting *netting, uint32_t index)
{
    const struct ttd_net_mark *mark = netting_find_mark(netting, index);
    if (mark->index == index)
        return mark->start;
    struct ttd_position end = netting_end(mark, index);
    return (struct ttd_position){end.sequence, end.steps - 1};
}

/** Whether the ReAlloc with the index `late` has ended when the event with the index `index`
 * begins. */
static bool netting_has_ended(const struct ttd_netting *netting, uint32_t late, uint32_t index)
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
    return ttd_position_compare(netting->lates[low].end, netting_start(netting, index)) <= 0;
}

/* Addresses and sizes. */

/** Cursors that each event advances. A local copy, so that they stay in registers. */
struct netting_cursors {
    struct ttd_cursor sizes;
    const uint8_t *released;
    const uint8_t *acquired;
    struct ttd_ordinal_list allocated;
    struct ttd_ordinal_list freed;
};

/** Reads an address that is spelled out, and returns its net; `state` is what the event needs. */
static inline uint32_t netting_spell(struct ttd_netting *netting, enum ttd_column column,
                                     uint64_t *last, uint8_t state, uint32_t index)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    uint64_t address = *last + ttd_unzigzag(ttd_varint_fast(&decoder->columns[column]));
    *last = address;
    if (address == 0)
        ttd_events_decoder_fail(decoder, "address of an event");
    netting->nets[netting->count] =
        (struct ttd_net){.address = ttd_rotate_left(address, TTD_ADDRESS_ROTATION),
                         .first = index,
                         .last = index,
                         .was_live = state == TTD_NET_LIVE,
                         .state = state};
    return (uint32_t)netting->count++;
}

static inline const struct ttd_net *netting_release(struct ttd_netting *netting,
                                                    struct netting_cursors *cursors, bool releases,
                                                    uint32_t index)
{
    size_t place = *cursors->released++;
    struct ttd_ordinal_list *allocated = &cursors->allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal =
            netting_spell(netting, TTD_COLUMN_RELEASED_EXPLICIT, &netting->decoder.state.released,
                          releases ? TTD_NET_LIVE : NET_UNTOUCHED, index);
    else if (place > allocated->count)
        ttd_events_decoder_fail(&netting->decoder, "place of an address");
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    struct ttd_net *net = &netting->nets[ordinal];
    if (!releases)
        return net;
    ttd_ordinal_push(&cursors->freed, ordinal);
    if (net->state != TTD_NET_LIVE &&
        !(net->state == NET_LATE && netting_has_ended(netting, net->last, index)))
        netting->netted.is_plain = false;
    net->state = TTD_NET_FREE;
    net->last = index;
    return net;
}

static inline void netting_acquire(struct ttd_netting *netting, struct netting_cursors *cursors,
                                   uint32_t shape, uint64_t size, uint32_t index)
{
    size_t place = *cursors->acquired++;
    struct ttd_ordinal_list *freed = &cursors->freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = netting_spell(netting, TTD_COLUMN_ACQUIRED_EXPLICIT,
                                &netting->decoder.state.acquired, TTD_NET_FREE, index);
    else if (place > freed->count)
        ttd_events_decoder_fail(&netting->decoder, "place of an address");
    else
        ordinal = ttd_ordinal_take(freed, place);
    ttd_ordinal_push(&cursors->allocated, ordinal);
    struct ttd_net *net = &netting->nets[ordinal];
    if (net->state != TTD_NET_FREE)
        netting->netted.is_plain = false;
    net->size = size;
    net->last = index;
    net->shape = shape;
    net->state = TTD_NET_LIVE;
    netting->last_acquired = ordinal;
}

static inline uint64_t netting_read_size(struct netting_cursors *cursors,
                                         struct ttd_event_shape *shape)
{
    shape->size = ttd_swap_predicted(ttd_varint_fast(&cursors->sizes), shape->size);
    return shape->size;
}

/** Decodes the optional values of an event, which has the first place of the decoder's batch. */
static void netting_read_general(struct ttd_netting *netting, const struct ttd_event_class *class,
                                 uint32_t shape)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    struct ttd_event *event = &decoder->batch->events[0];
    uint64_t size = event->size;
    uint64_t base_address = event->base_address;
    uint64_t address = event->address;
    *event = decoder->prototypes[decoder->state.shapes[shape].class_index];
    event->size = size;
    event->base_address = base_address;
    event->address = address;
    decoder->classes[0] = class;
    decoder->shapes[0] = &decoder->state.shapes[shape];
    ttd_events_decode_general(decoder, 0);
}

static void netting_count_event(struct ttd_netted *netted, const struct ttd_event_class *class)
{
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    netted->actions[class->action]++;
    netted->failed += outcome == TTD_OUTCOME_FAILED;
    netted->unfinished += outcome == TTD_OUTCOME_NEVER;
}

/** Nets an event of a form that few events have. */
static void netting_take_other(struct ttd_netting *netting, struct netting_cursors *cursors,
                               uint32_t shape, uint32_t index)
{
    struct ttd_event *event = &netting->decoder.batch->events[0];
    const struct ttd_event_class *class = netting_class(netting, shape);
    event->size = event->base_address = event->address = 0;
    if (class->form & TTD_FORM_SIZE)
        event->size = netting_read_size(cursors, &netting->decoder.state.shapes[shape]);
    if (class->form & TTD_FORM_BASE)
        event->base_address = netting_release(netting, cursors, class->releases, index)->address;
    if (class->form & TTD_FORM_ADDRESS) {
        netting_acquire(netting, cursors, shape, event->size, index);
        event->address = netting->nets[netting->last_acquired].address;
    }
    if (class->general == TTD_GENERAL_OTHER)
        netting_read_general(netting, class, shape);
    netting_count_event(&netting->netted, class);
    if (netting->late_next < netting->late_count &&
        netting->lates[netting->late_next].index == index) {
        netting->nets[netting->last_acquired].state = NET_LATE;
        netting->late_next++;
    }
}

/** Nets the events of a batch, whose shapes and times are decoded. */
static void netting_take_batch(struct ttd_netting *netting, uint32_t count)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    uint32_t tally = decoder->tally;
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_RELEASED]) < TTD_TALLY_BASES(tally) ||
        ttd_cursor_left(&decoder->columns[TTD_COLUMN_ACQUIRED]) < TTD_TALLY_ADDRESSES(tally)) {
        ttd_events_decoder_fail(decoder, "payload too short");
        return;
    }
    struct netting_cursors cursors = {decoder->columns[TTD_COLUMN_SIZES],
                                      decoder->columns[TTD_COLUMN_RELEASED].next,
                                      decoder->columns[TTD_COLUMN_ACQUIRED].next,
                                      decoder->addresses.allocated, decoder->addresses.freed};
    uint64_t frees = 0;
    uint64_t allocations = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shape = netting->shapes[i];
        uint32_t index = netting->index + i;
        if (netting->forms[shape] == TTD_FAST_FREE) {
            (void)netting_release(netting, &cursors, true, index);
            frees++;
        } else if (netting->forms[shape] == TTD_FAST_FREE_SIZED) {
            (void)netting_read_size(&cursors, &decoder->state.shapes[shape]);
            (void)netting_release(netting, &cursors, true, index);
            frees++;
        } else if (netting->forms[shape] == TTD_FAST_ALLOC) {
            uint64_t size = netting_read_size(&cursors, &decoder->state.shapes[shape]);
            netting_acquire(netting, &cursors, shape, size, index);
            allocations++;
        } else {
            netting_take_other(netting, &cursors, shape, index);
        }
    }
    netting->netted.actions[TTD_ACTION_ALLOC] += allocations;
    netting->netted.actions[TTD_ACTION_FREE] += frees;
    decoder->columns[TTD_COLUMN_SIZES] = cursors.sizes;
    decoder->columns[TTD_COLUMN_RELEASED].next = cursors.released;
    decoder->columns[TTD_COLUMN_ACQUIRED].next = cursors.acquired;
    decoder->addresses.allocated.count = cursors.allocated.count;
    decoder->addresses.freed.count = cursors.freed.count;
}

static enum ttd_status netting_next(struct ttd_netting *netting)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    uint32_t count = decoder->left < TTD_EVENT_BATCH ? decoder->left : TTD_EVENT_BATCH;
    if (netting_read_shapes(netting, count)) {
        if (netting_read_times(netting, count))
            netting_take_batch(netting, count);
        else
            ttd_events_decoder_fail(decoder, "times of an event");
    }
    if (decoder->no_memory)
        return TTD_ERROR_NO_MEMORY;
    if (ttd_events_decoder_has_failed(decoder))
        return TTD_ERROR_CORRUPT;
    netting->shape_before = netting->shapes[count - 1];
    netting->index += count;
    decoder->left -= count;
    return TTD_OK;
}

/* The end: an address that was spelled out more than once has one net. */

static size_t netting_hash(uint64_t address, unsigned shift)
{
    return (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> shift);
}

/** Empties a hash table for all nets. Returns by how much hashes are shifted; 0 without memory. */
static unsigned netting_clear_slots(struct ttd_netting *netting)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < 2 * netting->count)
        bits++;
    if (!NETTING_GROW(netting, slots, slot_capacity, (size_t)1 << bits))
        return 0;
    memset(netting->slots, 0, ((size_t)1 << bits) * sizeof *netting->slots);
    return 64 - bits;
}

/** Adds a later net of an address to the one before. */
static void netting_merge(struct ttd_netting *netting, struct ttd_net *net,
                          const struct ttd_net *later)
{
    bool is_live = net->state != TTD_NET_FREE;
    if (net->last >= later->first || is_live != later->was_live ||
        (net->state == NET_LATE && !netting_has_ended(netting, net->last, later->first)))
        netting->netted.is_plain = false;
    net->size = later->size;
    net->last = later->last;
    net->shape = later->shape;
    net->state = later->state;
}

static bool netting_merge_all(struct ttd_netting *netting)
{
    unsigned shift = netting_clear_slots(netting);
    if (!shift)
        return false;
    size_t mask = ((size_t)1 << (64 - shift)) - 1;
    size_t count = 0;
    size_t steps = 16 * netting->count;
    for (size_t i = 0; i < netting->count; i++) {
        const struct ttd_net *net = &netting->nets[i];
        if (net->state == NET_UNTOUCHED)
            continue;
        size_t slot = netting_hash(net->address, shift);
        uint32_t known;
        while ((known = netting->slots[slot]) != 0 &&
               netting->nets[known - 1].address != net->address && steps) {
            slot = (slot + 1) & mask;
            steps--;
        }
        /* Addresses that were chosen to have one hash: the search would take too long. */
        if (!steps) {
            netting->netted.is_plain = false;
            break;
        }
        if (known) {
            netting_merge(netting, &netting->nets[known - 1], net);
            continue;
        }
        netting->nets[count++] = *net;
        netting->slots[slot] = (uint32_t)count;
    }
    netting->count = count;
    return true;
}

/** Sets the position of the last effect; there is one net for each address. */
static void netting_set_last_effect(struct ttd_netting *netting)
{
    struct ttd_netted *netted = &netting->netted;
    uint32_t last = 0;
    for (size_t i = 0; i < netting->count; i++)
        last = netting->nets[i].last > last ? netting->nets[i].last : last;
    netted->last_effect = netted->settled;
    for (size_t i = 0; i < netting->count; i++) {
        const struct ttd_net *net = &netting->nets[i];
        if (net->last != last)
            continue;
        struct ttd_position position = net->state == TTD_NET_FREE
                                           ? netting_start(netting, last)
                                           : netting_end(netting_find_mark(netting, last), last);
        if (ttd_position_compare(position, netted->last_effect) > 0)
            netted->last_effect = position;
    }
}

/** Completes the result. */
static bool netting_finish(struct ttd_netting *netting)
{
    struct ttd_netted *netted = &netting->netted;
    const struct ttd_event_state *state = &netting->decoder.state;
    /* Whether the last event, a ReAlloc, has ended is seen in the next chunk. */
    if (netting_is_reallocation(netting_class(netting, netting->shape_before)) &&
        ttd_position_compare(state->threads[state->thread].end, netted->settled) > 0)
        netted->settled = state->threads[state->thread].end;
    if (!netting_merge_all(netting))
        return false;
    for (size_t i = 0; i < netting->count; i++)
        netting->nets[i].state = netting->nets[i].state != TTD_NET_FREE;
    netting_set_last_effect(netting);
    netted->nets = netting->nets;
    netted->count = netting->count;
    netted->times = netting->times;
    netted->time_count = netting->time_count;
    return true;
}

enum ttd_status ttd_netting_chunk(struct ttd_netting *netting, const struct ttd_header *header,
                                  struct ttd_cursor payload, uint64_t time_unit)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    enum ttd_status status = ttd_events_decoder_begin(decoder, header, payload, time_unit);
    if (status == TTD_OK && !netting_begin(netting, header))
        status = TTD_ERROR_NO_MEMORY;
    while (status == TTD_OK && decoder->left != 0)
        status = netting_next(netting);
    if (status != TTD_OK)
        return status;
    ttd_events_decoder_finish(decoder);
    if (ttd_events_decoder_has_failed(decoder))
        return TTD_ERROR_CORRUPT;
    return netting_finish(netting) ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void ttd_netting_block(const struct ttd_netting *netting, const struct ttd_net *net,
                       struct ttd_net_block *block)
{
    const struct ttd_event_class *class = netting_class(netting, net->shape);
    const struct ttd_net_mark *mark = netting_find_mark(netting, net->last);
    block->action = class->action;
    block->block = (struct ttd_block){.address = net->address,
                                      .size = net->size,
                                      .event = netting->first_event + net->last,
                                      .allocated = netting_end(mark, net->last),
                                      .thread = mark->thread,
                                      .heap = class->heap,
                                      .stack = netting->decoder.state.shapes[net->shape].stack,
                                      .api = class->api};
}
