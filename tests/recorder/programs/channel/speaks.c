/* SPDX-License-Identifier: MIT */
/*
 * Speaks to its recorder: runs one script in each of its threads, and prints what every call
 * returned. A letter of a script is a call:
 *
 *     e E k   a thread's event, a global one, one with a keyframe; its data is the call's name
 *     m f     malloc() of a size that is used once; free() of the newest block
 *     s S     starts an island without a throttle, or with one of 3 calls
 *     t       stops it
 *     p r R   pauses, resumes, resets the throttle
 *
 * The name of a call is THREAD.INDEX. After the scripts the client is closed, and asked once more.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/live.h>

enum { THREADS = 8, CALLS = 2000, LINE = 80 };

static const struct ttd_live_guid guid = {
    {0x5b, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};
static struct ttd_live *client;
static const char *scripts[THREADS];
static char printed[THREADS][CALLS][LINE];
static pthread_barrier_t together;

static int call(char letter, size_t thread, size_t index, const char *name)
{
    static __thread void *blocks[CALLS];
    static __thread size_t count;
    size_t size = strlen(name);
    switch (letter) {
    case 'e':
        return ttd_live_add_event(client, TTD_LIVE_THREAD, 0, name, size);
    case 'E':
        return ttd_live_add_event(client, TTD_LIVE_GLOBAL, 0, name, size);
    case 'k':
        return ttd_live_add_event(client, TTD_LIVE_THREAD, TTD_LIVE_KEYFRAME, name, size);
    case 'm':
        blocks[count] = malloc(100000 + 10000 * thread + index);
        return blocks[count++] != NULL;
    case 'f':
        if (count > 0)
            free(blocks[--count]);
        return 1;
    case 's':
        return ttd_live_start(client, thread + 1, TTD_LIVE_NO_LIMIT, name, size);
    case 'S':
        return ttd_live_start(client, thread + 1, 3, name, size);
    case 't':
        return ttd_live_stop(client, name, size);
    case 'p':
        return ttd_live_try_pause(client);
    case 'r':
        return ttd_live_resume(client);
    default:
        return ttd_live_reset_throttle(client);
    }
}

static void *run(void *argument)
{
    size_t thread = (size_t)argument;
    const char *script = scripts[thread];
    pthread_barrier_wait(&together);
    for (size_t i = 0; script[i] != '\0' && i < CALLS; i++) {
        char name[24];
        uint64_t executed, remaining;
        snprintf(name, sizeof name, "%zu.%zu", thread, i);
        int result = call(script[i], thread, i, name);
        int known = ttd_live_throttle(client, &executed, &remaining);
        snprintf(printed[thread][i], LINE, "%s %c %d %d %d %" PRIu64 " %" PRIu64 "\n", name,
                 script[i], result, ttd_live_thread_state(client), known, executed, remaining);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    size_t count = argc - 1 < THREADS ? (size_t)argc - 1 : THREADS;
    client = ttd_live_open(&guid, "speaks", 6);
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        scripts[i] = argv[i + 1];
        pthread_create(&threads[i], NULL, run, (void *)i);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    ttd_live_close(client, "quiet", 5);
    int is_added = ttd_live_add_event(client, TTD_LIVE_GLOBAL, 0, "late", 4);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < CALLS && printed[i][j][0] != '\0'; j++)
            fputs(printed[i][j], stdout);
    printf("client %d open %d added %d\n", client != NULL, ttd_live_is_open(client), is_added);
    return 0;
}
