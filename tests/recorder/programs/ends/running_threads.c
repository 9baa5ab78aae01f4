/* SPDX-License-Identifier: MIT */
/* Ends while threads still run, some of which have allocated and some not; and leaks one block. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 6, LEAK = 100 };

static sem_t ready;

static void *run(void *allocates)
{
    if (allocates)
        free(malloc(10));
    sem_post(&ready);
    for (;;)
        pause();
    return NULL;
}

int main(void)
{
    static char yes;
    sem_init(&ready, 0, 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, i % 2 ? &yes : NULL) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        sem_wait(&ready);
    void *volatile leaked = malloc(LEAK);
    (void)leaked;
    return 0;
}
