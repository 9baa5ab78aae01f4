/* SPDX-License-Identifier: MIT */
#include "travel/end_blocks.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/hash_map.h"

/* ---- Bits for addresses ---- */

/* Addresses rotated right by 4 are keys: neighbours have neighbouring bits, and addresses that are
 * no multiples of 16 have leaves of their own. */
#define KEY_ROTATION 4
#define LEAF_BITS    12
#define LEAF_WORDS   ((size_t)1 << (LEAF_BITS - 6))
#define CACHE_SIZE   ((size_t)256)

/* With fewer addresses for each leaf than this, a replay takes less memory. The first leaves are
 * allowed in any case. */
#define LEAF_ADDRESSES 8
#define LEAVES_FREE    4096

struct end_leaf {
    uint64_t number;
    uint64_t is_decided[LEAF_WORDS];
    /* Whether the calls behind need a live block. */
    uint64_t needs_block[LEAF_WORDS];
};

/* All zero but for `key` when empty. */
struct end_bits {
    struct end_leaf **slots;
    size_t capacity;
    size_t count;
    struct hash_key key;
    /* The leaf that was found last, by the low bits of its number. */
    struct end_leaf *cache[CACHE_SIZE];
    /* Addresses that are decided, and those of them that need a block. */
    uint64_t decided;
    uint64_t needing;
};

static void end_bits_free(struct end_bits *bits)
{
    for (size_t i = 0; i < bits->capacity; i++)
        free(bits->slots[i]);
    free(bits->slots);
}

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
    struct end_bits larger = *bits;
    larger.capacity = bits->capacity ? 2 * bits->capacity : 64;
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

/* Finds a leaf that is not in the cache; makes it if there is none. NULL without memory. */
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
    bits->cache[number % CACHE_SIZE] = *slot;
    return *slot;
}

static bool end_bits_are_sparse(const struct end_bits *bits)
{
    return bits->count > LEAVES_FREE && bits->count > bits->decided / LEAF_ADDRESSES;
}

/* ---- The chunks ---- */

/* A chunk of events that the reader has left unread. */
struct end_chunk {
    struct ttd_chunk chunk;
    struct ttd_defined defined;
};

struct end_search {
    struct heap_replay *replay;
    const struct heap_trace *trace;
    struct ttd_netter *netter;
    struct end_chunk *chunks;
    size_t count;
    size_t capacity;
    struct end_bits bits;
    bool has_heap;
    ttd_id heap;
    /* False as soon as a replay is necessary. */
    bool is_plain;
};

/* Reads all but the events, and lists their chunks. */
static enum ttd_status end_list_chunks(struct end_search *search, struct ttd_error *error)
{
    struct ttd_reader *reader = search->trace->reader;
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind_unread(
        reader, TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_LOSSES) |
                    TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, error)) == TTD_OK) {
        if (batch.kind != TTD_KIND_EVENTS) {
            search->is_plain = false;
            return TTD_OK;
        }
        status = grow_array((void **)&search->chunks, &search->capacity, search->count + 1,
                            sizeof *search->chunks);
        if (status == TTD_OK)
            search->chunks[search->count++] =
                (struct end_chunk){batch.chunk, ttd_reader_defined(reader)};
    }
    search->is_plain = ttd_reader_is_intact(reader);
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status end_add_block(struct end_search *search, const struct ttd_net *net)
{
    struct heap_live *live = &search->replay->live;
    struct ttd_net_block found;
    uint32_t record;
    ttd_netter_block(search->netter, net, &found);
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

/* Takes in what a chunk leaves at an address. */
static enum ttd_status end_add_net(struct end_search *search, const struct ttd_net *net)
{
    struct end_bits *bits = &search->bits;
    uint64_t key = net->address >> KEY_ROTATION | net->address << (64 - KEY_ROTATION);
    uint64_t number = key >> LEAF_BITS;
    struct end_leaf *leaf = bits->cache[number % CACHE_SIZE];
    if (!leaf || leaf->number != number)
        leaf = end_bits_find(bits, number);
    if (!leaf)
        return TTD_ERROR_NO_MEMORY;
    size_t word = key >> 6 & (LEAF_WORDS - 1);
    unsigned shift = (unsigned)(key & 63);
    bool is_decided = leaf->is_decided[word] >> shift & 1;
    bool needs_block = leaf->needs_block[word] >> shift & 1;
    bool is_live = net->state == TTD_NET_LIVE;
    if (is_decided && needs_block != is_live)
        search->is_plain = false;
    leaf->is_decided[word] |= UINT64_C(1) << shift;
    leaf->needs_block[word] ^= (uint64_t)(needs_block != net->was_live) << shift;
    bits->needing += (uint64_t)net->was_live - needs_block;
    if (is_decided)
        return TTD_OK;
    bits->decided++;
    return is_live ? end_add_block(search, net) : TTD_OK;
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

/* Takes in a chunk; those behind it have been taken in. */
static enum ttd_status end_add_chunk(struct end_search *search, size_t number,
                                     struct ttd_error *error)
{
    const struct end_chunk *chunk = &search->chunks[number];
    struct ttd_netted netted;
    enum ttd_status status =
        ttd_netter_net(search->netter, &chunk->chunk, &chunk->defined, &netted, error);
    if (status != TTD_OK) {
        /* The replay finds the damage, and reports it. */
        search->is_plain = false;
        return status == TTD_ERROR_NO_MEMORY || status == TTD_ERROR_IO ? status : TTD_OK;
    }
    const struct heap_batch_hook *hook = &search->trace->hook;
    if (hook->net)
        status = hook->net(hook->context, &chunk->chunk, &netted);
    bool is_settled = number + 1 == search->count ||
                      ttd_position_compare(netted.settled, chunk[1].chunk.first_position) <= 0;
    bool is_heap = !netted.has_heap || !search->has_heap || netted.heap == search->heap;
    if (!netted.is_plain || !is_settled || !is_heap)
        search->is_plain = false;
    if (!search->is_plain)
        return status;
    if (netted.has_heap)
        search->heap = netted.heap;
    search->has_heap |= netted.has_heap;
    for (size_t i = 0; i < netted.count && status == TTD_OK; i++)
        status = end_add_net(search, &netted.nets[i]);
    end_add_counts(search->replay, &netted);
    search->is_plain = search->is_plain && !end_bits_are_sparse(&search->bits);
    return status;
}

static enum ttd_status end_add_chunks(struct end_search *search, struct ttd_error *error)
{
    enum ttd_status status = ttd_netter_open(search->trace->reader, &search->netter);
    for (size_t i = search->count; i-- && status == TTD_OK && search->is_plain;)
        status = end_add_chunk(search, i, error);
    /* A block that is needed before the first call was never allocated. */
    search->is_plain = search->is_plain && !search->bits.needing;
    if (search->count) {
        const struct ttd_chunk *last = &search->chunks[search->count - 1].chunk;
        search->replay->next = last->first_record + last->record_count;
    }
    return status;
}

enum ttd_status heap_end_blocks_find(struct heap_replay *replay, const struct heap_trace *trace,
                                     bool *is_done, struct ttd_error *error)
{
    struct end_search search = {.replay = replay, .trace = trace, .bits.key = hash_key_new()};
    enum ttd_status status = end_list_chunks(&search, error);
    if (status == TTD_OK && search.is_plain)
        status = end_add_chunks(&search, error);
    *is_done = search.is_plain;
    ttd_netter_close(search.netter);
    end_bits_free(&search.bits);
    free(search.chunks);
    return status;
}
