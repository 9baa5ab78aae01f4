/* SPDX-License-Identifier: MIT */
#include "collect/channel/stream.h"

bool stream_break(struct stream *stream)
{
    stream->is_broken = true;
    stream->committed = stream->word;
    return false;
}

/* Goes to the first or the next chunk. Returns false if there is none yet. */
static bool stream_advance(struct stream *stream, struct host *host, uint32_t next)
{
    if (next == CHANNEL_NONE)
        return false;
    const struct chunk *chunk = next <= CHANNEL_CHUNKS ? channel_chunk(&host->view, next) : NULL;
    if (!chunk)
        return stream_break(stream);
    if (stream->index != CHANNEL_NONE)
        host_free_chunk(host, stream->index);
    stream->index = next;
    stream->chunk = chunk;
    stream->word = stream->committed = 0;
    return true;
}

bool stream_look(struct stream *stream, struct host *host, _Atomic uint32_t *first)
{
    host->looks++;
    if (stream->is_broken)
        return false;
    if (stream->index == CHANNEL_NONE &&
        !stream_advance(stream, host, atomic_load_explicit(first, memory_order_acquire)))
        return false;
    /* At most one hop to the next chunk: a malicious writer could link empty chunks for ever. */
    for (int hop = 0; hop < 2; hop++) {
        const struct chunk *chunk = stream->chunk;
        /* `next` before `committed`: once it is set, no more is committed here. */
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        uint32_t committed = atomic_load_explicit(&chunk->committed, memory_order_acquire) / 8;
        if (committed > channel_chunk_words(stream->index) || committed < stream->word)
            return stream_break(stream);
        stream->committed = committed;
        if (committed > stream->word)
            return true;
        if (!stream_advance(stream, host, next))
            return false;
    }
    return false;
}

void stream_close(struct stream *stream, struct host *host, _Atomic uint32_t *first)
{
    const uint32_t limit = CHANNEL_CHUNKS;
    uint32_t index = stream->index;
    if (index == CHANNEL_NONE)
        index = atomic_load_explicit(first, memory_order_acquire);
    /* The limit ends the loop if a program has linked the chain into a ring. */
    for (uint32_t i = 0; i < limit && index != CHANNEL_NONE && index <= limit; i++) {
        const struct chunk *chunk = channel_chunk(&host->view, index);
        if (!chunk)
            break;
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        host_free_chunk(host, index);
        index = next;
    }
    stream->index = CHANNEL_NONE;
    stream->chunk = NULL;
    atomic_store_explicit(first, CHANNEL_NONE, memory_order_relaxed);
}
