/* SPDX-License-Identifier: MIT */
#include "travel/end_blocks.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "base/task.h"

/* Chunks are added one at a time, in a quarter of the time that netting takes: more threads would
 * wait for each other. */
#define THREADS_MAX 8

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
    /* Numbers of addresses that are decided, and that need a block. */
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

/* Takes in what a chunk leaves at an address. */
static enum ttd_status end_add_net(struct end_search *search, const struct ttd_netter *netter,
                                   const struct ttd_net *net)
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
    return is_live ? end_add_block(search, netter, net) : TTD_OK;
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

/* Takes in a netted chunk; those behind it have been taken in. */
static enum ttd_status end_add_chunk(struct end_search *search, const struct ttd_netter *netter,
                                     size_t number, const struct ttd_netted *netted)
{
    const struct heap_batch_hook *hook = &search->trace->hook;
    const struct end_chunk *chunk = &search->chunks[number];
    enum ttd_status status = TTD_OK;
    if (hook->net)
        status = hook->net(hook->context, &chunk->chunk, netted);
    bool is_settled = number + 1 == search->count ||
                      ttd_position_compare(netted->settled, chunk[1].chunk.first_position) <= 0;
    bool is_heap = !netted->has_heap || !search->has_heap || netted->heap == search->heap;
    if (!netted->is_plain || !is_settled || !is_heap)
        search->is_plain = false;
    if (!search->is_plain)
        return status;
    if (netted->has_heap)
        search->heap = netted->heap;
    search->has_heap |= netted->has_heap;
    for (size_t i = 0; i < netted->count && status == TTD_OK; i++)
        status = end_add_net(search, netter, &netted->nets[i]);
    end_add_counts(search->replay, netted);
    search->is_plain = search->is_plain && !end_bits_are_sparse(&search->bits);
    return status;
}

/* ---- The threads ---- */

/* Threads take chunks from the last to the first, net them at the same time, and add them in the
 * same order, one at a time: the result is the one of a single thread. */
struct end_crew {
    struct end_search *search;
    /* Number of chunks that no thread has taken: the first ones. */
    _Atomic size_t left;
    /* Guards the search and the members below. */
    pthread_mutex_t mutex;
    pthread_cond_t added;
    /* Number of chunks that were not added. */
    size_t unadded;
    bool is_over;
    enum ttd_status status;
    struct ttd_error *error;
};

/* Takes the next chunk; false if there is none. */
static bool end_take(struct end_crew *crew, size_t *number)
{
    size_t left = atomic_load(&crew->left);
    while (left && !atomic_compare_exchange_weak(&crew->left, &left, left - 1)) {
    }
    *number = left - 1;
    return left != 0;
}

static void end_fail(struct end_crew *crew, enum ttd_status status, const struct ttd_error *error)
{
    /* A replay finds the damage, and reports it. */
    crew->search->is_plain = false;
    if (status != TTD_ERROR_NO_MEMORY && status != TTD_ERROR_IO)
        return;
    crew->status = status;
    *crew->error = *error;
}

/* The result of netting a chunk. */
struct end_result {
    enum ttd_status status;
    struct ttd_netted netted;
    struct ttd_error error;
};

/* Adds a chunk when those behind it were added. Returns whether there is more to do. */
static bool end_add_in_turn(struct end_crew *crew, const struct ttd_netter *netter, size_t number,
                            const struct end_result *result)
{
    pthread_mutex_lock(&crew->mutex);
    while (!crew->is_over && crew->unadded != number + 1)
        pthread_cond_wait(&crew->added, &crew->mutex);
    if (!crew->is_over) {
        if (result->status == TTD_OK)
            crew->status = end_add_chunk(crew->search, netter, number, &result->netted);
        else
            end_fail(crew, result->status, &result->error);
        crew->unadded = number;
        crew->is_over = crew->status != TTD_OK || !crew->search->is_plain;
        pthread_cond_broadcast(&crew->added);
    }
    bool goes_on = !crew->is_over;
    pthread_mutex_unlock(&crew->mutex);
    return goes_on;
}

/* Fails only before it takes a chunk: other threads then do without this one. */
static enum ttd_status end_work(void *context)
{
    struct end_crew *crew = context;
    struct ttd_netter *netter;
    struct end_result result = {.error.what = NULL};
    size_t number;
    enum ttd_status status = ttd_netter_open(crew->search->trace->reader, &netter);
    bool goes_on = status == TTD_OK;
    while (goes_on && end_take(crew, &number)) {
        const struct end_chunk *chunk = &crew->search->chunks[number];
        result.status =
            ttd_netter_net(netter, &chunk->chunk, &chunk->defined, &result.netted, &result.error);
        goes_on = end_add_in_turn(crew, netter, number, &result);
    }
    if (status == TTD_OK)
        ttd_netter_close(netter);
    return status;
}

static enum ttd_status end_run_crew(struct end_crew *crew, size_t threads)
{
    struct task others[THREADS_MAX];
    for (size_t i = 1; i < threads; i++)
        task_start(&others[i], end_work, crew);
    enum ttd_status status = end_work(crew);
    for (size_t i = 1; i < threads; i++)
        (void)task_wait(&others[i]);
    if (!crew->is_over && crew->unadded)
        return status;
    return crew->status;
}

static enum ttd_status end_add_chunks(struct end_search *search, struct ttd_error *error)
{
    struct end_crew crew = {
        .search = search, .left = search->count, .unadded = search->count, .error = error};
    uint64_t allowed = search->trace->threads;
    size_t threads = allowed < THREADS_MAX ? (size_t)allowed : THREADS_MAX;
    pthread_mutex_init(&crew.mutex, NULL);
    pthread_cond_init(&crew.added, NULL);
    enum ttd_status status = end_run_crew(&crew, threads < search->count ? threads : search->count);
    pthread_cond_destroy(&crew.added);
    pthread_mutex_destroy(&crew.mutex);
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
    end_bits_free(&search.bits);
    free(search.chunks);
    return status;
}
