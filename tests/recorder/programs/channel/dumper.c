/* SPDX-License-Identifier: MIT */
/*
 * Dumps its memory into its trace. Each argument is a call, and prints a line:
 *
 *     heaps             dumps the heaps, in which it has a block of 'h'
 *     range later       dumps a mapping of 'r', at once or in the background
 *     empty unmapped    dumps ranges of which nothing is there
 *     data code none    dumps this program's data, or all of it, or no module at all
 *     name              tells the file
 *     handler           dumps the mapping from a signal handler
 *     crowd             dumps a mapping of its own in each of eight threads, ten times
 *     vanish            dumps a mapping that another thread unmaps and maps all the time
 *     replaced          dumps in the background where the program REPLACEMENT is, and executes it
 *     closed            closes the client; what follows does nothing
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ttdtrace/live.h>

enum { SIZE = 16384, THREADS = 8, TIMES = 10 };
/* A program that is not position-independent lies here, which this one is. */
enum { FIXED_BEGIN = 0x400000, FIXED_END = 0x800000 };

static const struct ttd_live_guid guid = {
    {0x5c, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};
static struct ttd_live *client;
char marked[64] = "in the data of the program";

static char *mapping_of(char letter)
{
    char *mapping = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        exit(1);
    memset(mapping, letter, SIZE);
    return mapping;
}

static void *dump_own(void *argument)
{
    char *mapping = mapping_of((char)('A' + (intptr_t)argument));
    intptr_t taken = 0;
    for (int i = 0; i < TIMES; i++) {
        mapping[i] = '.';
        taken += ttd_live_dump_range(client, mapping, mapping + SIZE, true);
    }
    printf("thread %p %d\n", (void *)mapping, (int)taken);
    return (void *)taken;
}

static int crowd(void)
{
    pthread_t threads[THREADS];
    intptr_t taken, sum = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, dump_own, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], (void **)&taken);
        sum += taken;
    }
    return sum == THREADS * TIMES;
}

static volatile int vanishes;

static void *remap(void *mapping)
{
    while (vanishes) {
        munmap(mapping, SIZE);
        mmap(mapping, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        *(volatile char *)mapping = 'v';
    }
    return NULL;
}

static int vanish(void)
{
    char *mapping = mapping_of('v');
    pthread_t thread;
    vanishes = 1;
    pthread_create(&thread, NULL, remap, mapping);
    for (int i = 0; i < 50; i++)
        ttd_live_dump_range(client, mapping, mapping + SIZE, true);
    vanishes = 0;
    pthread_join(thread, NULL);
    return 1;
}

static char *handled;
static int handler_result;

static void handle(int number)
{
    (void)number;
    handler_result = ttd_live_dump_range(client, handled, handled + SIZE, true);
}

static int call(const char *name, char *range)
{
    char *block;
    if (strcmp(name, "heaps") == 0) {
        block = malloc(SIZE);
        memset(block, 'h', SIZE);
        printf("block %p\n", (void *)block);
        return ttd_live_dump_heaps(client);
    }
    if (strcmp(name, "range") == 0)
        return ttd_live_dump_range(client, range, range + SIZE, true);
    if (strcmp(name, "later") == 0)
        return ttd_live_dump_range(client, range, range + SIZE, false);
    if (strcmp(name, "empty") == 0)
        return ttd_live_dump_range(client, range, range, true) ||
               ttd_live_dump_range(client, range + 1, range, false);
    if (strcmp(name, "unmapped") == 0)
        return ttd_live_dump_range(client, (char *)4096, (char *)8192, true);
    if (strcmp(name, "data") == 0)
        return ttd_live_dump_module(client, marked, true);
    if (strcmp(name, "code") == 0)
        return ttd_live_dump_module(client, (void *)(uintptr_t)call, false);
    if (strcmp(name, "none") == 0)
        return ttd_live_dump_module(client, range, true) || ttd_live_dump_module(client, NULL, 0);
    if (strcmp(name, "crowd") == 0)
        return crowd();
    if (strcmp(name, "vanish") == 0)
        return vanish();
    if (strcmp(name, "handler") == 0) {
        handled = range;
        signal(SIGUSR1, handle);
        raise(SIGUSR1);
        return handler_result;
    }
    if (strcmp(name, "replaced") == 0) {
        ttd_live_dump_range(client, (void *)FIXED_BEGIN, (void *)FIXED_END, false);
        return execl(getenv("REPLACEMENT"), "replacement", (char *)NULL) == 0;
    }
    if (strcmp(name, "closed") == 0)
        ttd_live_close(client, NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    client = ttd_live_open(&guid, "dumper", 6);
    char *range = mapping_of('r');
    printf("range %p\nmarked %p\ncode %p\n", (void *)range, (void *)marked,
           (void *)(uintptr_t)call);
    for (int i = 1; i < argc; i++) {
        char name[256] = "";
        size_t size = 0;
        if (strcmp(argv[i], "name") == 0)
            size = ttd_live_file_name(client, name, sizeof name);
        int result = size != 0 || call(argv[i], range);
        printf("%s %d %zu %s\n", argv[i], result, size, name);
    }
    return 0;
}
