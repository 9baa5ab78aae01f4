/* SPDX-License-Identifier: MIT */
/* An allocator that may be called from signal handlers: blocks of one size, on a stack that needs
   no lock. What was released last is given out next. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT = 4096, SLOTS = 4096 };

static _Alignas(4096) char slots[SLOTS][SLOT];
static uint32_t next[SLOTS + 1];
static _Atomic uint64_t head; /* tag << 32 | slot, from 1 */
static _Atomic uint32_t fresh;

/* Called once, unless it is NULL: by calloc and realloc when they have their block, by memalign
   and pvalloc before they have one. */
void (*volatile slots_between)(void);

static void come_between(void)
{
    void (*function)(void) = slots_between;
    slots_between = NULL;
    if (function)
        function();
}

static void *take(size_t size)
{
    uint64_t top = atomic_load(&head);
    if (size > SLOT)
        return NULL;
    while ((uint32_t)top != 0)
        if (atomic_compare_exchange_weak(&head, &top,
                                         ((top >> 32) + 1) << 32 | next[(uint32_t)top]))
            return slots[(uint32_t)top - 1];
    uint32_t slot = atomic_fetch_add(&fresh, 1);
    return slot < SLOTS ? slots[slot] : NULL;
}

void *malloc(size_t size)
{
    return take(size);
}

void free(void *block)
{
    if (!block)
        return;
    uint32_t slot = (uint32_t)(((char *)block - slots[0]) / SLOT) + 1;
    uint64_t top = atomic_load(&head), wanted;
    do {
        next[slot] = (uint32_t)top;
        wanted = ((top >> 32) + 1) << 32 | slot;
    } while (!atomic_compare_exchange_weak(&head, &top, wanted));
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    come_between();
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    come_between();
    if (!moved)
        return NULL;
    if (block)
        memmove(moved, block, size);
    free(block);
    return moved;
}

void *reallocarray(void *block, size_t count, size_t size)
{
    return realloc(block, count * size);
}

void *memalign(size_t alignment, size_t size)
{
    come_between();
    return alignment <= SLOT ? malloc(size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    *result = memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

void *valloc(size_t size)
{
    return malloc(size);
}

void *pvalloc(size_t size)
{
    come_between();
    return take(size);
}

size_t malloc_usable_size(void *block)
{
    return block ? SLOT : 0;
}
