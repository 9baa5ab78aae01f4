/* SPDX-License-Identifier: MIT */
#include "unwind_mem.h"

#include <errno.h>
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
    if (addr == 0) {
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

void *unwind_pages(size_t size)
{
    long p = raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p < 0 && p > -4096 ? NULL : (void *)p;
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
