/* SPDX-License-Identifier: MIT */
/* hoarder THREADS: takes every place that the recorder has for threads but for a few, then starts
 * so many, each of which makes two calls. They end when all have, so that no place becomes free. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "recorder/channel_pool.h"

enum { LEFT = 3, MOST = 100 };

static struct channel_view view;
static int channel_file;
static pthread_barrier_t all_have_called;

char *channel_map(struct channel_view *of, uint32_t window)
{
    char *mapped = mmap(NULL, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, channel_file,
                        (off_t)window * CHANNEL_WINDOW);
    return of->windows[window] = mapped != MAP_FAILED ? mapped : NULL;
}

static void *work(void *unused)
{
    void *volatile block = malloc(10);
    free(block);
    pthread_barrier_wait(&all_have_called);
    return unused;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0;
    const char *path = getenv(CHANNEL_ENV);
    if (!path || (channel_file = open(path, O_RDWR)) < 0)
        return 77;
    struct channel *channel = (struct channel *)channel_map(&view, 0);
    if (!channel)
        return 1;
    while (channel_used(&channel->free_threads, CHANNEL_THREADS) < CHANNEL_THREADS - LEFT)
        channel_take(&view, &channel->free_threads, CHANNEL_THREADS, channel_thread_link);
    pthread_t threads[MOST];
    if (count < 1 || count > MOST || pthread_barrier_init(&all_have_called, NULL, (unsigned)count))
        return 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        if (pthread_join(threads[i], NULL) != 0)
            return 1;
    return 0;
}
