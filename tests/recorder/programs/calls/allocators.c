/* SPDX-License-Identifier: MIT */
/*
 * Calls every function that only one allocator has: JEMALLOC, TCMALLOC or MIMALLOC is defined.
 * Prints each call of its threads, and of the child of a fork, as
 *
 *     WHO ACTION BASE BLOCK SIZE RESULT
 *
 * Functions that are not there at all (with WEAK) make it end with status 77.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../attach/until_told.h"

#ifdef WEAK
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx
#pragma weak sallocx
#endif

enum { THREADS = 4, ROUNDS = 40, ROOM = 1 << 20 };

struct thread {
    char who;
    size_t used;
    char text[ROOM]; /* no call of its own is to come between */
};

static struct thread threads[THREADS + 1];
static __thread struct thread *self;

static void *acquired(void *block, size_t size)
{
    self->used +=
        (size_t)snprintf(self->text + self->used, ROOM - self->used, "%c Alloc 0 %lx %zu %d\n",
                         self->who, (unsigned long)block, size, block != NULL);
    return block;
}

static void *resized(uintptr_t base, void *block, size_t size)
{
    self->used +=
        (size_t)snprintf(self->text + self->used, ROOM - self->used, "%c ReAlloc %lx %lx %zu %d\n",
                         self->who, base, (unsigned long)block, size, block != NULL);
    return block ? block : (void *)base;
}

static void *releases(void *base)
{
    self->used += (size_t)snprintf(self->text + self->used, ROOM - self->used,
                                   "%c Free %lx 0 0 1\n", self->who, (unsigned long)base);
    return base;
}

/* Calls a function that reallocates the first argument. */
#define RESIZE(base, call, size)     base = resized((uintptr_t)(base), call, size)
#define RELEASE(function, base, ...) function(releases(base), ##__VA_ARGS__)

#ifdef JEMALLOC
void *mallocx(size_t size, int flags);
void *rallocx(void *base, size_t size, int flags);
size_t xallocx(void *base, size_t size, size_t extra, int flags);
size_t sallocx(const void *base, int flags);
size_t nallocx(size_t size, int flags);
void dallocx(void *base, int flags);
void sdallocx(void *base, size_t size, int flags);

enum { ZERO = 0x40, ALIGN_4096 = 12 };

static void *stays(void *base, size_t size, size_t extra)
{
    return xallocx(base, size, extra, 0) >= size ? base : NULL;
}

static void call_all(size_t i)
{
    char *block = acquired(mallocx(100 + i, ZERO), 100 + i);
    if (block[99] != 0 || sallocx(block, 0) < 100 || nallocx(100, 0) < 100)
        abort();
    block[0] = 'x';
    RESIZE(block, rallocx(block, 5000 + i, ZERO), 5000 + i);
    if (block[0] != 'x')
        abort();
    RESIZE(block, stays(block, 5010, 20), 5010);      /* has room */
    RESIZE(block, stays(block, 1 << 24, 0), 1 << 24); /* has not */
    RELEASE(sdallocx, block, 5010, 0);
    block = acquired(mallocx(200 + i, ALIGN_4096), 200 + i);
    if ((uintptr_t)block % 4096 != 0)
        abort();
    RELEASE(dallocx, block, ALIGN_4096);
    if (i == 0)
        acquired(mallocx(77, 0), 77); /* is lost */
}
#endif

#ifdef TCMALLOC
void *tc_malloc(size_t size);
void *tc_malloc_skip_new_handler(size_t size);
void *tc_calloc(size_t count, size_t size);
void *tc_realloc(void *base, size_t size);
void *tc_memalign(size_t alignment, size_t size);
int tc_posix_memalign(void **result, size_t alignment, size_t size);
void *tc_valloc(size_t size);
void *tc_pvalloc(size_t size);
void tc_free(void *base);
void tc_cfree(void *base);
void tc_free_sized(void *base, size_t size);
void *tc_new(size_t size);
void *tc_new_nothrow(size_t size, const void *tag);
void *tc_new_aligned(size_t size, size_t alignment);
void *tc_new_aligned_nothrow(size_t size, size_t alignment, const void *tag);
void *tc_newarray(size_t size);
void *tc_newarray_nothrow(size_t size, const void *tag);
void *tc_newarray_aligned(size_t size, size_t alignment);
void *tc_newarray_aligned_nothrow(size_t size, size_t alignment, const void *tag);
void tc_delete(void *base);
void tc_delete_nothrow(void *base, const void *tag);
void tc_delete_sized(void *base, size_t size);
void tc_delete_aligned(void *base, size_t alignment);
void tc_delete_sized_aligned(void *base, size_t size, size_t alignment);
void tc_delete_aligned_nothrow(void *base, size_t alignment, const void *tag);
void tc_deletearray(void *base);
void tc_deletearray_nothrow(void *base, const void *tag);
void tc_deletearray_sized(void *base, size_t size);
void tc_deletearray_aligned(void *base, size_t alignment);
void tc_deletearray_sized_aligned(void *base, size_t size, size_t alignment);
void tc_deletearray_aligned_nothrow(void *base, size_t alignment, const void *tag);

static void call_all(size_t i)
{
    size_t size = 100 + i;
    char tag;
    void *block = acquired(tc_malloc(size), size);
    RESIZE(block, tc_realloc(block, 3 * size), 3 * size);
    RELEASE(tc_free, block);
    RELEASE(tc_cfree, acquired(tc_malloc_skip_new_handler(size), size));
    RELEASE(tc_free_sized, acquired(tc_calloc(3, size), 3 * size), 3 * size);
    RELEASE(tc_free, acquired(tc_memalign(64, size), size));
    if (tc_posix_memalign(&block, 64, size) != 0)
        abort();
    RELEASE(tc_free, acquired(block, size));
    RELEASE(tc_free, acquired(tc_valloc(size), size));
    RELEASE(tc_free, acquired(tc_pvalloc(size), size));
    RELEASE(tc_delete, acquired(tc_new(size), size));
    RELEASE(tc_delete_nothrow, acquired(tc_new_nothrow(size, &tag), size), &tag);
    RELEASE(tc_delete_sized, acquired(tc_new(size), size), size);
    RELEASE(tc_delete_aligned, acquired(tc_new_aligned(size, 64), size), 64);
    RELEASE(tc_delete_sized_aligned, acquired(tc_new_aligned(size, 64), size), size, 64);
    RELEASE(tc_delete_aligned_nothrow, acquired(tc_new_aligned_nothrow(size, 64, &tag), size), 64,
            &tag);
    RELEASE(tc_deletearray, acquired(tc_newarray(size), size));
    RELEASE(tc_deletearray_nothrow, acquired(tc_newarray_nothrow(size, &tag), size), &tag);
    RELEASE(tc_deletearray_sized, acquired(tc_newarray(size), size), size);
    RELEASE(tc_deletearray_aligned, acquired(tc_newarray_aligned(size, 64), size), 64);
    RELEASE(tc_deletearray_sized_aligned, acquired(tc_newarray_aligned(size, 64), size), size, 64);
    RELEASE(tc_deletearray_aligned_nothrow,
            acquired(tc_newarray_aligned_nothrow(size, 64, &tag), size), 64, &tag);
    if (i == 0)
        acquired(tc_malloc(77), 77); /* is lost */
}
#endif

#ifdef MIMALLOC
#include "mimalloc_calls.h"
#endif

static void *run(void *argument)
{
    self = argument;
    for (size_t i = 0; i < ROUNDS; i++)
        call_all(i);
    return NULL;
}

static void print(const struct thread *thread)
{
    for (size_t at = 0; at < thread->used;) {
        ssize_t put = write(1, thread->text + at, thread->used - at);
        if (put < 0)
            _exit(1);
        at += (size_t)put;
    }
}

int main(void)
{
    pthread_t started[THREADS];
#ifdef WEAK
    if (!mallocx)
        return 77;
#endif
    wait_until_told();
    for (int i = 0; i < THREADS; i++) {
        threads[i].who = (char)('0' + i);
        pthread_create(&started[i], NULL, run, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
    for (int i = 0; i < THREADS; i++)
        print(&threads[i]);
    if (fork() != 0)
        return wait(NULL) < 0;
    threads[THREADS].who = 'c';
    run(&threads[THREADS]);
    print(&threads[THREADS]);
    return 0;
}
