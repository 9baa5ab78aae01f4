/* SPDX-License-Identifier: MIT */
/*
 * An independent interposer, the referee of the recorder's numbers: it only counts, in the file
 * COUNTER_FILE, blocks that were acquired and blocks that were released. Behind the recorder in
 * LD_PRELOAD, it sees what the recorder passes on in the same run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counts {
    _Atomic unsigned long acquired;
    _Atomic unsigned long released;
    _Atomic unsigned long reallocated;
};

static struct counts before_the_file, of_others;
static struct counts *shared = &before_the_file;
static pid_t owner;
static int shared_file;

/* Copies of the process, which share the file, are not to be counted, nor is what the C library
 * releases at the request of the recorder, which has closed all files then. */
static struct counts *counts_of_this(void)
{
    bool is_counted = owner == 0 || (owner == getpid() && fcntl(shared_file, F_GETFD) >= 0);
    return is_counted ? shared : &of_others;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void open_file(void)
{
    /* LD_PRELOAD brings us into the recorder as well. */
    bool recorder = strcmp(program_invocation_short_name, "ttdrecord") == 0;
    const char *path = recorder ? NULL : getenv("COUNTER_FILE");
    int file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0 || ftruncate(file, sizeof *shared) != 0)
        return;
    void *mapped = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        return;
    memcpy(mapped, shared, sizeof *shared);
    shared_file = file;
    owner = getpid();
    shared = mapped;
}

void *malloc(size_t size)
{
    REAL(malloc);
    void *block = real(size);
    counts_of_this()->acquired += block != NULL;
    return block;
}

void *calloc(size_t count, size_t size)
{
    REAL(calloc);
    void *block = real(count, size);
    counts_of_this()->acquired += block != NULL;
    return block;
}

void *realloc(void *base, size_t size)
{
    REAL(realloc);
    void *block = real(base, size);
    counts_of_this()->acquired += !base && block;
    counts_of_this()->released += base && !block && size == 0;
    counts_of_this()->reallocated += base && block;
    return block;
}

void free(void *base)
{
    REAL(free);
    counts_of_this()->released += base != NULL;
    real(base);
}

void *memalign(size_t alignment, size_t size)
{
    REAL(memalign);
    void *block = real(alignment, size);
    counts_of_this()->acquired += block != NULL;
    return block;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    REAL(aligned_alloc);
    void *block = real(alignment, size);
    counts_of_this()->acquired += block != NULL;
    return block;
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    REAL(posix_memalign);
    int status = real(result, alignment, size);
    counts_of_this()->acquired += status == 0;
    return status;
}
