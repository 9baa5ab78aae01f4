/* SPDX-License-Identifier: MIT */
/* Pointers in memory that the program has mapped: private, shared, of files, with any protection.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"

CASE(mapping)
{
    put(map(1 << 20), 512 << 10, block(40));
}

CASE(mapping_interior)
{
    put(map(1 << 20), 512 << 10, (char *)block(40) + 16);
}

CASE(mapping_unaligned)
{
    put(map(1 << 20), (512 << 10) + 3, block(40));
}

CASE(mapping_shared)
{
    void *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    put(memory, 4096, block(40));
}

CASE(mapping_of_file)
{
    char name[] = "/tmp/reach.XXXXXX";
    int file = mkstemp(name);
    void *memory;

    if (file < 0 || unlink(name) != 0 || ftruncate(file, 8192) != 0)
        abort();
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    put(memory, 4096, block(40));
}

CASE(mapping_unmapped)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    munmap(memory, 1 << 20);
}

CASE(mapping_discarded)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    madvise(memory, 1 << 20, MADV_DONTNEED);
}

CASE(mapping_read_only)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    mprotect(memory, 1 << 20, PROT_READ);
}

CASE(mapping_without_access)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    mprotect(memory, 1 << 20, PROT_NONE);
}

/* Shared memory, which the program has no other mapping of. */
static void *map_shared(int file, int flags, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

CASE(shared_read_only)
{
    void *memory = map_shared(-1, MAP_ANONYMOUS, 8192);

    put(memory, 4096, block(40));
    mprotect(memory, 8192, PROT_READ);
}

CASE(shared_without_access)
{
    void *memory = map_shared(-1, MAP_ANONYMOUS, 8192);

    put(memory, 4096, block(40));
    mprotect(memory, 8192, PROT_NONE);
}

/* Where there are no huge pages, others do. */
CASE(shared_huge)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    put(memory != MAP_FAILED ? memory : map_shared(-1, MAP_ANONYMOUS, HUGE_PAGE), 4096, block(40));
}

CASE(private_huge)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    put(memory != MAP_FAILED ? memory : map(HUGE_PAGE), 4096, block(40));
}

/* Makes a file without a name. */
static int file_in(const char *directory)
{
    char name[64];
    int file;

    snprintf(name, sizeof name, "%s/reach.XXXXXX", directory);
    file = mkstemp(name);
    if (file < 0 || unlink(name) != 0 || ftruncate(file, 8192) != 0)
        abort();
    return file;
}

/* Writes the address of a block into a file by a mapping that is gone then. */
static void put_by_mapping(int file)
{
    void *memory = map_shared(file, 0, 8192);

    put(memory, 4096, block(40));
    munmap(memory, 8192);
}

static void *view(int file, int protection, int flags)
{
    void *memory = mmap(NULL, 8192, protection, flags, file, 0);

    if (memory == MAP_FAILED)
        abort();
    close(file);
    return memory;
}

CASE(view_shared_read_only)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_SHARED);
}

CASE(view_shared_without_access)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_NONE, MAP_SHARED);
}

CASE(view_private_read_only)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_PRIVATE);
}

CASE(view_of_shared_memory)
{
    int file = file_in("/dev/shm");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_SHARED);
}

CASE(view_of_memory_file)
{
    int file = memfd_create("reach", 0);

    if (file < 0 || ftruncate(file, 8192) != 0)
        abort();
    put_by_mapping(file);
    view(file, PROT_READ, MAP_PRIVATE);
}

/* A file that was not written since the process began: of it, nothing needs to be searched. */
CASE(view_of_old_file)
{
    view(open("/proc/self/exe", O_RDONLY), PROT_READ, MAP_SHARED);
    lose(block(40));
}

/* Private memory, whatever its name. */
CASE(device_of_zeros)
{
    put(view(open("/dev/zero", O_RDWR), PROT_READ | PROT_WRITE, MAP_PRIVATE), 4096, block(40));
}

static struct page {
    void *pointer;
} __attribute__((aligned(4096))) protected = {&protected};

CASE(data_protected)
{
    protected.pointer = block(40);
    mprotect(&protected, sizeof protected, PROT_READ);
}

CASE(mapping_large_untouched)
{
    char *memory = mmap(NULL, 4UL << 30, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    put(memory, 3UL << 30, block(40));
}
