/* SPDX-License-Identifier: MIT */
/**
 * The emitter produces the chunks of a file: it numbers them, completes their headers, compresses
 * payloads, collects the index and writes the End. The writer and recover share it. It does no I/O:
 * the caller's function takes the bytes.
 */
#ifndef TTD_CODEC_CHUNK_EMITTER_H
#define TTD_CODEC_CHUNK_EMITTER_H

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

#include "base/buffer.h"
#include "codec/chunk/header.h"

/** Takes the next bytes of the file. Returns 0 or an errno value. */
typedef int (*ttd_emit_function)(void *context, const void *data, size_t size);

struct ttd_emitter {
    const struct ttd_allocator *allocator;
    ttd_emit_function emit;
    void *context;
    enum ttd_codec codec;
    int level;
    uint64_t trace_id;
    /** Number and offset of the next chunk. */
    uint64_t number;
    uint64_t offset;
    /** Number of the next event, and effect position of the last one. */
    uint64_t events;
    struct ttd_position position;
    uint64_t index_offset;
    uint64_t index_entries;
    struct ttd_buffer stored;
    struct ttd_buffer scratch;
    struct ttd_buffer entries;
    /** The begin of the chunks that the next index chunk will cover; set by the first chunk of
     * events among them. */
    struct ttd_index_link pending;
    bool pending_set;
    /** A link to each index chunk written. */
    struct ttd_index_link *written;
    size_t written_count;
    size_t written_capacity;
    struct ttd_error error;
};

/** The function that takes the emitted bytes. */
struct ttd_emitter_sink {
    ttd_emit_function emit;
    void *context;
};

void ttd_emitter_init(struct ttd_emitter *emitter, const struct ttd_allocator *allocator,
                      uint64_t trace_id, enum ttd_codec codec, int level,
                      struct ttd_emitter_sink sink);
void ttd_emitter_free(struct ttd_emitter *emitter);

/** Fields of a chunk that the caller sets; the emitter sets all others. */
struct ttd_emission {
    uint16_t kind;
    uint64_t first_record;
    uint32_t record_count;
    struct ttd_position first_position;
    struct ttd_position last_position;
};

/**
 * Compresses and emits a chunk, and an index chunk when one is due.
 *
 * @return TTD_OK, TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; emitter->error has details.
 */
enum ttd_status ttd_emitter_put(struct ttd_emitter *emitter, const struct ttd_emission *emission,
                                const uint8_t *raw, size_t raw_size);

/**
 * Emits a chunk whose payload is stored already. Number, offset and trace_id of the header are
 * replaced, the rest is kept. Statuses as above.
 */
enum ttd_status ttd_emitter_copy(struct ttd_emitter *emitter, const struct ttd_header *header,
                                 const uint8_t *stored);

/** Emits the last index chunk and the End, whose totals are set here. Statuses as above. */
enum ttd_status ttd_emitter_end(struct ttd_emitter *emitter, const struct ttd_end *end,
                                uint64_t lost_events);

#endif
