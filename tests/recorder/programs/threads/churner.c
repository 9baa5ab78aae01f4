/* SPDX-License-Identifier: MIT */
/* Threads that allocate again and again, and one that waits for an event which never comes. Prints
 * whether all went well. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { THREADS = 3, BLOCKS = 64, ROUNDS = 20 };

static volatile int may_stop;
static int ends[2];
static void *blocks[THREADS][BLOCKS];

static void *churn(void *argument)
{
    unsigned seed = (unsigned)*(int *)argument;
    void **own = blocks[seed];
    for (unsigned calls = 0; !may_stop; calls++) {
        int i = rand_r(&seed) % BLOCKS;
        free(own[i]);
        own[i] = malloc((size_t)rand_r(&seed) % 3000);
        if (calls % 64 == 0)
            usleep(5000);
    }
    return NULL;
}

static void *wait_for_event(void *result)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    *(int *)result = epoll_wait(set, &event, 1, -1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS + 1];
    int numbers[THREADS] = {0, 1, 2}, events = 0;
    if (pipe(ends) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, &numbers[i]);
    pthread_create(&threads[THREADS], NULL, wait_for_event, &events);
    for (int i = 0; i < ROUNDS; i++)
        usleep(50000);
    may_stop = 1;
    if (write(ends[1], "", 1) != 1)
        return 2;
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    puts(events == 1 ? "fine" : "interrupted");
    return 0;
}
