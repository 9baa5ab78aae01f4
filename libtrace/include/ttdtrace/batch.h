/* SPDX-License-Identifier: MIT */
/**
 * Batches of records, as a reader returns them: the kinds of records, and the chunks that hold
 * them.
 *
 * A trace is a file with all calls that allocate and release memory in one process. A reader hands
 * out its records in batches of one kind: events, stacks, strings, losses and others.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         printf("%zu %s\n", batch.count, ttd_kind_name(batch.kind));
 *     ttd_reader_close(reader);
 *
 * Threads: any thread may call the function at any time.
 */
#ifndef TTDTRACE_BATCH_H
#define TTDTRACE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/kinds.h>
#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/** The first private kind. Chunks of private kinds are skipped unless critical. */
#define TTD_KIND_PRIVATE 0x8000

/** Returns the name of a kind, such as "events"; "?" if unknown. Static. */
TTD_EXPORT const char *ttd_kind_name(unsigned kind);

/** A set of kinds, for ttd_reader_options. */
#define TTD_KIND_BIT(kind) (UINT32_C(1) << (kind))
#define TTD_KINDS_ALL      UINT32_MAX
/** The kinds of definitions that events refer to by id. */
#define TTD_KINDS_DEFINITIONS (UINT32_C(0) TTD_KINDS(TTD_KIND_DEFINITION, TTD_KIND_DEFINITION))
#define TTD_KIND_DEFINITION(name, number, text, minor, properties, ...)                            \
    | (TTD_KIND_IS_DEFINITION & (properties) ? TTD_KIND_BIT(number) : UINT32_C(0))

/** The header of a chunk (spec, "Chunks"). */
struct ttd_chunk {
    uint64_t number;
    /** Offset of the header from the start of the file, in bytes. */
    uint64_t offset;
    /** A ttd_kind, or an unknown value. */
    unsigned kind;
    /** A ttd_codec. */
    unsigned codec;
    unsigned flags;
    unsigned minor_version;
    /** Bytes of payload in the file, without padding. */
    uint32_t stored_size;
    /** Bytes of payload after decompression. */
    uint32_t raw_size;
    uint64_t first_record;
    uint32_t record_count;
    struct ttd_position first_position;
    struct ttd_position last_position;
};

/**
 * A batch of records of one chunk: `count` records in the member of `u` that `kind` selects; the
 * rows of TTD_KINDS have both. They and all they point to are valid until the next call on the
 * reader; events may be valid longer, see ttd_reader_options.
 */
struct ttd_batch {
    enum ttd_kind kind;
    size_t count;
    /** The chunk that holds the batch; for a synthetic loss, the chunk after the gap. */
    struct ttd_chunk chunk;
    /** TTD_KIND_LOSSES: the reader synthesised this loss for damage that `error` describes. */
    bool synthetic;
    union {
#define TTD_KIND_MEMBER(name, number, text, minor, properties, count, record, member, ids)         \
    const struct ttd_##record *member;
#define TTD_KIND_NO_MEMBER(...)
        TTD_KINDS(TTD_KIND_MEMBER, TTD_KIND_NO_MEMBER)
#undef TTD_KIND_MEMBER
#undef TTD_KIND_NO_MEMBER
    } u;
    struct ttd_error error;

    /* For speed: see <ttdtrace/advanced.h>. */

    /**
     * TTD_KIND_EVENTS: the addresses that these events spell out, by ordinal from first_ordinal on
     * (see ttd_event.address_ordinal). The first batch of a chunk begins with ordinal 0, each other
     * one where its predecessor ended. Valid as long as the events; undefined for other kinds.
     */
    const uint64_t *addresses;
    size_t address_count;
    uint32_t first_ordinal;
    /**
     * TTD_KIND_STACKS from a reader with lazy_stacks: all stacks of the chunk as stored in the
     * file, for ttd_stacks_open(), with u.stacks NULL. Otherwise NULL.
     */
    const void *stored;
    /** The same after decompression, if the reader needed it itself; otherwise NULL. */
    const void *decompressed;
};

TTD_END_DECLS

#endif
