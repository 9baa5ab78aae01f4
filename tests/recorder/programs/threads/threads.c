/* SPDX-License-Identifier: MIT */
/* Threads that hand blocks to one another, so that addresses change owners all the time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8, ROUNDS = 50000, SLOTS = 64 };

static _Atomic(void *) slots[SLOTS];

static void *work(void *seed)
{
    uint64_t random = (uintptr_t)seed * 88172645463325252u;
    for (int i = 0; i < ROUNDS; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void *block = malloc(1 + random % 300);
        if (random >> 60 == 0)
            block = realloc(block, 400 + random % 3000);
        free(atomic_exchange(&slots[random >> 32 & (SLOTS - 1)], block));
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        free(atomic_load(&slots[i]));
    puts("done");
    return 0;
}
