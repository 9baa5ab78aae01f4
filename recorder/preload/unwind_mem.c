/* SPDX-License-Identifier: MIT */
#include "unwind_mem.h"

#include "unwind.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/*
 * The kernel copies the signal set in before it looks at `how`: EFAULT if the memory cannot be
 * read, else EINVAL since there is no such `how`. Unlike process_vm_readv, this call is open to
 * every sandbox. Kernel signal sets are 8 bytes.
 */
bool unwind_page_readable(uintptr_t addr)
{
    addr &= ~(uintptr_t)(UNWIND_PAGE - 1);
    if (addr == 0 || unwind_is_confined) {
        return false;
    }
    return raw_syscall(SYS_rt_sigprocmask, -1, (long)addr, 0, 8, 0, 0) == -EINVAL;
}

bool unwind_range_readable(uintptr_t addr, size_t size)
{
    if (size == 0) {
        return true;
    }
    if (addr + (size - 1) < addr) {
        return false;
    }
    uintptr_t last = (addr + (size - 1)) / UNWIND_PAGE;
    for (uintptr_t page = addr / UNWIND_PAGE; page <= last; page++) {
        if (!unwind_page_readable(page * UNWIND_PAGE)) {
            return false;
        }
    }
    return true;
}

static void *map(size_t size)
{
    long p = raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p < 0 && p > -4096 ? NULL : (void *)p;
}

/* The rest of the reserve: [reserve_next, reserve_end). */
static _Atomic uintptr_t reserve_next;
static uintptr_t reserve_end;
bool unwind_is_confined;

void unwind_confine(size_t reserve)
{
    void *pages = map(reserve);
    if (pages != NULL) {
        reserve_end = (uintptr_t)pages + reserve;
        atomic_store(&reserve_next, (uintptr_t)pages);
    }
    unwind_is_confined = true;
}

void *unwind_pages(size_t size)
{
    if (!unwind_is_confined) {
        return map(size);
    }
    size = (size + UNWIND_PAGE - 1) & ~(size_t)(UNWIND_PAGE - 1);
    uintptr_t next = atomic_load(&reserve_next);
    do {
        if (reserve_end - next < size) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&reserve_next, &next, next + size));
    return (void *)next;
}

void unwind_pages_free(void *pages, size_t size)
{
    if (!unwind_is_confined) {
        raw_syscall(SYS_munmap, (long)pages, (long)size, 0, 0, 0, 0);
    }
}

bool unwind_read_elsewhere(struct unwind_mem *m, uintptr_t addr, uintptr_t *value)
{
    m->foreign = true;
    if (addr % sizeof(*value) != 0) { /* so that no word crosses a page */
        return false;
    }
    if (addr < m->ok_low || addr >= m->ok_high) {
        uintptr_t page = addr & ~(uintptr_t)(UNWIND_PAGE - 1);
        if (!unwind_page_readable(page)) {
            return false;
        }
        if (page == m->ok_high) {
            m->ok_high += UNWIND_PAGE;
        } else {
            m->ok_low = page;
            m->ok_high = page + UNWIND_PAGE;
        }
    }
    *value = *(const uintptr_t *)addr;
    return true;
}
