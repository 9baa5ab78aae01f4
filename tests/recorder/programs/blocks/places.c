/* SPDX-License-Identifier: MIT */
/*
 * places [END]: blocks whose sizes say where their only pointers are. END is how the process ends:
 * return (as without), exit, thread (a thread calls exit while the first one waits), gone (the
 * same, after the first one has ended) or fork (in a child).
 */
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum size {
    DATA = 101,
    BSS,
    STACK,
    THREAD_LOCAL,
    HEAP_HOLDER,
    HEAP,
    MAPPED,
    SHARED,
    OTHER_STACK,
    OTHER_THREAD_LOCAL,
    ARENA_HOLDER,
    ARENA,
    LARGE_HOLDER = 1 << 20,
    LARGE = 140,
    UNMAPPED,
    OVERWRITTEN,
    DEAD_STACK,
    ENDED_THREAD,
    RELEASED,
};

static int target;
static void *volatile data = &target;
static void *volatile bss;
static void *volatile released;
static __thread void *volatile thread_local;
static pthread_barrier_t placed;
static const char *end = "return";

/* The compiler must not know that nobody reads what is written there. */
static void *plain(void *volatile *slots)
{
    return (void *)(uintptr_t)slots;
}

static void *map(int flags)
{
    return mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

static void __attribute__((noinline)) place_below(size_t size)
{
    void *volatile *deep = alloca(20000);
    *deep = malloc(size);
}

static void *end_soon(void *unused)
{
    place_below(ENDED_THREAD);
    return unused;
}

static void *live_on(void *unused)
{
    void *volatile slot = malloc(OTHER_STACK);
    void *volatile *holder = malloc(ARENA_HOLDER);
    *holder = malloc(ARENA);
    thread_local = malloc(OTHER_THREAD_LOCAL);
    *(void *volatile *)map(MAP_PRIVATE) = plain(holder);
    pthread_barrier_wait(&placed);
    if (strcmp(end, "thread") == 0 || strcmp(end, "gone") == 0) {
        usleep(1000000); /* until the first thread waits, or has ended */
        exit(0);
    }
    for (;;)
        pause();
    return !slot ? NULL : unused;
}

static void place(void)
{
    void *volatile *mapped = map(MAP_PRIVATE);
    void *volatile *shared = map(MAP_SHARED);
    void *volatile *gone = map(MAP_PRIVATE);
    void *volatile *heap = malloc(HEAP_HOLDER), *volatile *large = malloc(LARGE_HOLDER);
    data = malloc(DATA);
    bss = malloc(BSS);
    thread_local = malloc(THREAD_LOCAL);
    *heap = malloc(HEAP);
    large[1000] = malloc(LARGE);
    *mapped = plain(heap);
    mapped[1] = malloc(MAPPED);
    mapped[2] = plain(large);
    *shared = malloc(SHARED);
    *gone = malloc(UNMAPPED);
    munmap(plain(gone), 8192);
    void *volatile *block = malloc(RELEASED);
    *block = malloc(OVERWRITTEN);
    released = plain(block);
    free(plain(block));
    released = NULL;
}

static void __attribute__((noinline)) clear_below(void)
{
    void *volatile *deep = alloca(20000);
    for (int i = 0; i < 2500; i++)
        deep[i] = NULL;
}

int main(int argc, char **argv)
{
    void *volatile slot = malloc(STACK);
    pthread_t thread;
    if (argc > 1)
        end = argv[1];
    if (strcmp(end, "fork") == 0 && fork() != 0)
        return wait(NULL) < 0;
    pthread_barrier_init(&placed, NULL, 2);
    pthread_create(&thread, NULL, live_on, NULL);
    place();
    pthread_create(&thread, NULL, end_soon, NULL);
    pthread_join(thread, NULL);
    place_below(DEAD_STACK);
    pthread_barrier_wait(&placed);
    if (strcmp(end, "return") != 0)
        clear_below();
    if (strcmp(end, "exit") == 0)
        exit(!slot);
    if (strcmp(end, "gone") == 0)
        pthread_exit(NULL);
    while (strcmp(end, "thread") == 0)
        pause();
    return !slot;
}
