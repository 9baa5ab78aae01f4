/* SPDX-License-Identifier: MIT */
/** The collector's side of the channel: the channel itself, and the streams of its threads. */
#ifndef RECORDER_COLLECT_CHANNEL_HOST_H
#define RECORDER_COLLECT_CHANNEL_HOST_H

#include "channel_record.h"
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

/** The same, if it remains so for some looks, a millisecond after each other: a command that asks
 * all recorders opens the channel for a moment. */
bool host_stays_held(const struct host *host, int looks);

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

/** A stream: the records in a chain of chunks, read while an untrusted process writes them. */
struct stream {
    uint32_t index;            /* of the chunk, CHANNEL_NONE before the first */
    const struct chunk *chunk; /* NULL before the first */
    uint32_t word;             /* next to read */
    uint32_t committed;        /* number of words known to be committed */
    bool is_broken;            /* the content is invalid; nothing more is read */
};

struct record {
    uint64_t head;
    const volatile uint64_t *words; /* words[0] may have changed since: use `head` */
    unsigned count;
};

/** Marks the stream as broken. Returns false. */
bool stream_break(struct stream *stream);

/**
 * Reads the number of committed words anew. When all of a chunk was consumed, goes on to the next
 * chunk and frees the old one. Returns false if there is nothing new.
 */
bool stream_look(struct stream *stream, struct host *host, _Atomic uint32_t *first);

/**
 * Returns the next record without consuming it.
 *
 * @param first  the word with the index of the writer's first chunk
 * @return false if there is none yet
 */
static inline bool stream_peek(struct stream *stream, struct host *host, _Atomic uint32_t *first,
                               struct record *record)
{
    if (stream->word == stream->committed && !stream_look(stream, host, first))
        return false;
    record->words = stream->chunk->data + stream->word;
    record->head = record->words[0];
    record->count = record_words(record->head);
    if (record->count == 0 || record->count > stream->committed - stream->word)
        return stream_break(stream);
    return true;
}

/** Consumes the record that stream_peek() returned. */
static inline void stream_consume(struct stream *stream, const struct record *record)
{
    stream->word += record->count;
}

/** Frees the rest of the chain. Its writer must have ended. */
void stream_close(struct stream *stream, struct host *host, _Atomic uint32_t *first);

#endif
