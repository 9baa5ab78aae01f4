/* SPDX-License-Identifier: MIT */
/* More threads than the recorder has places for, all alive at once; each allocates and frees. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 9000 };

static pthread_barrier_t all;

static void *work(void *unused)
{
    (void)unused;
    void *volatile block = malloc(10);
    pthread_barrier_wait(&all);
    free(block);
    return NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attributes, work, NULL) != 0)
            return 77;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
