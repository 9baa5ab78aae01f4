/* SPDX-License-Identifier: MIT */
/**
 * Batches of records, as a reader returns them: the kinds of records, and the chunks that hold
 * them.
 *
 * Threads: any thread may call the function at any time.
 */
#ifndef TTDTRACE_BATCH_H
#define TTDTRACE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/** Kinds of records, and of the chunks that hold them. Values as in the format. */
enum ttd_kind {
    TTD_KIND_TRACE = 1,
    TTD_KIND_STRINGS = 2,
    TTD_KIND_STACKS = 3,
    TTD_KIND_MODULES = 4,
    TTD_KIND_SYMBOLS = 5,
    TTD_KIND_THREADS = 6,
    TTD_KIND_HEAPS = 7,
    TTD_KIND_EVENTS = 8,
    TTD_KIND_USER_EVENTS = 9,
    TTD_KIND_LOSSES = 10,
    TTD_KIND_LIVE_BLOCKS = 11,
    TTD_KIND_PAGES = 12,
    TTD_KIND_MEMORY_MAP = 13,
    TTD_KIND_METADATA = 14,
    TTD_KIND_INDEX = 15,
    TTD_KIND_END = 16,
    TTD_KIND_STATES = 17,
    TTD_KIND_SUMS = 18,
    TTD_KIND_SNAPSHOTS = 19,
    TTD_KIND_REGIONS = 20,
    TTD_KIND_REFERENCES = 21,
    TTD_KIND_VARIABLES = 22,
    TTD_KIND_FRAMES = 23,
    TTD_KIND_CLASSES = 24,
    TTD_KIND_FATAL_SIGNALS = 25,
    TTD_KIND_HEAP_PARENTS = 26,
    /** A kind of chunk only: its batches are of TTD_KIND_REFERENCES, and so is their bit. */
    TTD_KIND_PACKED_REFERENCES = 27,
    TTD_KIND_BLOCK_HEADERS = 28
};

/** The largest known kind. */
#define TTD_KIND_LAST TTD_KIND_BLOCK_HEADERS

/** The first private kind. Chunks of private kinds are skipped unless critical. */
#define TTD_KIND_PRIVATE 0x8000

/** Returns the name of a kind, such as "events"; "?" if unknown. Static. */
TTD_EXPORT const char *ttd_kind_name(unsigned kind);

/** A set of kinds, for ttd_reader_options. */
#define TTD_KIND_BIT(kind) (UINT32_C(1) << (kind))
#define TTD_KINDS_ALL      UINT32_MAX
/** The kinds of definitions that events refer to by id. */
#define TTD_KINDS_DEFINITIONS                                                                      \
    (TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_STACKS) |                              \
     TTD_KIND_BIT(TTD_KIND_MODULES) | TTD_KIND_BIT(TTD_KIND_SYMBOLS) |                             \
     TTD_KIND_BIT(TTD_KIND_THREADS) | TTD_KIND_BIT(TTD_KIND_HEAPS) |                               \
     TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS))

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
 * A batch of records of one chunk: `count` records in the member that `kind` selects. They and all
 * they point to are valid until the next call on the reader; events may be valid longer, see
 * ttd_reader_options.
 */
struct ttd_batch {
    enum ttd_kind kind;
    size_t count;
    /** The chunk that holds the batch; for a synthetic loss, the chunk after the gap. */
    struct ttd_chunk chunk;
    /** TTD_KIND_LOSSES: the reader synthesised this loss for damage that `error` describes. */
    bool synthetic;
    union {
        const struct ttd_trace *trace;
        const struct ttd_string_definition *strings;
        const struct ttd_stack *stacks;
        const struct ttd_module *modules;
        const struct ttd_symbol *symbols;
        const struct ttd_thread *threads;
        const struct ttd_heap *heaps;
        const struct ttd_heap_parent *heap_parents;
        const struct ttd_event *events;
        const struct ttd_user_event *user_events;
        const struct ttd_loss *losses;
        const struct ttd_live_blocks *live_blocks;
        const struct ttd_pages *pages;
        const struct ttd_memory_map *memory_map;
        const struct ttd_metadata *metadata;
        const struct ttd_state *states;
        const struct ttd_sum *sums;
        const struct ttd_snapshot *snapshots;
        const struct ttd_regions *regions;
        const struct ttd_references *references;
        const struct ttd_variable *variables;
        const struct ttd_frames *frames;
        const struct ttd_classes *classes;
        const struct ttd_block_headers *block_headers;
        const struct ttd_fatal_signal *fatal_signals;
        const struct ttd_end *end;
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
