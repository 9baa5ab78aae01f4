/* SPDX-License-Identifier: MIT */
/** The collector's side of the channel. */
#ifndef RECORDER_COLLECT_CHANNEL_HOST_H
#define RECORDER_COLLECT_CHANNEL_HOST_H

#include "channel_view.h"

struct thread_stream;

struct host {
    struct channel *channel;
    struct channel_view view;
    struct thread_stream *threads[CHANNEL_THREADS + 1]; /* by slot; NULL if not added */
    int memfd;
    int probe;         /* the channel, opened once more: see host_is_held() */
    uint64_t start;    /* a copy of channel->start: programs could overwrite that */
    bool has_barriers; /* membarrier() is available */
    uint64_t looks;    /* number of looks at published records; anything read before the last look
                        * may be out of date */
    char path[64];     /* opens the channel, from any process that may see this one */
};

/** Creates the channel. Returns 0 or an errno value. */
int host_open(struct host *host, uint32_t flags);

/** Makes an empty memory file the channel. The descriptor is closed on failure. */
int host_adopt(struct host *host, int memfd, uint32_t flags);

/** Wakes all threads that wait on a word of the channel. */
void host_wake(_Atomic uint32_t *word);

/** Stops recording in all processes, and wakes the threads that wait. */
void host_stop(struct host *host);

/** Returns the time since the start, in nanoseconds. */
uint64_t host_now(const struct host *host);

/** Sets the channel's clock, and returns it. Shows waiting threads that the collector is alive. */
uint64_t host_tick(struct host *host);

/** Whether another process holds the channel: it records, or may begin to, such as a forked child
 * that has not allocated yet. Returns false if the system does not know. */
bool host_is_held(const struct host *host);

/** Makes every recording thread execute a memory barrier. */
void host_barrier(struct host *host);

/** Returns a chunk to the pool, and wakes threads that wait for one. */
void host_free_chunk(struct host *host, uint32_t index);

/** Frees the slot of a process, and wakes a process that waits for one. */
void host_free_process(struct host *host, uint32_t index);

/** Frees the slot of a thread that is gone. */
void host_free_thread(struct host *host, uint32_t index);

/** Sleeps until channel->attention differs from `attention`, or for at most `milliseconds`. Returns
 * whether all this time has passed; a signal ends it early. */
bool host_sleep(struct host *host, uint32_t attention, int milliseconds);

#endif
