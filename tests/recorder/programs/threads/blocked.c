/* SPDX-License-Identifier: MIT */
/*
 * blocked MEGABYTES [wait]: three threads that do not end hold a block each from a function that
 * has called another, and one from the function that it has called: 1001 to 1006 bytes. With
 * MEGABYTES of other memory; `wait` ends when its input does, and says "ready" before.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t ready;
static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER;
static volatile int goes_on = 1;

static void __attribute__((noinline)) wait_for_lock(void)
{
    void *volatile own = malloc(1001);
    pthread_barrier_wait(&ready);
    pthread_mutex_lock(&locked);
    goes_on = !own;
}

static void *keep_locked(void *unused)
{
    void *volatile own = malloc(1002);
    wait_for_lock();
    return !own ? NULL : unused;
}

static void __attribute__((noinline)) wait_for_signals(void)
{
    void *volatile own = malloc(1003);
    pthread_barrier_wait(&ready);
    while (goes_on)
        pause();
    goes_on = !own;
}

static void *keep_waiting(void *unused)
{
    void *volatile own = malloc(1004);
    wait_for_signals();
    return !own ? NULL : unused;
}

static void __attribute__((noinline)) run_on(void)
{
    void *volatile own = malloc(1005);
    pthread_barrier_wait(&ready);
    while (goes_on)
        ;
    goes_on = !own;
}

static void *keep_running(void *unused)
{
    void *volatile own = malloc(1006);
    run_on();
    return !own ? NULL : unused;
}

int main(int count, char **arguments)
{
    static void *(*const functions[])(void *) = {keep_locked, keep_waiting, keep_running};
    size_t size = count > 1 ? strtoul(arguments[1], NULL, 10) << 20 : 0;
    static char *volatile filler;
    pthread_t thread;
    filler = malloc(size + 1);
    memset(filler, 1, size + 1);
    pthread_mutex_lock(&locked);
    pthread_barrier_init(&ready, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, functions[i], NULL);
    pthread_barrier_wait(&ready);
    usleep(100000); /* until they have gone where they stay */
    if (count > 2) {
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    return 0;
}
