/* SPDX-License-Identifier: MIT */
/* many_threads THREADS CALLS: so many threads, all alive at once; each keeps a block and makes so
 * many calls. While they wait, the first one makes twenty times as many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all;
static int calls;

static void churn(int pairs)
{
    for (int i = 0; i < pairs; i++) {
        void *volatile block = malloc(16);
        free(block);
    }
}

static void *work(void *unused)
{
    (void)unused;
    void *volatile block = malloc(10);
    churn(calls / 2);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    free(block);
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    calls = argc > 2 ? atoi(argv[2]) : 0;
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, work, NULL) != 0)
            return 77;
    pthread_barrier_wait(&all);
    churn(10 * calls);
    pthread_barrier_wait(&all);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
