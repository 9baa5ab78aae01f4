/* SPDX-License-Identifier: MIT */
/* Reading a chain of chunks that somebody else is writing, who is not to be trusted. */
#ifndef TTD_COLLECT_STREAM_H
#define TTD_COLLECT_STREAM_H

#include "../channel_record.h"
#include "host.h"

struct stream {
    uint32_t index;            /* of the chunk, CHANNEL_NONE before the first */
    const struct chunk *chunk; /* NULL before the first */
    uint32_t word;             /* next to read */
    uint32_t committed;        /* words that were found committed in the chunk */
    bool is_broken;            /* what was found there cannot be; nothing more is read */
};

struct record {
    uint64_t head;
    const volatile uint64_t *words; /* the first is the head again: use the copy */
    unsigned count;
};

/* Nothing more is read. Returns false. */
bool stream_break(struct stream *stream);

/*
 * Looks whether there is more than is known, and goes on to the next chunk if one is used up, which
 * is then freed. False when there is nothing, for now.
 */
bool stream_look(struct stream *stream, struct host *host, _Atomic uint32_t *first);

/*
 * Looks at the next record without consuming it.
 *
 * @param first  where the owner puts the index of its first chunk
 * @return false when there is none, for now
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

/* Consumes the record that was just looked at. */
static inline void stream_consume(struct stream *stream, const struct record *record)
{
    stream->word += record->count;
}

/* Frees what is left of the chain. Nobody may be writing to it any more. */
void stream_close(struct stream *stream, struct host *host, _Atomic uint32_t *first);

#endif
