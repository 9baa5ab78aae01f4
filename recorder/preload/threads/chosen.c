/* SPDX-License-Identifier: MIT */
#include "preload/threads/chosen.h"

#include "preload/system/own_memory.h"
#ifndef TTD_ATTACHED
#include "preload/system/real.h"
#endif

/*
 * A hash table of buckets, each a line of the cache. An address is in the bucket of its place, or
 * if that was full, in the next one; the filter of the bucket then says so. Entries change by
 * single atomic operations: a thread is given an address only after another one has released it,
 * and forgotten it here.
 *
 * Before the table is a filter; the cache holds it: most blocks are not in the table, and a look
 * there takes a line that is far away. Blocks of one place share a bucket, so that a look for one
 * that is not recorded finds the line of its neighbour that is.
 *
 * The table has room for the sample of a heap of some 50 GB. Each page of it that is used costs the
 * program a fault: that of a rare sample is smaller.
 */
enum { BUCKET_ENTRIES = 8, BUCKET_BITS = 18, BUCKET_BITS_LEAST = 15 };

/* The mean distance of a sample from which on the table is smaller. */
#define SAMPLE_FREQUENT (UINT64_C(128) << 10)

/* A number of blocks in the filter that is not counted any more. */
enum { FILTER_MANY = UINT8_MAX };

static inline uint64_t chosen_hash(uint64_t block)
{
    return block * UINT64_C(0x9E3779B97F4A7C15);
}

struct bucket {
    _Atomic uint64_t entries[BUCKET_ENTRIES];
};

static struct bucket *buckets;
static unsigned bucket_bits;
static _Atomic uint8_t *overflows; /* by bucket: entries of it were put into the next one */
_Atomic uint8_t chosen_filter[1 << CHOSEN_FILTER_BITS];
uint64_t chosen_least;

static unsigned chosen_bucket_bits(uint64_t mean)
{
    unsigned bits = BUCKET_BITS;
    for (; mean >= SAMPLE_FREQUENT && bits > BUCKET_BITS_LEAST; mean /= 2)
        bits--;
    return bits;
}

bool chosen_begin(void)
{
    if ((target_channel->flags & CHANNEL_CHOOSES) == 0 || buckets)
        return true;
    bucket_bits = chosen_bucket_bits(target_channel->sample);
    struct bucket *memory = unwind_pages((sizeof *buckets + 1) << bucket_bits);
    if (!memory)
        return false;
    overflows = (_Atomic uint8_t *)(memory + (UINT64_C(1) << bucket_bits));
    buckets = memory;
    chosen_least = target_channel->sample == 0 ? target_channel->only_above : 0;
#ifndef TTD_ATTACHED
    for (size_t place = 0; place <= ARENA_SIZE >> CHOSEN_PLACE_BITS; place++)
        atomic_store_explicit(
            chosen_filter_of((uintptr_t)arena_bytes + (place << CHOSEN_PLACE_BITS)), FILTER_MANY,
            memory_order_relaxed);
    real_not_usual();
#endif
    return true;
}

static uint32_t chosen_bucket(uint64_t block)
{
    return (uint32_t)(chosen_hash(block >> CHOSEN_PLACE_BITS) >> (64 - bucket_bits));
}

/* Returns the bucket that has what a bucket has no room for. */
static uint32_t chosen_next_bucket(uint32_t index)
{
    return (index + 1) & ((UINT32_C(1) << bucket_bits) - 1);
}

/* Replaces the one entry, if any, of a bucket; 0 is a free one. */
static bool chosen_replace_in(struct bucket *bucket, uint64_t old, uint64_t fresh)
{
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++) {
        uint64_t entry = atomic_load_explicit(&bucket->entries[i], memory_order_relaxed);
        if (entry == old && atomic_compare_exchange_strong(&bucket->entries[i], &entry, fresh))
            return true;
    }
    return false;
}

/* Replaces an entry in both buckets of a block. */
static bool chosen_replace(uint64_t block, uint64_t old, uint64_t fresh)
{
    uint32_t index = chosen_bucket(block);
    if (chosen_replace_in(&buckets[index], old, fresh))
        return true;
    if (fresh != 0)
        atomic_store_explicit(&overflows[index], 1, memory_order_relaxed);
    return atomic_load_explicit(&overflows[index], memory_order_relaxed) != 0 &&
           chosen_replace_in(&buckets[chosen_next_bucket(index)], old, fresh);
}

static bool chosen_is_in(const struct bucket *bucket, uint64_t block)
{
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        if (atomic_load_explicit(&bucket->entries[i], memory_order_relaxed) == block)
            return true;
    return false;
}

bool chosen_has(const void *block)
{
    uint64_t address = (uintptr_t)block;
    if (address == 0 || !chosen_may_have(block))
        return false;
    uint32_t index = chosen_bucket(address);
    return chosen_is_in(&buckets[index], address) ||
           (atomic_load_explicit(&overflows[index], memory_order_relaxed) != 0 &&
            chosen_is_in(&buckets[chosen_next_bucket(index)], address));
}

/* Adds 1 or -1 to a number of blocks in the filter. */
static void chosen_count(_Atomic uint8_t *blocks, int change)
{
    uint8_t count = atomic_load_explicit(blocks, memory_order_relaxed);
    while (count != FILTER_MANY &&
           !atomic_compare_exchange_weak(blocks, &count, (uint8_t)(count + change)))
        ;
}

bool chosen_release(uint64_t block)
{
    _Atomic uint8_t *blocks = chosen_filter_of(block);
    if (LIKELY(atomic_load_explicit(blocks, memory_order_relaxed) == 0) ||
        !chosen_replace(block, block, 0))
        return false;
    chosen_count(blocks, -1);
    return true;
}

void chosen_forget(uint64_t block)
{
    if (block != 0)
        chosen_release(block);
}

/* Adds a block. If the set is full, its release would not be recorded: that call is lost. */
static bool chosen_add(const struct thread *level, uint64_t block)
{
    if (chosen_has((const void *)(uintptr_t)block)) /* nobody has seen its release */
        return true;
    chosen_count(chosen_filter_of(block), 1);
    if (chosen_replace(block, 0, block))
        return true;
    chosen_count(chosen_filter_of(block), -1);
    while (level->outer)
        level = level->outer;
    atomic_fetch_add_explicit(&level->slot->lost[LOSS_OVERFLOW], 1, memory_order_relaxed);
    return false;
}

/* Returns a random number: xorshift64*. */
static uint64_t chosen_random_number(struct thread *level)
{
    uint64_t state = level->random;
    if (state == 0)
        state = chosen_hash((uintptr_t)level ^ level->sequence << 32 ^ level->clock) | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    level->random = state;
    return state * UINT64_C(0x2545F4914F6CDD1D);
}

/*
 * Returns the bytes up to the next block of the sample: a number of an exponential distribution,
 * so that each byte is as likely as any other to be the one whose block is chosen, whatever came
 * before. It is the mean times -ln(u), for a random u from 0 to 1; here u is 2^-n * x with x from 1
 * to 2, and the binary logarithm of x comes bit by bit, by squaring.
 */
static int64_t chosen_gap(struct thread *level, uint64_t mean)
{
    enum { BITS = 24, ONE = 31 };
    const uint64_t ln_2 = UINT64_C(2977044472); /* times 2^32 */
    uint64_t number = chosen_random_number(level) | 1;
    unsigned zeros = (unsigned)__builtin_clzll(number);
    uint64_t x = number << zeros >> (63 - ONE), fraction = 0;
    for (int i = 0; i < BITS; i++) {
        x = x * x >> ONE;
        fraction = fraction << 1 | x >> (ONE + 1);
        x >>= x >> (ONE + 1);
    }
    uint64_t logarithm = ((uint64_t)(zeros + 1) << BITS) - fraction; /* -log2(u) times 2^BITS */
    uint64_t factor = logarithm * ln_2 >> 32;                        /* -ln(u) times 2^BITS */
    mean &= UINT32_MAX;                                              /* it does not exceed that */
    return (int64_t)(mean * (factor >> BITS) +
                     (mean * (factor & ((UINT64_C(1) << BITS) - 1)) >> BITS) + 1);
}

/* Whether a block of this size is recorded. */
static bool chosen_wants(struct thread *level, uint64_t size)
{
    uint64_t mean = target_channel->sample;
    if (mean == 0)
        return size >= target_channel->only_above;
    if (level->until_sample <= 0)
        level->until_sample = chosen_gap(level, mean);
    level->until_sample -= (int64_t)(size < INT64_MAX / 2 ? size : INT64_MAX / 2);
    if (LIKELY(level->until_sample > 0))
        return false;
    level->until_sample = chosen_gap(level, mean);
    return true;
}

/* Returns a product, or the largest number. */
static uint64_t chosen_product(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? UINT64_MAX : bytes;
}

#define FACTS(name, value, text, symbol, template, effect, family, operands, arguments, base,      \
              size, count)                                                                         \
    [value] = {TTD_EFFECT_##effect, TTD_FAMILY_##family, OPERAND_##size, OPERAND_##count},

enum { OPERAND_0, OPERAND_1, OPERAND_2, OPERAND_ZERO, OPERAND_ONE };

static const struct call_facts chosen_facts[TTD_API_COUNT] = {TTD_APIS(FACTS)};

struct call_facts call_facts_of(unsigned operation)
{
    return operation < TTD_API_COUNT ? chosen_facts[operation] : (struct call_facts){0};
}

/* Returns the size that is asked for by an acquisition or reallocation. */
static uint64_t chosen_size_of(unsigned operation, const uint64_t *operands)
{
    struct call_facts facts = call_facts_of(operation);
    uint64_t size = operands[facts.size];
    return facts.count == OPERAND_ONE ? size : chosen_product(operands[facts.count], size);
}

enum call_kind chosen_kind_of(unsigned operation)
{
    struct call_facts facts = call_facts_of(operation);
    if (facts.family == TTD_FAMILY_CUSTOM)
        return OTHER;
    switch (facts.effect) {
    case TTD_EFFECT_REALLOC:
        return REALLOCATES;
    case TTD_EFFECT_RESIZE:
        return RESIZES;
    case TTD_EFFECT_FREE:
    case TTD_EFFECT_FREE_SIZED:
        return RELEASES;
    default:
        return ACQUIRES;
    }
}

/*
 * A reallocation is a release, and an acquisition that is chosen anew: a block that grows step by
 * step is as likely to be recorded as any other. If both are recorded, so is the call as it is; one
 * alone is recorded as such. The release takes effect before the call; that may yet fail.
 */
static enum chosen_part chosen_reallocate(struct thread *level, unsigned operation,
                                          const struct unwind_regs *caller,
                                          const uint64_t *operands)
{
    uint64_t base = operands[0], size = chosen_size_of(operation, operands);
    bool is_known = base != 0 && chosen_release(base);
    bool is_wanted = (size != 0 || base == 0) && chosen_wants(level, size);
    level->chosen = (struct chosen){is_known, is_wanted, size, base, *caller};
    if (is_known && is_wanted)
        return CHOSEN_WHOLE;
    level->island.remaining--; /* see REALLOCATION_BEGIN */
    return is_known ? CHOSEN_RELEASE : CHOSEN_NONE;
}

void chosen_reallocated(struct thread *level, uint64_t block)
{
    struct chosen *chosen = &level->chosen;
    bool was_known = chosen->is_known, is_wanted = chosen->is_wanted;
    chosen->is_known = chosen->is_wanted = false;
    if (block == 0 && was_known && chosen->size != 0) {
        /* It has failed, and the block is still there. */
        if (is_wanted)
            chosen_add(level, chosen->base);
        else
            atomic_fetch_add_explicit(&level->slot->lost[LOSS_OVERFLOW], 1, memory_order_relaxed);
    }
    if (block == 0 || !is_wanted || !chosen_add(level, block) || was_known)
        return;
    struct unwind_delta stack;
    const uint64_t operands[] = {0, chosen->size};
    thread_capture(level, TTD_API_REALLOC, &chosen->caller, &stack);
    if (thread_append(level, TTD_API_REALLOC, &stack, operands, 2))
        thread_append(level, OP_REALLOC_END, &(const struct unwind_delta){0}, &block, 1);
}

bool chosen_acquires(struct thread *level, unsigned operation, const uint64_t *operands,
                     unsigned count)
{
    uint64_t block = operands[count - 1];
    return block != 0 && chosen_wants(level, chosen_size_of(operation, operands)) &&
           chosen_add(level, block);
}

enum chosen_part chosen_call(struct thread *level, unsigned operation,
                             const struct unwind_regs *caller, const uint64_t *operands,
                             unsigned count)
{
    bool is_chosen = true;
    switch (chosen_kind_of(operation)) {
    case ACQUIRES:
        is_chosen = chosen_acquires(level, operation, operands, count);
        level->steps -= !is_chosen;
        break;
    case RELEASES:
        is_chosen = chosen_release(operands[0]);
        level->is_silent = !is_chosen;
        break;
    case REALLOCATES:
        return chosen_reallocate(level, operation, caller, operands);
    case RESIZES:
        is_chosen = chosen_replace(operands[0], operands[0], operands[0]);
        level->island.remaining -= !is_chosen;
        break;
    default:
        break;
    }
    return is_chosen ? CHOSEN_WHOLE : CHOSEN_NONE;
}
