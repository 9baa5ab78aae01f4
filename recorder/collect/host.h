/* SPDX-License-Identifier: MIT */
/* The collector's end of the channel. */
#ifndef TTD_COLLECT_HOST_H
#define TTD_COLLECT_HOST_H

#include "../channel_view.h"

struct thread_stream;

struct host {
    struct channel *channel;
    struct channel_view view;
    struct thread_stream *threads[CHANNEL_THREADS + 1]; /* of threads that have one, by slot */
    int memfd;
    int probe;         /* the channel, opened once more: see host_is_held() */
    uint64_t start;    /* as in the channel, where others can write */
    bool has_barriers; /* the system makes other processes execute a barrier when asked to */
    uint64_t looks; /* how often was looked at what is published: what is known may have changed */
    char path[64];  /* opens the channel, from any process that may see this one */
};

/* Creates the channel. Returns 0 or an errno value. */
int host_open(struct host *host, uint32_t flags);

/* Nobody records any more, and those who wait are told. */
void host_stop(struct host *host);

/* The time since the start, in nanoseconds, that the clock should show. */
uint64_t host_now(const struct host *host);

/* Moves the clock on, and returns it; those who wait for us see that we go on. */
uint64_t host_tick(struct host *host);

/* Whether another process has the channel: one that records, or may begin to, such as the child of
 * a fork that has not allocated anything yet. False if the system cannot tell. */
bool host_is_held(const struct host *host);

/* Makes every recording thread execute a memory barrier. */
void host_barrier(struct host *host);

/* Gives a chunk back to the pool, and wakes who waits for one. */
void host_free_chunk(struct host *host, uint32_t index);

/* Frees the slot of a process, and wakes who waits for one. */
void host_free_process(struct host *host, uint32_t index);

/* Frees the slot of a thread that is gone. */
void host_free_thread(struct host *host, uint32_t index);

/* Sleeps until somebody wants attention, or for at most `milliseconds`. */
void host_sleep(struct host *host, uint32_t attention, int milliseconds);

#endif
