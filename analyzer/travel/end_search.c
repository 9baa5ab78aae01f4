/* SPDX-License-Identifier: MIT */
#include "travel/end_search.h"

#include <stdlib.h>

#include "base/grow.h"

/* With fewer addresses for each leaf than this, a replay takes less memory. The first leaves are
 * allowed in any case. */
#define LEAF_ADDRESSES 8
#define LEAVES_FREE    4096

/* More questions would take too long to answer. */
#define QUESTIONS_MAX 4096

void end_search_free(struct end_search *search)
{
    for (size_t i = 0; i < search->heap_count; i++) {
        end_bits_free(&search->heaps[i]->bits);
        free(search->heaps[i]);
    }
    free(search->questions);
}

/* ---- Heaps ---- */

static enum ttd_status end_heap_add(struct end_search *search, ttd_id id, struct end_heap **heap)
{
    *heap = calloc(1, sizeof **heap);
    if (!*heap)
        return TTD_ERROR_NO_MEMORY;
    (*heap)->id = id;
    end_bits_init(&(*heap)->bits);
    search->heaps[search->heap_count++] = *heap;
    return TTD_OK;
}

/* Finds the heaps of a chunk, and adds them if there is room. An unknown heap may be any, so it
 * must be the only one. */
static enum ttd_status end_heap_find_all(struct end_search *search, const struct ttd_netted *netted,
                                         struct end_heap **heaps)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < netted->heap_count && status == TTD_OK && search->is_plain; i++) {
        ttd_id id = netted->heaps[i];
        size_t place = 0;
        while (place < search->heap_count && search->heaps[place]->id != id)
            place++;
        if (place < search->heap_count)
            heaps[i] = search->heaps[place];
        else if (place == 0 || (place < END_HEAPS_MAX && id && search->heaps[0]->id))
            status = end_heap_add(search, id, &heaps[i]);
        else
            search->is_plain = false;
    }
    return status;
}

/* Forgets the blocks that calls behind a heap's destruction need: no call before it gives one. */
static void end_heap_destroy(struct end_search *search, struct end_heap *heap)
{
    search->unknown_releases += heap->needing;
    end_bits_free(&heap->bits);
    end_bits_init(&heap->bits);
    heap->needing = 0;
    heap->is_destroyed = true;
}

/* ---- Nets ---- */

static enum ttd_status end_add_block(struct end_search *search, const struct ttd_netter *netter,
                                     const struct ttd_net *net)
{
    struct heap_live *live = &search->replay->live;
    struct ttd_net_block found;
    uint32_t record;
    ttd_netter_block(netter, net, &found);
    struct heap_block block = {.address = found.block.address,
                               .size = found.block.size,
                               .event = found.block.event,
                               .allocated = found.block.allocated,
                               .thread = found.block.thread,
                               .stack = found.block.stack,
                               .heap = found.block.heap,
                               .action = found.action,
                               .api = found.block.api};
    enum ttd_status status =
        heap_live_record(live, block.address, heap_live_hash(live, block.address), &record);
    return status == TTD_OK ? heap_live_restore(live, record, &block) : status;
}

/* Takes in the state that a chunk leaves at an address, and whether it needs a block there. */
static inline enum ttd_status end_add_net(struct end_search *search, struct end_heap *heap,
                                          const struct ttd_netter *netter,
                                          const struct ttd_net *net, bool was_live)
{
    uint64_t key = end_bits_key(net->address);
    struct end_leaf *leaf = end_bits_leaf(&heap->bits, key);
    if (!leaf)
        return TTD_ERROR_NO_MEMORY;
    size_t word = end_leaf_word(key);
    unsigned shift = (unsigned)(key & 63);
    bool is_decided = leaf->is_decided[word] >> shift & 1;
    bool needs_block = leaf->needs_block[word] >> shift & 1;
    bool is_live = net->state == TTD_NET_LIVE;
    if (is_decided && needs_block != is_live)
        search->is_plain = false;
    leaf->is_decided[word] |= UINT64_C(1) << shift;
    leaf->needs_block[word] ^= (uint64_t)(needs_block != was_live) << shift;
    heap->needing += (uint64_t)was_live - needs_block;
    if (is_decided)
        return TTD_OK;
    search->decided++;
    return is_live && !heap->is_destroyed ? end_add_block(search, netter, net) : TTD_OK;
}

/* Takes in the nets of a heap that a chunk destroys: first of the calls behind, then before. */
static enum ttd_status end_add_destroyed(struct end_search *search, struct end_heap *heap,
                                         const struct ttd_netter *netter,
                                         const struct ttd_netted *netted, size_t place)
{
    const struct ttd_net_destruction *destruction = &netted->destructions[place];
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < netted->count && status == TTD_OK; i++) {
        const struct ttd_net *net = &netted->nets[i];
        if (net->heap == place && net->last > destruction->last)
            status = end_add_net(search, heap, netter, net,
                                 net->was_live && net->first > destruction->last);
    }
    end_heap_destroy(search, heap);
    for (size_t i = 0; i < netted->count && status == TTD_OK; i++) {
        struct ttd_net net = netted->nets[i];
        net.state = TTD_NET_FREE;
        if (net.heap == place && net.first < destruction->first)
            status = end_add_net(search, heap, netter, &net, net.was_live);
    }
    if (!search->has_destroyed ||
        ttd_position_compare(destruction->position, search->destroyed) < 0)
        search->destroyed = destruction->position;
    search->has_destroyed = true;
    return status;
}

static enum ttd_status end_add_nets(struct end_search *search, const struct ttd_netter *netter,
                                    const struct ttd_netted *netted)
{
    struct end_heap *heaps[TTD_NET_HEAPS_MAX] = {NULL};
    bool is_destroyed[TTD_NET_HEAPS_MAX] = {false};
    enum ttd_status status = end_heap_find_all(search, netted, heaps);
    if (!search->is_plain)
        return status;
    for (size_t i = 0; i < netted->heap_count && status == TTD_OK; i++) {
        is_destroyed[i] = netted->destructions[i].last != TTD_NET_NO_EVENT;
        if (is_destroyed[i])
            status = end_add_destroyed(search, heaps[i], netter, netted, i);
    }
    for (size_t i = 0; i < netted->count && status == TTD_OK; i++) {
        const struct ttd_net *net = &netted->nets[i];
        if (!is_destroyed[net->heap])
            status = end_add_net(search, heaps[net->heap], netter, net, net->was_live);
    }
    return status;
}

static bool end_is_sparse(const struct end_search *search)
{
    uint64_t leaves = 0;
    for (size_t i = 0; i < search->heap_count; i++)
        leaves += search->heaps[i]->bits.count;
    return leaves > LEAVES_FREE && leaves > search->decided / LEAF_ADDRESSES;
}

/* ---- Chunks ---- */

static bool end_is_decided(const struct end_search *search, uint64_t address)
{
    bool is_decided = false;
    for (size_t i = 0; i < search->heap_count; i++)
        is_decided |= end_bits_is_decided(&search->heaps[i]->bits, address);
    return is_decided;
}

/* Notes the questions to the chunks behind about the blocks that a chunk leaves pending. */
static enum ttd_status end_ask(struct end_search *search, size_t number,
                               const struct ttd_netted *netted)
{
    enum ttd_status status = TTD_OK;
    if (number + 1 == search->before)
        return TTD_OK;
    struct ttd_position next = search->chunks[number + 1].chunk.first_position;
    for (size_t i = 0; i < netted->pending_count && status == TTD_OK; i++) {
        const struct ttd_net_pending *pending = &netted->pending[i];
        if (ttd_position_compare(pending->position, next) <= 0)
            continue;
        /* A block that is acquired behind a destruction outlives it. */
        if ((search->has_destroyed &&
             ttd_position_compare(pending->position, search->destroyed) > 0) ||
            search->question_count == QUESTIONS_MAX)
            search->is_plain = false;
        if (!search->is_plain || !end_is_decided(search, pending->address))
            continue;
        status = grow_array((void **)&search->questions, &search->question_capacity,
                            search->question_count + 1, sizeof *search->questions);
        if (status == TTD_OK)
            search->questions[search->question_count++] = (struct end_question){number, *pending};
    }
    return status;
}

static void end_add_counts(struct heap_replay *replay, const struct ttd_netted *netted)
{
    for (int action = 0; action <= TTD_ACTION_DESTROY; action++) {
        replay->counts.actions[action] += netted->actions[action];
        replay->counts.events += netted->actions[action];
    }
    replay->counts.failed += netted->failed;
    replay->counts.unfinished += netted->unfinished;
    if (ttd_position_compare(netted->last_effect, replay->position) > 0)
        replay->position = netted->last_effect;
}

void end_search_begin(struct end_search *search)
{
    search->limit = search->to;
    if (search->before == search->count)
        return;
    struct ttd_position next = search->chunks[search->before].chunk.first_position;
    if (ttd_position_compare(next, search->limit) < 0)
        search->limit = next;
}

enum ttd_status end_search_add(struct end_search *search, const struct ttd_netter *netter,
                               size_t number, const struct ttd_netted *netted)
{
    const struct heap_batch_hook *hook = &search->trace->hook;
    enum ttd_status status = TTD_OK;
    if (hook->net)
        status = hook->net(hook->context, &search->chunks[number].chunk, netted);
    if (number >= search->before)
        return status;
    search->is_plain = search->is_plain && netted->is_plain &&
                       ttd_position_compare(netted->last_effect, search->limit) <= 0;
    if (status == TTD_OK && search->is_plain)
        status = end_ask(search, number, netted);
    if (status == TTD_OK && search->is_plain)
        status = end_add_nets(search, netter, netted);
    end_add_counts(search->replay, netted);
    search->is_plain = search->is_plain && !end_is_sparse(search);
    return status;
}

/* ---- Questions ---- */

/* Nets chunks once more. */
struct end_recheck {
    struct end_search *search;
    struct ttd_netter *netter;
    /* The chunk that was netted last; the number of chunks at first. */
    size_t number;
    /* How often a chunk may still be netted. */
    size_t left;
};

/* Nets a chunk, unless it was the last one. A replay is necessary if that takes too long, or if the
 * chunk cannot be read any more. */
static void end_recheck_net(struct end_recheck *recheck, size_t number)
{
    struct end_search *search = recheck->search;
    const struct end_chunk *chunk = &search->chunks[number];
    struct ttd_netted netted;
    if (recheck->number == number)
        return;
    recheck->number = number;
    if (!recheck->left ||
        ttd_netter_net(recheck->netter, &chunk->chunk, &chunk->defined, &netted, NULL) != TTD_OK)
        search->is_plain = false;
    else
        recheck->left--;
    search->is_plain = search->is_plain && netted.is_plain;
}

/* Goes from a question's chunk to the first of these: the one in which the block is acquired, and
 * the first one that has its address. */
static void end_answer(struct end_recheck *recheck, const struct end_question *question)
{
    struct end_search *search = recheck->search;
    struct ttd_position acquired = question->pending.position;
    for (size_t i = question->chunk + 1; i < search->before && search->is_plain; i++) {
        struct ttd_position position;
        if (ttd_position_compare(acquired, search->chunks[i].chunk.first_position) <= 0)
            return;
        end_recheck_net(recheck, i);
        if (!search->is_plain ||
            !ttd_netter_find(recheck->netter, question->pending.address, &position))
            continue;
        search->is_plain = ttd_position_compare(acquired, position) <= 0;
        return;
    }
}

static enum ttd_status end_answer_all(struct end_search *search)
{
    struct end_recheck recheck = {
        .search = search, .number = search->count, .left = 16 + search->count / 2};
    enum ttd_status status = ttd_netter_open(search->trace->reader, &recheck.netter);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < search->question_count && search->is_plain; i++)
        end_answer(&recheck, &search->questions[i]);
    ttd_netter_close(recheck.netter);
    return TTD_OK;
}

enum ttd_status end_search_finish(struct end_search *search)
{
    struct heap_replay *replay = search->replay;
    for (size_t i = 0; i < search->heap_count; i++)
        search->unknown_releases += search->heaps[i]->needing;
    replay->counts.unknown_releases = search->unknown_releases;
    if (search->before) {
        const struct ttd_chunk *last = &search->chunks[search->before - 1].chunk;
        replay->next = last->first_record + last->record_count;
    }
    return search->is_plain && search->question_count ? end_answer_all(search) : TTD_OK;
}
