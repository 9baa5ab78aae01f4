/* SPDX-License-Identifier: MIT */
#include "preload/system/own_memory.h"

#include <sys/mman.h>

#include "preload/system/sys.h"

struct own_memory own_memory;

/* Entries that were ever taken. Few are removed, so none is used again. */
static _Atomic size_t used;

/* Returns the next part of the list, and makes it if need be; NULL if there is no memory. */
static struct own_memory *next_part(struct own_memory *part)
{
    uint64_t next = atomic_load(&part->next);
    if (next != 0)
        return (struct own_memory *)next;
    long fresh = sys_call6(SYS_mmap, 0, sizeof *part, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh < 0 && fresh > -4096)
        return NULL;
    if (atomic_compare_exchange_strong(&part->next, &next, (uint64_t)fresh))
        return (struct own_memory *)fresh;
    sys_call3(SYS_munmap, fresh, sizeof *part, 0);
    return (struct own_memory *)next;
}

void own_memory_add(uintptr_t begin, size_t size)
{
    struct own_memory *part = &own_memory;
    size_t index = atomic_fetch_add(&used, 1);
    for (; index >= OWN_RANGES; index -= OWN_RANGES)
        if ((part = next_part(part)) == NULL)
            return;
    atomic_store_explicit(&part->ranges[index].begin, begin, memory_order_relaxed);
    atomic_store_explicit(&part->ranges[index].size, size, memory_order_release);
}

void own_memory_remove(uintptr_t begin)
{
    for (struct own_memory *part = &own_memory; part != NULL;
         part = (struct own_memory *)atomic_load(&part->next))
        for (size_t i = 0; i < OWN_RANGES; i++) {
            struct own_range *range = &part->ranges[i];
            if (atomic_load_explicit(&range->begin, memory_order_relaxed) == begin &&
                atomic_load_explicit(&range->size, memory_order_relaxed) != 0) {
                atomic_store_explicit(&range->size, 0, memory_order_release);
                return;
            }
        }
}
