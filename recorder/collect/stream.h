/* SPDX-License-Identifier: MIT */
/* Reading a chain of chunks that somebody else is writing, who is not to be trusted. */
#ifndef TTD_COLLECT_STREAM_H
#define TTD_COLLECT_STREAM_H

#include "host.h"

struct stream {
    uint32_t chunk; /* CHANNEL_NONE before the first */
    uint32_t word;  /* next to read */
    bool broken;    /* what was found there cannot be; nothing more is read */
};

struct record {
    uint64_t head;
    const volatile uint64_t *words; /* the first is the head again: use the copy */
    unsigned count;
};

/*
 * Looks at the next record without consuming it. Chunks that are used up are freed on the way.
 *
 * @param first  where the owner puts the index of its first chunk
 * @return false when there is none, for now
 */
bool stream_peek(struct stream *stream, struct host *host, _Atomic uint32_t *first,
                 struct record *record);

/* Whether there is surely nothing to be looked at now; cheaper than looking. */
static inline bool stream_is_idle(const struct stream *stream, const struct host *host)
{
    if (stream->chunk == CHANNEL_NONE)
        return false;
    struct chunk *chunk = channel_chunk(host->channel, stream->chunk);
    return atomic_load_explicit(&chunk->next, memory_order_acquire) == CHANNEL_NONE &&
           atomic_load_explicit(&chunk->committed, memory_order_acquire) == stream->word * 8;
}

/* Consumes the record that was just looked at. */
static inline void stream_consume(struct stream *stream, const struct record *record)
{
    stream->word += record->count;
}

/* Frees what is left of the chain. Nobody may be writing to it any more. */
void stream_close(struct stream *stream, struct host *host, _Atomic uint32_t *first);

#endif
