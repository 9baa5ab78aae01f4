/* SPDX-License-Identifier: MIT */
/** A stream: the records in a chain of chunks, read while an untrusted process writes them. */
#ifndef RECORDER_COLLECT_CHANNEL_STREAM_H
#define RECORDER_COLLECT_CHANNEL_STREAM_H

#include "channel_record.h"
#include "collect/channel/host.h"

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
