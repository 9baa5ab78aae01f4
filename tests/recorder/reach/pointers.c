/* SPDX-License-Identifier: MIT */
/* One or a few blocks, and where pointers to them point and stand. */
#include <malloc.h>

#include "case.h"

CASE(lost)
{
    block(40);
}

CASE(lost_by_overwriting)
{
    kept[0] = block(40);
    kept[0] = block(24);
    kept[0] = NULL;
}

CASE(start)
{
    kept[0] = block(40);
}

CASE(static_local)
{
    static void *local;

    local = block(40);
    __asm__ volatile("" : : "r"(&local) : "memory");
}

static void *initialized = &initialized;

CASE(initialized_data)
{
    initialized = block(40);
    __asm__ volatile("" : : "r"(&initialized) : "memory");
}

CASE(array_of_pointers)
{
    static void *table[1000];

    for (int i = 0; i < 1000; i++)
        table[i] = block(16);
    __asm__ volatile("" : : "r"(table) : "memory");
}

CASE(interior)
{
    kept[0] = (char *)block(64) + 24;
}

CASE(interior_last_byte)
{
    kept[0] = (char *)block(61) + 60;
}

CASE(one_past_end)
{
    kept[0] = (char *)block(64) + 64;
}

CASE(before_start)
{
    kept[0] = (char *)block(64) - 8;
}

CASE(start_and_interior)
{
    char *memory = block(64);

    kept[0] = memory + 32;
    kept[1] = memory;
}

CASE(interior_of_many)
{
    char *table = block(100 * sizeof(void *));

    for (int i = 0; i < 100; i++)
        put(table, i * sizeof(void *), (char *)block(32 + i) + 1 + i % 31);
    kept[0] = table;
}

CASE(interior_then_start)
{
    char *first = block(64);

    put(first, 8, block(40));
    kept[0] = first + 8;
}

CASE(start_then_interior)
{
    char *first = block(64);

    put(first, 8, (char *)block(40) + 16);
    kept[0] = first;
}

CASE(interior_chain)
{
    char *first = block(64), *second = block(48);

    put(first, 8, second + 3);
    put(second, 40, (char *)block(40) + 16);
    kept[0] = first + 24;
}

CASE(lost_to_start)
{
    put(block(64), 56, block(40));
}

CASE(lost_to_interior)
{
    put(block(64), 0, (char *)block(40) + 39);
}

CASE(lost_to_one_past_end)
{
    put(block(64), 0, (char *)block(40) + 40);
}

CASE(lost_twice_held)
{
    void *shared = block(24);

    put(block(64), 0, shared);
    put(block(64), 0, shared);
}

CASE(lost_and_kept)
{
    void *shared = block(24);

    put(block(64), 0, shared);
    kept[0] = shared;
}

CASE(lost_and_possible)
{
    char *shared = block(24);

    put(block(64), 0, shared);
    kept[0] = shared + 8;
}

CASE(possible_and_kept)
{
    char *first = block(64), *shared = block(24);

    put(first, 0, shared);
    kept[0] = first + 8;
    kept[1] = shared;
}

CASE(last_word)
{
    char *holder = block(28);

    put(holder, 16, block(40));
    kept[0] = holder;
}

CASE(last_bytes_too_short)
{
    char *holder = block(28);
    char *value = block(40);

    memcpy(holder + 24, &value, 4);
    kept[0] = holder;
}

CASE(unaligned_in_block)
{
    char *holder = block(64);

    put(holder, 9, block(40));
    kept[0] = holder;
}

CASE(unaligned_in_data)
{
    static char packed[32] __attribute__((aligned(8)));

    put(packed, 5, block(40));
    __asm__ volatile("" : : "r"(packed) : "memory");
}

CASE(aligned_to_4)
{
    static char packed[32] __attribute__((aligned(8)));

    put(packed, 4, block(40));
    __asm__ volatile("" : : "r"(packed) : "memory");
}

CASE(tagged_low)
{
    kept[0] = (void *)((uintptr_t)block(40) | 1);
}

CASE(tagged_high)
{
    kept[0] = (void *)((uintptr_t)block(40) | (uintptr_t)0x7ff8 << 48);
}

CASE(complemented)
{
    kept[0] = (void *)~(uintptr_t)block(40);
}

CASE(compressed)
{
    static uint32_t offsets[2];
    char *base = block(40);

    kept[0] = base;
    offsets[0] = (uint32_t)((char *)block(56) - base);
    __asm__ volatile("" : : "r"(offsets) : "memory");
}

CASE(freed_holder)
{
    void *holder = block(256);

    put(holder, 128, block(40));
    kept[0] = holder;
    free(holder);
}

CASE(freed_large_holder)
{
    void *holder = block(1 << 20);

    put(holder, 4096, block(40));
    kept[0] = holder;
    free(holder);
}

CASE(recycled_holder)
{
    void *holder = block(256);

    put(holder, 128, block(40));
    free(holder);
    kept[0] = malloc(256);
}

CASE(recycled_holder_lost)
{
    void *holder = block(256);

    put(holder, 128, block(40));
    free(holder);
    holder = malloc(256);
    put(holder, 64, block(48));
    lose(holder);
}

CASE(recycled_holder_and_target)
{
    void *holder = block(256), *target = block(40);

    put(holder, 128, target);
    free(target);
    free(holder);
    kept[0] = malloc(256);
    kept[1] = malloc(40);
    kept[1] = NULL;
}

CASE(recycled_target_and_holder)
{
    void *holder = block(4096), *target = block(72);

    put(holder, 128, target);
    free(target);
    free(holder);
    lose(malloc(72));
    kept[0] = malloc(4096);
}

/* The holder has links of free memory in bytes 16 to 31, which mean its own header: that begins in
 * the last word of the lost block. */
CASE(links_of_free_memory)
{
    void *large;

    lose(block(24));
    large = block(5000);
    kept[0] = block(40);
    free(large);
    kept[1] = block(9000);
    kept[2] = malloc(4000);
}

CASE(pointer_where_links_were)
{
    char *before = block(24), *large = block(5000);

    kept[0] = block(40);
    free(large);
    kept[1] = block(9000);
    kept[2] = malloc(4000);
    put(kept[2], 16, before + 16);
    put(kept[2], 24, before);
}

CASE(recycled_holder_cleared)
{
    void *holder = block(256);

    put(holder, 128, block(40));
    free(holder);
    kept[0] = calloc(1, 256);
}

CASE(recycled_holder_copied)
{
    void *holder = block(256);

    put(holder, 128, block(40));
    free(holder);
    holder = malloc(256);
    kept[0] = block(300);
    memcpy(kept[0], holder, 256);
    free(holder);
}

CASE(recycled_target)
{
    void *target = block(40);

    kept[0] = target;
    free(target);
    kept[1] = block(40);
    kept[1] = NULL;
}

CASE(realloc_lost)
{
    void *memory = NULL;

    for (size_t size = 10; size <= 100000; size *= 3)
        memory = realloc(memory, size);
}

CASE(realloc_kept)
{
    for (size_t size = 10; size <= 100000; size *= 3)
        kept[0] = realloc(kept[0], size);
}

CASE(realloc_moves_pointers)
{
    char *memory = block(64);

    put(memory, 8, block(40));
    block(200);
    kept[0] = realloc(memory, 5000);
}

CASE(realloc_cuts_pointer)
{
    char *memory = block(400);

    put(memory, 392, block(40));
    kept[0] = realloc(memory, 300);
}

CASE(calloc_lost)
{
    kept[0] = calloc(7, 11);
    kept[0] = NULL;
}

CASE(aligned)
{
    void *memory = NULL;

    kept[0] = aligned_alloc(64, 128);
    if (posix_memalign(&memory, 4096, 100) != 0)
        abort();
    kept[1] = memory;
    kept[2] = memalign(256, 50);
    kept[3] = memalign(1024, 60);
    kept[1] = kept[3] = NULL;
}

CASE(zero_size)
{
    kept[0] = malloc(0);
    kept[1] = malloc(0);
    kept[1] = NULL;
}

CASE(large_lost)
{
    block(3 << 20);
}

CASE(large_kept)
{
    char *memory = block(3 << 20);

    put(memory, 2 << 20, block(40));
    kept[0] = memory;
}

CASE(large_interior)
{
    kept[0] = (char *)block(3 << 20) + (1 << 20);
}

CASE(large_to_small)
{
    put(block(3 << 20), (3 << 20) - 8, block(40));
}

CASE(many_lost)
{
    for (int i = 0; i < 5000; i++)
        block(1 + i % 300);
}
