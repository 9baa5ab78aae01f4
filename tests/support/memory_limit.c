/* SPDX-License-Identifier: MIT */
#include "support/memory_limit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int memory_limit(size_t more)
{
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return -1;
    int count = fscanf(file, "%lu", &pages);
    fclose(file);
    rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    struct rlimit limit = {bytes, bytes};
    return count == 1 ? setrlimit(RLIMIT_AS, &limit) : -1;
}

/* Size of memory taken at first, and given back at a time. */
#define TAKEN ((size_t)128 << 20)
#define STEP  ((size_t)1 << 19)

unsigned memory_limit_try(int (*attempt)(void))
{
    if (memory_limit(TAKEN + STEP) != 0)
        return 0;
    char *taken = mmap(NULL, TAKEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED)
        return 0;
    unsigned failed = 0;
    for (size_t size = TAKEN; size > 0; failed++) {
        if (attempt()) {
            munmap(taken, size);
            return failed;
        }
        size -= STEP;
        munmap(taken + size, STEP);
    }
    return 0;
}
