/* SPDX-License-Identifier: MIT */
/* More threads than the recorder's backlog has chunks, each with one that it has begun: it needs
 * some thousand calls for that. Then one goes on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 1040, CALLS = 3000 };

static pthread_barrier_t all;

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
    churn(CALLS / 2);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_barrier_init(&all, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attributes, work, NULL) != 0)
            return 77;
    pthread_barrier_wait(&all);
    churn(20 * CALLS);
    pthread_barrier_wait(&all);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
