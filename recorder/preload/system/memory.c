/* SPDX-License-Identifier: MIT */
#include "preload/system/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "preload/system/own_memory.h"
#include "preload/system/sys.h"

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

static void *map(size_t size, int flags)
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
    void *pages = map(reserve, MAP_PRIVATE);
    if (pages != NULL) {
        reserve_end = (uintptr_t)pages + reserve;
        atomic_store(&reserve_next, (uintptr_t)pages);
    }
    unwind_is_confined = true;
}

static void *take_from_reserve(size_t size)
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
    return unwind_is_confined ? take_from_reserve(size) : map(size, MAP_PRIVATE);
}

void *unwind_pages_shared(size_t size)
{
    return unwind_is_confined ? NULL : map(size, MAP_SHARED);
}

void *unwind_pages_used(size_t size)
{
    return unwind_is_confined ? take_from_reserve(size) : map(size, MAP_PRIVATE | MAP_POPULATE);
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
