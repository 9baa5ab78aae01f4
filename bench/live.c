/* SPDX-License-Identifier: MIT */
/*
 * The cost of a call of the live API, in nanoseconds: without a recorder, where it should be 2 at
 * most, and with one, where an event should be 100 at most:
 *
 *     build/bench/live
 *     build/recorder/ttdrecord -q --no-snapshot -o trace.bin build/bench/live
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ttdtrace/live.h>

enum { CALLS = 20000, ROUNDS = 21, DATA = 16 };

static const struct ttd_live_guid guid = {
    {0x5e, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Returns the time of one call, of many; counts those that were recorded. */
static double measure(struct ttd_live *volatile *client, long *recorded)
{
    static const char data[DATA] = "a custom event.";
    double begin = now();
    for (int i = 0; i < CALLS; i++)
        *recorded += ttd_live_add_event(*client, TTD_LIVE_THREAD, 0, data, sizeof data);
    return (now() - begin) / CALLS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int main(void)
{
    static struct ttd_live *volatile client;
    double times[ROUNDS];
    long recorded = 0;
    client = ttd_live_open(&guid, NULL, 0);
    for (int i = 0; i < ROUNDS; i++)
        times[i] = measure(&client, &recorded);
    qsort(times, ROUNDS, sizeof *times, compare);
    printf("%s: %.2f ns a call, median of %d rounds; %ld of %d events\n",
           client ? "recorded" : "not recorded", times[ROUNDS / 2], ROUNDS, recorded,
           ROUNDS * CALLS);
    return 0;
}
