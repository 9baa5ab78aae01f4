/* SPDX-License-Identifier: MIT */
/* Two threads that do nothing but allocate and free. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#ifndef ROUNDS
#define ROUNDS 3000000
#endif
enum { LIVE = 1000 };
static void *work(void *seed)
{
    void *live[LIVE] = {0};
    uint64_t x = (uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (x >> 33) % LIVE;
        free(live[slot]);
        live[slot] = malloc(16 + (x >> 50) % 500);
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
