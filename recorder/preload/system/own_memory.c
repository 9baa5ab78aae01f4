/* SPDX-License-Identifier: MIT */
#include "preload/system/own_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "preload/system/sys.h"

struct own_memory own_memory;

/* Entries that were ever taken. Few are removed, so none is used again. */
static _Atomic size_t used;

/* Returns the next part of the list, and makes it if need be; NULL if there is no memory. */
static struct own_memory *own_memory_next_part(struct own_memory *part)
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
        if (!(part = own_memory_next_part(part)))
            return;
    atomic_store_explicit(&part->ranges[index].begin, begin, memory_order_relaxed);
    atomic_store_explicit(&part->ranges[index].size, size, memory_order_release);
}

void own_memory_remove(uintptr_t begin)
{
    for (struct own_memory *part = &own_memory; part;
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

/*
 * The kernel copies the signal set in before it looks at `how`: EFAULT if the memory cannot be
 * read, else EINVAL since there is no such `how`. Unlike process_vm_readv, this call is open to
 * every sandbox. Kernel signal sets are 8 bytes.
 */
bool unwind_page_readable(uintptr_t address)
{
    address &= ~(uintptr_t)(UNWIND_PAGE - 1);
    if (address == 0 || unwind_is_confined)
        return false;
    return sys_call6(SYS_rt_sigprocmask, -1, (long)address, 0, 8, 0, 0) == -EINVAL;
}

bool unwind_range_readable(uintptr_t address, size_t size)
{
    if (size == 0)
        return true;
    if (address + (size - 1) < address)
        return false;
    uintptr_t last = (address + (size - 1)) / UNWIND_PAGE;
    for (uintptr_t page = address / UNWIND_PAGE; page <= last; page++)
        if (!unwind_page_readable(page * UNWIND_PAGE))
            return false;
    return true;
}

static void *own_memory_map(size_t size, int flags)
{
    long address =
        sys_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (address < 0 && address > -4096)
        return NULL;
    own_memory_add((uintptr_t)address, size);
    return (void *)address;
}

/* The part of the reserve that is left: [reserve_next, reserve_end). */
static _Atomic uintptr_t reserve_next;
static uintptr_t reserve_end;
bool unwind_is_confined;

void unwind_confine(size_t reserve)
{
    void *pages = own_memory_map(reserve, MAP_PRIVATE);
    if (pages) {
        reserve_end = (uintptr_t)pages + reserve;
        atomic_store(&reserve_next, (uintptr_t)pages);
    }
    unwind_is_confined = true;
}

static void *own_memory_take_from_reserve(size_t size)
{
    size = (size + UNWIND_PAGE - 1) & ~(size_t)(UNWIND_PAGE - 1);
    uintptr_t next = atomic_load(&reserve_next);
    do {
        if (reserve_end - next < size)
            return NULL;
    } while (!atomic_compare_exchange_weak(&reserve_next, &next, next + size));
    return (void *)next;
}

void *unwind_pages(size_t size)
{
    return unwind_is_confined ? own_memory_take_from_reserve(size)
                              : own_memory_map(size, MAP_PRIVATE);
}

void *unwind_pages_shared(size_t size)
{
    return unwind_is_confined ? NULL : own_memory_map(size, MAP_SHARED);
}

void *unwind_pages_used(size_t size)
{
    return unwind_is_confined ? own_memory_take_from_reserve(size)
                              : own_memory_map(size, MAP_PRIVATE | MAP_POPULATE);
}

void unwind_pages_free(void *pages, size_t size)
{
    if (unwind_is_confined)
        return;
    own_memory_remove((uintptr_t)pages);
    sys_call3(SYS_munmap, (long)pages, (long)size, 0);
}

bool unwind_read_elsewhere(struct unwind_mem *mem, uintptr_t address, uintptr_t *value)
{
    mem->is_foreign = true;
    if (address % sizeof *value != 0) /* an aligned word crosses no page */
        return false;
    if (address < mem->probed_low || address >= mem->probed_high) {
        uintptr_t page = address & ~(uintptr_t)(UNWIND_PAGE - 1);
        if (!unwind_page_readable(page))
            return false;
        if (page == mem->probed_high) {
            mem->probed_high += UNWIND_PAGE;
        } else {
            mem->probed_low = page;
            mem->probed_high = page + UNWIND_PAGE;
        }
    }
    *value = *(const uintptr_t *)address;
    return true;
}
