/* SPDX-License-Identifier: MIT */
/*
 * Tells its recorder of heaps that it does not have: runs one script in each of its threads. A
 * letter of a script is a call, mostly about the thread's newest heap:
 *
 *     c C s   creates a heap within it, or within that of malloc, or of its own
 *     n       tells of it anew, within that of malloc
 *     a r R f allocates a block; makes the newest one larger, where it is or elsewhere; frees it
 *     o e     allocates a block at an odd address; frees the newest one and keeps its address
 *     x       allocates a block of the heap that was destroyed last
 *     p w l u protects, makes writable, locks, unlocks
 *     d D     destroys it; destroys the oldest one, and so what is within it
 *     ( )     pauses and resumes recording of the thread
 *     [       begins an island of activity 7
 *     F       forks: the child runs the rest of the script, and the parent waits for it
 *     G       forks: the parent runs the rest, then the child does, while the parent waits for it
 *     E       forks: the child runs the rest when the parent has ended
 *
 * Handles are (thread + 1) << 40 | heap << 20, and blocks follow the handle of their heap.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttdtrace/live_heap.h>

enum { THREADS = 8, HEAPS = 4096, STRIDE = 64 };

static const struct ttd_live_guid guid = {
    {0x5c, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};
static struct ttd_live *client;

struct heap {
    uintptr_t handle;
    uintptr_t blocks; /* that it has made */
    uintptr_t newest;
};

struct state {
    uintptr_t base;
    struct heap heaps[HEAPS];
    size_t depth, made;
};

static const char *scripts[THREADS];
static struct state states[THREADS];
static pid_t waits_for; /* a child, to be waited for at the end; 0 for none */
static int held = -1;   /* the end of a pipe, for which a child waits */

static void tell(const struct state *state, const struct heap *heap, const void *parent)
{
    char name[32];
    snprintf(name, sizeof name, "pool %zx", (size_t)heap->handle);
    ttd_live_heap_create_sized(client, (void *)heap->handle, parent, name, state->made,
                               state->depth);
}

static void create(struct state *state, const void *parent)
{
    struct heap *heap = &state->heaps[state->depth++];
    *heap = (struct heap){.handle = state->base + ((uintptr_t)state->made++ << 20)};
    tell(state, heap, parent);
}

static void reallocate(struct heap *heap, int moves)
{
    uintptr_t old = heap->newest;
    if (moves)
        heap->newest = heap->handle + ++heap->blocks * STRIDE;
    ttd_live_heap_realloc(client, (void *)heap->handle, (void *)old, (void *)heap->newest, 50);
}

static void call(struct state *state, struct heap *heap, char letter)
{
    const void *handle = (void *)heap->handle;
    switch (letter) {
    case 'n':
        heap->newest = 0;
        tell(state, heap, NULL);
        break;
    case 'a':
    case 'o':
        heap->newest = heap->handle + ++heap->blocks * STRIDE + (letter == 'o');
        ttd_live_heap_alloc(client, handle, (void *)heap->newest, 1 + heap->blocks % STRIDE);
        break;
    case 'r':
    case 'R':
        if (heap->newest != 0)
            reallocate(heap, letter == 'R');
        break;
    case 'f':
    case 'e':
        if (heap->newest != 0)
            ttd_live_heap_free(client, handle, (void *)heap->newest);
        if (letter == 'f')
            heap->newest = 0;
        break;
    case 'p':
    case 'w':
        ttd_live_heap_protect(client, handle, letter == 'p');
        break;
    case 'l':
        ttd_live_heap_lock(client, handle);
        break;
    case 'u':
        ttd_live_heap_unlock(client, handle);
        break;
    default:
        if (letter == 'D') /* the others of the thread that are not within it stay as they are */
            state->depth = 1;
        ttd_live_heap_destroy(client, (void *)state->heaps[--state->depth].handle);
    }
}

/* Forks. Returns whether the caller is to run the rest of the script now: the parent does if
 * `letter` is G, and then the child in any case. */
static int forks(char letter)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child != 0) {
        close(ends[0]);
        waits_for = letter == 'E' ? 0 : child;
        held = ends[1];
        return letter == 'G';
    }
    close(ends[1]);
    while (letter != 'F' && read(ends[0], &byte, 1) > 0)
        ;
    if (letter == 'E')
        sleep(3); /* until the recorder has written the parent's end */
    return 1;
}

static void *run(void *argument)
{
    struct state *state = argument;
    for (const char *letter = scripts[state - states]; *letter != '\0'; letter++) {
        struct heap *newest = state->depth != 0 ? &state->heaps[state->depth - 1] : NULL;
        if (*letter == '(')
            ttd_live_try_pause(client);
        else if (*letter == '[')
            ttd_live_start(client, 7, TTD_LIVE_NO_LIMIT, NULL, 0);
        else if (*letter == ')')
            ttd_live_resume(client);
        else if (strchr("FGE", *letter) && !forks(*letter))
            break;
        else if (*letter == 'c' && newest)
            create(state, (void *)newest->handle);
        else if (*letter == 'c' || *letter == 'C' || *letter == 's')
            create(state, *letter == 's' ? TTD_LIVE_HEAP_SYSTEM : NULL);
        else if (*letter == 'x')
            ttd_live_heap_alloc(client, (void *)state->heaps[state->depth].handle,
                                (void *)(state->base + STRIDE), 1);
        else if (newest && !strchr("FGE", *letter))
            call(state, newest, *letter);
    }
    if (held != -1)
        close(held);
    if (waits_for != 0)
        waitpid(waits_for, NULL, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    size_t count = argc - 1 < THREADS ? (size_t)argc - 1 : THREADS;
    client = ttd_live_open(&guid, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        scripts[i] = argv[i + 1];
        states[i].base = (uintptr_t)(i + 1) << 40;
    }
    if (count == 1) /* forks */
        return run(&states[0]) != NULL;
    for (size_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, &states[i]);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
