/* SPDX-License-Identifier: MIT */
/* Marks moments in two threads, one after the other heap call, until its standard input ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <ttdtrace/live.h>

enum { THREADS = 2, PAUSE_US = 50 };

static const struct ttd_live_guid guid = {
    {0x5d, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};
static struct ttd_live *client;
static _Atomic int is_over;

static void *talk(void *argument)
{
    (void)argument;
    while (!is_over) {
        void *volatile block = malloc(100);
        ttd_live_add_event(client, TTD_LIVE_THREAD, 0, "talk", 4);
        free(block);
        usleep(PAUSE_US);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    char byte;
    client = ttd_live_open(&guid, NULL, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, talk, NULL);
    if (write(1, "begin\n", 6) != 6)
        return 1;
    while (read(0, &byte, 1) > 0)
        ;
    is_over = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
