/* SPDX-License-Identifier: MIT */
/* The end of netting a chunk: an address that was spelled out more than once has one net. */
#include "codec/events/netting_parts.h"

#include <string.h>

static size_t netting_hash(uint64_t address, unsigned shift)
{
    return (size_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> shift);
}

/** Empties a hash table for all nets. False without memory. */
static bool netting_clear_slots(struct ttd_netting *netting)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < 2 * netting->count)
        bits++;
    if (!NETTING_GROW(netting, slots, slot_capacity, (size_t)1 << bits))
        return false;
    memset(netting->slots, 0, ((size_t)1 << bits) * sizeof *netting->slots);
    netting->slot_shift = 64 - bits;
    return true;
}

/** Adds a later net of an address to the one before. */
static void netting_merge(struct ttd_netting *netting, struct ttd_net *net,
                          const struct ttd_net *later)
{
    bool is_live =
        netting_is_live(net) || (net->state == NET_DESTROYED && later->first < net->size);
    if (netting->sums.is_wanted && later->was_live)
        ttd_netting_sum_joined(netting, net, later);
    if (net->last >= later->first || is_live != later->was_live || net->heap != later->heap ||
        (net->state == NET_LATE && !ttd_netting_has_ended(netting, net->last, later->first)))
        netting->netted.is_plain = false;
    net->size = later->size;
    net->last = later->last;
    net->shape = later->shape;
    net->state = later->state;
}

static bool netting_merge_all(struct ttd_netting *netting)
{
    if (!netting_clear_slots(netting))
        return false;
    unsigned shift = netting->slot_shift;
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
    netted->last_effect = netting->settled;
    for (size_t i = 0; i < netted->heap_count; i++) {
        if (netted->destructions[i].last == TTD_NET_NO_EVENT)
            continue;
        struct ttd_position destroyed = ttd_netting_start(netting, netted->destructions[i].last);
        if (ttd_position_compare(destroyed, netted->last_effect) > 0)
            netted->last_effect = destroyed;
    }
    for (size_t i = 0; i < netting->count; i++) {
        const struct ttd_net *net = &netting->nets[i];
        if (net->last != last)
            continue;
        struct ttd_position position = net->state == TTD_NET_FREE
                                           ? ttd_netting_start(netting, last)
                                           : netting_end(netting_find_mark(netting, last), last);
        if (ttd_position_compare(position, netted->last_effect) > 0)
            netted->last_effect = position;
    }
}

/** Lists the blocks that are acquired after the effect of the chunk's last event. */
static bool netting_list_pending(struct ttd_netting *netting)
{
    for (size_t i = 0; i < netting->count; i++) {
        const struct ttd_net *net = &netting->nets[i];
        if (!netting_is_live(net) || !netting_is_reallocation(netting_class(netting, net->shape)))
            continue;
        struct ttd_position end = netting_end(netting_find_mark(netting, net->last), net->last);
        if (ttd_position_compare(end, netting->decoder.last) <= 0)
            continue;
        if (!NETTING_GROW(netting, pending, pending_capacity, netting->pending_count + 1))
            return false;
        netting->pending[netting->pending_count++] = (struct ttd_net_pending){net->address, end};
    }
    return true;
}

bool ttd_netting_finish(struct ttd_netting *netting)
{
    struct ttd_netted *netted = &netting->netted;
    const struct ttd_event_state *state = &netting->decoder.state;
    /* Whether the last event, a ReAlloc, has ended is seen in the next chunk. */
    if (netting_is_reallocation(netting_class(netting, netting->shape_before)) &&
        ttd_position_compare(state->threads[state->thread].end, netting->settled) > 0)
        netting->settled = state->threads[state->thread].end;
    if (netting->sums.is_wanted)
        ttd_netting_end_mark(netting, netting->index);
    if (!netting_merge_all(netting))
        return false;
    if (ttd_position_compare(netting->settled, netting->decoder.last) > 0 &&
        !netting_list_pending(netting))
        return false;
    for (size_t i = 0; i < netting->count; i++) {
        struct ttd_net *net = &netting->nets[i];
        const struct ttd_net_destruction *destruction = &netted->destructions[net->heap];
        net->state = netting_is_live(net);
        if (net->was_live && net->first > destruction->first && net->first < destruction->last)
            netted->is_plain = false;
    }
    netting_set_last_effect(netting);
    netted->nets = netting->nets;
    netted->count = netting->count;
    netted->pending = netting->pending;
    netted->pending_count = netting->pending_count;
    if (netting->sums.is_wanted)
        ttd_netting_finish_sums(netting);
    netted->times = netting->times;
    netted->time_count = netting->time_count;
    return true;
}

bool ttd_netting_find(const struct ttd_netting *netting, uint64_t address,
                      struct ttd_position *position)
{
    size_t mask = ((size_t)1 << (64 - netting->slot_shift)) - 1;
    size_t slot = netting_hash(address, netting->slot_shift);
    uint32_t known;
    while ((known = netting->slots[slot]) != 0) {
        const struct ttd_net *net = &netting->nets[known - 1];
        if (net->address == address) {
            *position = ttd_netting_start(netting, net->first);
            return true;
        }
        slot = (slot + 1) & mask;
    }
    return false;
}
