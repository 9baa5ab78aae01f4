/* SPDX-License-Identifier: MIT */
/*
 * Calls everything of the live API: each of eight threads, with a client of its own, makes the
 * calls that the arguments name (conformance.txt), and after each of them allocates a block of a
 * size that is used once. Prints what the calls returned, with the state of the thread after them.
 * The data of a call is THREAD.CALL.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ttdtrace/live.h>

#include "../attach/until_told.h"

enum { THREADS = 8, CALLS = 200, LINE = 96, SIZE = 4096, MARKED = 10000 };
enum { ACTIVITY = 7, THROTTLE = 3 };

struct speaker {
    size_t index;
    struct ttd_live *client;
    /* Number and name of the call that is being made, and size of the name. */
    int call;
    char name[24];
    size_t size;
    char *range, *later;
    char file_name[512];
    char printed[CALLS][LINE];
};

static struct speaker speakers[THREADS];
static char long_data[TTD_LIVE_DATA_MAX + 1];
static char module_data[64] = "in the data of the program";
static int count;
static char **calls;
static pthread_barrier_t together;

static char *mapping_of(int letter)
{
    char *mapping = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        exit(1);
    memset(mapping, letter, SIZE);
    return mapping;
}

static bool is(const struct speaker *self, const char *name)
{
    return strcmp(calls[self->call], name) == 0;
}

static int open_client(struct speaker *self)
{
    struct ttd_live_guid guid = {{0x5d, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14}};
    guid.bytes[15] = (uint8_t)self->index;
    if (is(self, "open-without-guid"))
        return ttd_live_open(NULL, self->name, self->size) != NULL;
    if (is(self, "open-too-long"))
        return ttd_live_open(&guid, long_data, sizeof long_data) != NULL;
    self->client = ttd_live_open(&guid, self->name, self->size);
    return self->client != NULL;
}

static int of_client(struct speaker *self)
{
    char rest = 'x';
    if (strncmp(calls[self->call], "open", 4) == 0)
        return open_client(self);
    if (is(self, "is-open"))
        return ttd_live_is_open(self->client);
    if (is(self, "file-name"))
        return ttd_live_file_name(self->client, self->file_name, sizeof self->file_name) != 0;
    if (is(self, "file-name-without-room"))
        return ttd_live_file_name(self->client, &rest, 0) != 0 && rest == 'x';
    if (is(self, "close-too-long"))
        ttd_live_close(self->client, long_data, sizeof long_data);
    else if (is(self, "close"))
        ttd_live_close(self->client, self->name, self->size);
    else if (!is(self, "none"))
        return -1;
    return 0;
}

static int of_event(struct speaker *self)
{
    struct ttd_live *client = self->client;
    if (is(self, "event-thread"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, self->name, self->size);
    if (is(self, "event-global"))
        return ttd_live_add_event(client, TTD_LIVE_GLOBAL, 0, self->name, self->size);
    if (is(self, "event-keyframe"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, TTD_LIVE_KEYFRAME, self->name,
                                  self->size);
    if (is(self, "event-empty"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, NULL, 0);
    if (is(self, "event-longest"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, long_data, TTD_LIVE_DATA_MAX);
    if (is(self, "event-too-long"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, long_data, sizeof long_data);
    if (is(self, "event-bad-scope"))
        return ttd_live_add_event(client, (enum ttd_live_scope)2, 0, self->name, self->size);
    if (is(self, "event-bad-flags"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 2, self->name, self->size);
    if (is(self, "event-without-data"))
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, NULL, 1);
    return -1;
}

static int of_island(struct speaker *self)
{
    struct ttd_live *client = self->client;
    uint64_t executed, remaining;
    if (is(self, "start"))
        return ttd_live_start(client, ACTIVITY, TTD_LIVE_NO_LIMIT, self->name, self->size);
    if (is(self, "start-throttled"))
        return ttd_live_start(client, ACTIVITY, THROTTLE, self->name, self->size);
    if (is(self, "start-of-nothing"))
        return ttd_live_start(client, ACTIVITY, 0, self->name, self->size);
    if (is(self, "start-too-long"))
        return ttd_live_start(client, ACTIVITY, THROTTLE, long_data, sizeof long_data);
    if (is(self, "stop"))
        return ttd_live_stop(client, self->name, self->size);
    if (is(self, "stop-too-long"))
        return ttd_live_stop(client, long_data, sizeof long_data);
    if (is(self, "pause"))
        return ttd_live_try_pause(client);
    if (is(self, "resume"))
        return ttd_live_resume(client);
    if (is(self, "state"))
        return ttd_live_thread_state(client);
    if (is(self, "reset"))
        return ttd_live_reset_throttle(client);
    if (is(self, "throttle"))
        return ttd_live_throttle(client, &executed, &remaining);
    return -1;
}

static int of_dump(struct speaker *self)
{
    struct ttd_live *client = self->client;
    if (is(self, "dump-heaps"))
        return ttd_live_dump_heaps(client);
    if (is(self, "dump-range"))
        return ttd_live_dump_range(client, self->range, self->range + SIZE, true);
    if (is(self, "dump-later"))
        return ttd_live_dump_range(client, self->later, self->later + SIZE, false);
    if (is(self, "dump-empty"))
        return ttd_live_dump_range(client, self->range, self->range, true);
    if (is(self, "dump-empty-later"))
        return ttd_live_dump_range(client, self->range + 1, self->range, false);
    if (is(self, "dump-unmapped"))
        return ttd_live_dump_range(client, (char *)4096, (char *)8192, true);
    if (is(self, "dump-data"))
        return ttd_live_dump_module(client, module_data, true);
    if (is(self, "dump-module"))
        return ttd_live_dump_module(client, (void *)(uintptr_t)of_dump, false);
    if (is(self, "dump-no-module"))
        return ttd_live_dump_module(client, self->range, false);
    return -1;
}

static int of_heap(struct speaker *self)
{
    struct ttd_live *client = self->client;
    uintptr_t base = (self->index + 1) << 40;
    const void *heap = (void *)base, *block = (void *)(base + 1024), *other = (void *)(base + 2048);
    if (is(self, "heap-create"))
        return ttd_live_heap_create(client, heap, TTD_LIVE_HEAP_SYSTEM, self->name);
    if (is(self, "heap-create-sized"))
        return ttd_live_heap_create_sized(client, (void *)(base + 64), heap, self->name, 4096, 512);
    if (is(self, "heap-alloc"))
        return ttd_live_heap_alloc(client, heap, block, 128);
    if (is(self, "heap-alloc-failed"))
        return ttd_live_heap_alloc(client, heap, NULL, 128);
    if (is(self, "heap-realloc"))
        return ttd_live_heap_realloc(client, heap, block, other, 256);
    if (is(self, "heap-free"))
        return ttd_live_heap_free(client, heap, other);
    if (is(self, "heap-protect"))
        return ttd_live_heap_protect(client, heap, true);
    if (is(self, "heap-unprotect"))
        return ttd_live_heap_protect(client, heap, false);
    if (is(self, "heap-lock"))
        return ttd_live_heap_lock(client, heap);
    if (is(self, "heap-unlock"))
        return ttd_live_heap_unlock(client, heap);
    if (is(self, "heap-destroy"))
        return ttd_live_heap_destroy(client, heap);
    if (is(self, "heap-without-handle"))
        return ttd_live_heap_alloc(client, NULL, block, 1);
    return -1;
}

static int make(struct speaker *self)
{
    int (*const parts[])(struct speaker *) = {of_client, of_event, of_island, of_dump, of_heap};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int result = parts[i](self);
        if (result >= 0)
            return result;
    }
    exit(2);
}

static void *run(void *argument)
{
    struct speaker *self = argument;
    self->range = mapping_of('A' + (int)self->index);
    self->later = mapping_of('a' + (int)self->index);
    pthread_barrier_wait(&together);
    for (int i = 0; i < count; i++) {
        uint64_t executed, remaining;
        self->call = i;
        self->size = (size_t)snprintf(self->name, sizeof self->name, "%zu.%d", self->index, i);
        int result = make(self);
        int now = ttd_live_thread_state(self->client);
        ttd_live_throttle(self->client, &executed, &remaining);
        snprintf(self->printed[i], LINE, "%s %s %d %d %" PRIu64 " %" PRIu64 "\n", self->name,
                 calls[i], result, now, executed, remaining);
        void *volatile block = malloc(MARKED + CALLS * self->index + (size_t)i);
        (void)block;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    count = argc - 1 < CALLS ? argc - 1 : CALLS;
    calls = argv + 1;
    memset(long_data, 'l', sizeof long_data);
    wait_until_told();
    pthread_barrier_init(&together, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        speakers[i].index = i;
        pthread_create(&threads[i], NULL, run, &speakers[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++) {
        for (int j = 0; j < count; j++)
            fputs(speakers[i].printed[j], stdout);
        printf("ranges %p %p %s\n", (void *)speakers[i].range, (void *)speakers[i].later,
               speakers[i].file_name);
    }
    return 0;
}
