/* SPDX-License-Identifier: MIT */
/* A thread stands still for a second within realloc(), while others exchange blocks as fast as they
 * can. Prints whether it has stood still. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MB = 1 << 20, ROUNDS = 50, THREADS = 2, SLOTS = 64 };

static _Atomic int is_within, is_held, is_over;
static void *slots[SLOTS];
static void *between[ROUNDS];

static void hold(int signal)
{
    (void)signal;
    if (is_within && !is_held) {
        is_held = 1;
        usleep(1000000);
    }
}

static void *exchange(void *number)
{
    unsigned seed = *(unsigned *)number;
    while (!is_over) {
        void **slot = &slots[rand_r(&seed) % SLOTS];
        free(__atomic_exchange_n(slot, malloc(20 + seed % 200), __ATOMIC_ACQ_REL));
    }
    return NULL;
}

/* A block behind the first one makes that move: it takes some milliseconds to copy it. */
static void *grow(void *argument)
{
    for (int i = 0; i < ROUNDS && !is_held; i++) {
        char *block = malloc(20 * MB);
        for (int at = 0; at < 20 * MB; at += 4096)
            block[at] = 1;
        between[i] = malloc(100 + 2000 * (size_t)i);
        is_within = 1;
        block = realloc(block, 24 * MB);
        is_within = 0;
        free(block);
    }
    for (int i = 0; i < ROUNDS; i++)
        free(between[i]);
    is_over = 1;
    return argument;
}

int main(void)
{
    pthread_t grower, threads[THREADS];
    unsigned numbers[THREADS] = {1, 2};
    mallopt(M_MMAP_THRESHOLD, 32 * MB);
    signal(SIGUSR1, hold);
    pthread_create(&grower, NULL, grow, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, exchange, &numbers[i]);
    while (!is_over && !is_held) {
        while (!is_within && !is_over)
            ;
        usleep(500);
        pthread_kill(grower, SIGUSR1);
    }
    pthread_join(grower, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
    puts(is_held ? "held" : "never held");
    return 0;
}
