/* SPDX-License-Identifier: MIT */
/*
 * The loops are those of the decoder (decoder_loop.c, decoder_columns.c), and check the same; but
 * an event leaves nothing but a change of its address's net.
 */
#include "codec/events/netting_parts.h"

#include <string.h>

/** Number of events of a chunk that may destroy a heap. */
#define NETTING_DESTRUCTIONS_MAX 64

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
    ttd_release(allocator, netting->shape_heaps);
    ttd_release(allocator, netting->marks);
    ttd_release(allocator, netting->lates);
    ttd_release(allocator, netting->pending);
    ttd_release(allocator, netting->times);
    ttd_release(allocator, netting->places);
    ttd_release(allocator, netting->slots);
    ttd_netting_free_sums(netting);
    ttd_events_decoder_free(&netting->decoder);
}

/** Whether events of the class destroy their heap. */
static bool netting_destroys(const struct ttd_event_class *class)
{
    return class->action == TTD_ACTION_DESTROY &&
           (class->form & TTD_FORM_OUTCOME) != TTD_OUTCOME_FAILED;
}

/* The tables. */

/** Returns the place of a heap in the list of the chunk's; adds it if there is room. */
static uint16_t netting_place_heap(struct ttd_netting *netting, ttd_id heap)
{
    struct ttd_netted *netted = &netting->netted;
    uint16_t place = 0;
    while (place < netted->heap_count && netted->heaps[place] != heap)
        place++;
    if (place < netted->heap_count)
        return place;
    if (place == TTD_NET_HEAPS_MAX) {
        netted->is_plain = false;
        return 0;
    }
    netted->heaps[netted->heap_count] = heap;
    netted->destructions[netted->heap_count++] =
        (struct ttd_net_destruction){.first = TTD_NET_NO_EVENT, .last = TTD_NET_NO_EVENT};
    return place;
}

/** Whether events of a class change blocks of its heap. */
static bool netting_has_heap(const struct ttd_event_class *class)
{
    return class->releases || (class->form & TTD_FORM_ADDRESS) || netting_destroys(class);
}

/** Sets the form and the heap of each shape. False without memory. */
static bool netting_set_shapes(struct ttd_netting *netting)
{
    size_t count = netting->decoder.state.shape_count + 1;
    if (!NETTING_GROW(netting, forms, form_capacity, count) ||
        !NETTING_GROW(netting, shape_heaps, shape_heap_capacity, count))
        return false;
    for (uint32_t i = 1; i < count; i++) {
        const struct ttd_event_class *class = netting_class(netting, i);
        netting->forms[i] = class->fast;
        netting->shape_heaps[i] =
            netting_has_heap(class) ? netting_place_heap(netting, class->heap) : 0;
    }
    return true;
}

static bool netting_begin(struct ttd_netting *netting, const struct ttd_header *header)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    netting->netted = (struct ttd_netted){.nets = NULL, .is_plain = true};
    netting->destructions = 0;
    netting->count = netting->mark_count = netting->late_count = netting->late_next = 0;
    netting->time_count = netting->pending_count = netting->place_count = 0;
    netting->settled = ttd_position_min();
    netting->shape_before = netting->last_acquired = netting->index = 0;
    netting->first_event = header->first_record;
    decoder->batch = decoder->buffers;
    /* The general values of one event at a time are decoded there. */
    memset(decoder->batch, 0, sizeof *decoder->batch);
    /* As many as the decoder's addresses: reading past the end of a column gives some, too. */
    if (!NETTING_GROW(netting, nets, capacity, decoder->addresses.capacity))
        return false;
    netting->nets[0] = (struct ttd_net){.address = 0};
    return netting_set_shapes(netting) &&
           (!netting->sums.is_wanted || ttd_netting_begin_sums(netting));
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
        uint32_t symbol = ttd_events_read_shape(
            symbols[i], &decoder->columns[TTD_COLUMN_SHAPES_MORE], next[before]);
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

/* Addresses and sizes. */

/** Cursors that each event advances. A local copy, so that they stay in registers. */
struct netting_cursors {
    struct ttd_cursor sizes;
    const uint8_t *released;
    const uint8_t *acquired;
    struct ttd_ordinal_list allocated;
    struct ttd_ordinal_list freed;
};

/** An event: its index in the chunk, its shape, and the heap of that. */
struct netting_call {
    uint32_t index;
    uint32_t shape;
    uint16_t heap;
    /** It is a Free. Only with sums. */
    bool frees;
};

/** Reads an address that is spelled out, and returns its net; `state` is what the event needs. */
static inline uint32_t netting_spell(struct ttd_netting *netting, enum ttd_column column,
                                     uint64_t *last, uint8_t state, struct netting_call call)
{
    struct ttd_events_decoder *decoder = &netting->decoder;
    uint64_t address = *last + ttd_unzigzag(ttd_varint_fast(&decoder->columns[column]));
    *last = address;
    if (address == 0)
        ttd_events_decoder_fail(decoder, "address of an event");
    netting->nets[netting->count] =
        (struct ttd_net){.address = ttd_rotate_left(address, TTD_ADDRESS_ROTATION),
                         .first = call.index,
                         .last = call.index,
                         .heap = (uint8_t)call.heap,
                         .was_live = state == TTD_NET_LIVE,
                         .was_freed = state == TTD_NET_LIVE && call.frees,
                         .state = state};
    return (uint32_t)netting->count++;
}

static inline const struct ttd_net *netting_release(struct ttd_netting *netting,
                                                    struct netting_cursors *cursors, bool releases,
                                                    struct netting_call call, bool is_summed)
{
    size_t place = *cursors->released++;
    struct ttd_ordinal_list *allocated = &cursors->allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal =
            netting_spell(netting, TTD_COLUMN_RELEASED_EXPLICIT, &netting->decoder.state.released,
                          releases ? TTD_NET_LIVE : NET_UNTOUCHED, call);
    else if (place > allocated->count)
        ttd_events_decoder_fail(&netting->decoder, "place of an address");
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    struct ttd_net *net = &netting->nets[ordinal];
    if (!releases)
        return net;
    if (is_summed && place)
        ttd_netting_sum_pair(netting, net, call.index, call.frees);
    ttd_ordinal_push(&cursors->freed, ordinal);
    if ((net->state != TTD_NET_LIVE &&
         !(net->state == NET_LATE && ttd_netting_has_ended(netting, net->last, call.index))) ||
        net->heap != call.heap)
        netting->netted.is_plain = false;
    net->state = TTD_NET_FREE;
    net->last = call.index;
    return net;
}

static inline void netting_acquire(struct ttd_netting *netting, struct netting_cursors *cursors,
                                   struct netting_call call, uint64_t size, bool is_summed)
{
    size_t place = *cursors->acquired++;
    struct ttd_ordinal_list *freed = &cursors->freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = netting_spell(netting, TTD_COLUMN_ACQUIRED_EXPLICIT,
                                &netting->decoder.state.acquired, TTD_NET_FREE, call);
    else if (place > freed->count)
        ttd_events_decoder_fail(&netting->decoder, "place of an address");
    else
        ordinal = ttd_ordinal_take(freed, place);
    ttd_ordinal_push(&cursors->allocated, ordinal);
    struct ttd_net *net = &netting->nets[ordinal];
    if (net->state != TTD_NET_FREE || net->heap != call.heap)
        netting->netted.is_plain = false;
    net->size = size;
    net->last = call.index;
    net->shape = call.shape;
    net->state = TTD_NET_LIVE;
    netting->last_acquired = ordinal;
    if (!is_summed)
        return;
    netting->sums.sites[call.shape].allocated.blocks++;
    netting->sums.sites[call.shape].allocated.bytes += size;
    netting->sums.is_exact &= size < NET_SUMMED_MAX;
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

/** Ends the blocks of a heap that is destroyed. */
static void netting_destroy(struct ttd_netting *netting, struct netting_call call)
{
    struct ttd_net_destruction *destruction = &netting->netted.destructions[call.heap];
    /* Each goes through all nets. */
    if (++netting->destructions > NETTING_DESTRUCTIONS_MAX) {
        netting->netted.is_plain = false;
        return;
    }
    if (destruction->first == TTD_NET_NO_EVENT) {
        destruction->first = call.index;
        destruction->position = ttd_netting_start(netting, call.index);
    }
    destruction->last = call.index;
    destruction->is_of_nobody |= netting_find_mark(netting, call.index)->thread == TTD_NONE;
    for (size_t i = 0; i < netting->count; i++) {
        struct ttd_net *net = &netting->nets[i];
        if (net->heap != call.heap || !netting_is_live(net))
            continue;
        if (net->state == NET_LATE && !ttd_netting_has_ended(netting, net->last, call.index))
            netting->netted.is_plain = false;
        net->state = NET_DESTROYED;
        net->size = call.index;
    }
}

/** Nets an event of a form that few events have. */
static void netting_take_other(struct ttd_netting *netting, struct netting_cursors *cursors,
                               struct netting_call call, bool is_summed)
{
    struct ttd_event *event = &netting->decoder.batch->events[0];
    const struct ttd_event_class *class = netting_class(netting, call.shape);
    event->size = event->base_address = event->address = 0;
    if (class->form & TTD_FORM_SIZE)
        event->size = netting_read_size(cursors, &netting->decoder.state.shapes[call.shape]);
    if (class->form & TTD_FORM_BASE)
        event->base_address =
            netting_release(netting, cursors, class->releases, call, is_summed)->address;
    if (class->form & TTD_FORM_ADDRESS) {
        netting_acquire(netting, cursors, call, event->size, is_summed);
        event->address = netting->nets[netting->last_acquired].address;
    }
    if (class->general == TTD_GENERAL_OTHER)
        netting_read_general(netting, class, call.shape);
    if (netting_destroys(class))
        netting_destroy(netting, call);
    netting_count_event(&netting->netted, class);
    if (netting->late_next < netting->late_count &&
        netting->lates[netting->late_next].index == call.index) {
        netting->nets[netting->last_acquired].state = NET_LATE;
        netting->late_next++;
    }
}

/** Nets the events of a batch, whose shapes and times are decoded. Compiled twice: most of the
 * time, nobody wants sums. */
static inline void netting_take_batch(struct ttd_netting *netting, uint32_t count, bool is_summed)
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
    if (is_summed)
        ttd_netting_set_change(netting);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shape = netting->shapes[i];
        struct netting_call call = {netting->index + i, shape, netting->shape_heaps[shape],
                                    is_summed && netting->sums.flags[shape] & NET_SHAPE_FREES};
        if (is_summed && call.index == netting->sums.change)
            ttd_netting_change(netting, call.index);
        if (netting->forms[shape] == TTD_FAST_FREE) {
            (void)netting_release(netting, &cursors, true, call, is_summed);
            frees++;
        } else if (netting->forms[shape] == TTD_FAST_FREE_SIZED) {
            (void)netting_read_size(&cursors, &decoder->state.shapes[shape]);
            (void)netting_release(netting, &cursors, true, call, is_summed);
            frees++;
        } else if (netting->forms[shape] == TTD_FAST_ALLOC) {
            uint64_t size = netting_read_size(&cursors, &decoder->state.shapes[shape]);
            netting_acquire(netting, &cursors, call, size, is_summed);
            allocations++;
        } else {
            netting_take_other(netting, &cursors, call, is_summed);
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
        bool has_times = ttd_netting_read_times(netting, count);
        if (has_times && netting->sums.is_wanted)
            netting_take_batch(netting, count, true);
        else if (has_times)
            netting_take_batch(netting, count, false);
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
    return ttd_netting_finish(netting) ? TTD_OK : TTD_ERROR_NO_MEMORY;
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
