/* SPDX-License-Identifier: MIT */
#include "travel/end_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "travel/net_crew.h"

/* With fewer addresses for each leaf than this, a replay takes less memory. The first leaves are
 * allowed in any case. */
#define LEAF_ADDRESSES 8
#define LEAVES_FREE    4096

/* More questions would take too long to answer. */
#define QUESTIONS_MAX 4096

/* ---- Bits ---- */

/* Number of bits of a key that its place in a leaf takes. */
#define END_LEAF_BITS  12
#define END_LEAF_WORDS ((size_t)1 << (END_LEAF_BITS - 6))

#define END_CACHE_SIZE ((size_t)256)

struct end_leaf {
    uint64_t number;
    /* The calls behind release or acquire a block at the address. */
    uint64_t is_decided[END_LEAF_WORDS];
    /* The first of them releases one. */
    uint64_t needs_block[END_LEAF_WORDS];
};

/* Two bits for each address of a heap. See end_bits_init(). */
struct end_bits {
    struct end_leaf **slots;
    size_t capacity;
    /* Number of leaves. */
    size_t count;
    struct hash_key key;
    /* The leaf that was found last, by the low bits of its number. */
    struct end_leaf *cache[END_CACHE_SIZE];
};

/* Returns the key of an address. Neighbours have neighbouring keys, and addresses that are no
 * multiples of 16 have leaves of their own. */
static inline uint64_t end_bits_key(uint64_t address)
{
    return address >> 4 | address << 60;
}

/* Returns the word of a leaf that has the bit of a key; the bit is the remainder by 64. */
static inline size_t end_leaf_word(uint64_t key)
{
    return key >> 6 & (END_LEAF_WORDS - 1);
}

/* Initializes bits that are all 0. */
static void end_bits_init(struct end_bits *bits)
{
    memset(bits, 0, sizeof *bits);
    bits->key = hash_key_new();
}

static void end_bits_free(struct end_bits *bits)
{
    for (size_t i = 0; i < bits->capacity; i++)
        free(bits->slots[i]);
    free(bits->slots);
}

/* Returns the slot of a leaf, or the empty one where it belongs. */
static struct end_leaf **end_bits_slot(const struct end_bits *bits, uint64_t number)
{
    size_t slot = hash_value(bits->key, number) & (bits->capacity - 1);
    while (bits->slots[slot] && bits->slots[slot]->number != number)
        slot = (slot + 1) & (bits->capacity - 1);
    return &bits->slots[slot];
}

/* Doubles the table. */
static enum ttd_status end_bits_grow(struct end_bits *bits)
{
    struct end_bits larger = {.capacity = bits->capacity ? 2 * bits->capacity : 64,
                              .key = bits->key};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < bits->capacity; i++) {
        if (bits->slots[i])
            *end_bits_slot(&larger, bits->slots[i]->number) = bits->slots[i];
    }
    free(bits->slots);
    bits->slots = larger.slots;
    bits->capacity = larger.capacity;
    return TTD_OK;
}

/* The general case of end_bits_leaf(). */
static struct end_leaf *end_bits_find(struct end_bits *bits, uint64_t number)
{
    if (2 * bits->count >= bits->capacity && end_bits_grow(bits) != TTD_OK)
        return NULL;
    struct end_leaf **slot = end_bits_slot(bits, number);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            return NULL;
        (*slot)->number = number;
        bits->count++;
    }
    bits->cache[number % END_CACHE_SIZE] = *slot;
    return *slot;
}

/* Returns the leaf of a key; makes it if there is none. NULL without memory. */
static inline struct end_leaf *end_bits_leaf(struct end_bits *bits, uint64_t key)
{
    uint64_t number = key >> END_LEAF_BITS;
    struct end_leaf *leaf = bits->cache[number % END_CACHE_SIZE];
    return leaf && leaf->number == number ? leaf : end_bits_find(bits, number);
}

/* Whether calls behind release or acquire a block at an address. */
static bool end_bits_is_decided(const struct end_bits *bits, uint64_t address)
{
    uint64_t key = end_bits_key(address);
    const struct end_leaf *leaf =
        bits->capacity ? *end_bits_slot(bits, key >> END_LEAF_BITS) : NULL;
    return leaf && leaf->is_decided[end_leaf_word(key)] >> (key & 63) & 1;
}

/* ---- The search ---- */

/* So few heaps that no block ends because too many of other heaps are at its address. */
#define END_HEAPS_MAX (HEAP_SHARED_MAX - 1)

/* A heap: only its own events change its blocks. */
struct end_heap {
    ttd_id id;
    /* It is destroyed in the chunks behind, so the others leave none of its blocks. */
    bool is_destroyed;
    /* Since its destruction, if it is destroyed. */
    struct end_bits bits;
    /* Number of addresses that need a block of the chunks before. */
    uint64_t needing;
};

/* A block that a ReAlloc of a chunk acquires at a position in a later chunk. */
struct end_question {
    size_t chunk;
    struct ttd_net_pending pending;
};

/* Everything but the first three members is 0 at first. */
struct end_search {
    /* Gets the blocks, counts and the position. */
    struct heap_replay *replay;
    const struct heap_trace *trace;
    struct ttd_position to;
    /* Those whose events are not all at `to` or before are only checked. */
    struct net_list list;
    /* No effect of these chunks may be behind: `to`, or where the next chunk begins. */
    struct ttd_position limit;
    struct end_heap *heaps[END_HEAPS_MAX];
    size_t heap_count;
    /* Number of addresses that were decided. */
    uint64_t decided;
    /* Releases of blocks that were never acquired. */
    uint64_t unknown_releases;
    /* Whether the chunks behind leave an address alone until its block is acquired; by chunk, the
     * last one first. */
    struct end_question *questions;
    size_t question_count;
    size_t question_capacity;
    /* Where a heap is destroyed first in the chunks behind, if one is. */
    bool has_destroyed;
    struct ttd_position destroyed;
    /* False as soon as a replay is necessary. */
    bool is_plain;
};

static void end_search_free(struct end_search *search)
{
    for (size_t i = 0; i < search->heap_count; i++) {
        end_bits_free(&search->heaps[i]->bits);
        free(search->heaps[i]);
    }
    free(search->questions);
    net_list_free(&search->list);
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
    struct heap_block block = net_block(netter, net);
    uint32_t record;
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
        /* Blocks that the program left are counted: see heap_replay.left. */
        search->is_plain = search->is_plain && !netted->destructions[i].is_of_nobody;
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
    if (number + 1 == search->list.before)
        return TTD_OK;
    struct ttd_position next = search->list.chunks[number + 1].chunk.first_position;
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

/* Sets the limit, when all chunks are listed. */
static void end_search_begin(struct end_search *search)
{
    search->limit = search->to;
    if (search->list.before == search->list.count)
        return;
    struct ttd_position next = search->list.chunks[search->list.before].chunk.first_position;
    if (ttd_position_compare(next, search->limit) < 0)
        search->limit = next;
}

/* Takes in a netted chunk, which the netter has netted last; those behind it have been taken in. */
static enum ttd_status end_search_add(struct end_search *search, const struct ttd_netter *netter,
                                      size_t number, const struct ttd_netted *netted)
{
    const struct heap_batch_hook *hook = &search->trace->hook;
    enum ttd_status status = TTD_OK;
    if (hook->net)
        status = hook->net(hook->context, &search->list.chunks[number].chunk, netted);
    if (number >= search->list.before)
        return status;
    search->is_plain = search->is_plain && netted->is_plain &&
                       ttd_position_compare(netted->last_effect, search->limit) <= 0;
    if (status == TTD_OK && search->is_plain)
        status = end_ask(search, number, netted);
    if (status == TTD_OK && search->is_plain)
        status = end_add_nets(search, netter, netted);
    net_count(search->replay, netted);
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
    const struct net_chunk *chunk = &search->list.chunks[number];
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
    for (size_t i = question->chunk + 1; i < search->list.before && search->is_plain; i++) {
        struct ttd_position position;
        if (ttd_position_compare(acquired, search->list.chunks[i].chunk.first_position) <= 0)
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
        .search = search, .number = search->list.count, .left = 16 + search->list.count / 2};
    enum ttd_status status = ttd_netter_open(search->trace->reader, &recheck.netter);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < search->question_count && search->is_plain; i++)
        end_answer(&recheck, &search->questions[i]);
    ttd_netter_close(recheck.netter);
    return TTD_OK;
}

/* Completes the counts, when all chunks have been taken in. */
static enum ttd_status end_search_finish(struct end_search *search)
{
    struct heap_replay *replay = search->replay;
    for (size_t i = 0; i < search->heap_count; i++)
        search->unknown_releases += search->heaps[i]->needing;
    replay->counts.unknown_releases = search->unknown_releases;
    if (search->list.before) {
        const struct ttd_chunk *last = &search->list.chunks[search->list.before - 1].chunk;
        replay->next = last->first_record + last->record_count;
    }
    return search->is_plain && search->question_count ? end_answer_all(search) : TTD_OK;
}

/* ---- The chunks in turn ---- */

struct end_taker {
    struct end_search *search;
    struct ttd_error *error;
};

/* Takes a chunk in. A replay finds damage, and reports it. */
static enum ttd_status end_take(void *context, const struct net_result *result, bool *is_over)
{
    const struct end_taker *taker = context;
    struct end_search *search = taker->search;
    enum ttd_status status = TTD_OK;
    if (result->status == TTD_OK)
        status = end_search_add(search, result->netter, result->number, &result->netted);
    else
        search->is_plain = false;
    if (result->status == TTD_ERROR_NO_MEMORY || result->status == TTD_ERROR_IO) {
        status = result->status;
        *taker->error = result->error;
    }
    *is_over = !search->is_plain;
    return status;
}

static enum ttd_status end_take_all(struct end_search *search, struct ttd_error *error)
{
    struct end_taker taker = {search, error};
    struct net_crew crew = {
        .list = &search->list, .is_backward = true, .context = &taker, .take = end_take};
    end_search_begin(search);
    enum ttd_status status = net_crew_run(&crew, search->trace);
    return status == TTD_OK && search->is_plain ? end_search_finish(search) : status;
}

enum ttd_status heap_end_blocks_find(struct heap_replay *replay, const struct heap_trace *trace,
                                     struct ttd_position to, struct end_blocks *found,
                                     struct ttd_error *error)
{
    struct end_search search = {.replay = replay, .trace = trace, .to = to};
    enum ttd_status status = net_list_read(&search.list, trace, to, &search.is_plain, error);
    if (status == TTD_OK && search.is_plain)
        status = end_take_all(&search, error);
    *found = (struct end_blocks){search.is_plain, search.list.before == search.list.count};
    end_search_free(&search);
    return status;
}
