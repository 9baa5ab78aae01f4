/* SPDX-License-Identifier: MIT */
/**
 * The table of the kinds of chunks (spec, "Chunk header"): enum ttd_kind, the members of a batch,
 * and the code that writes, reads, checks and copies chunks, follow from it.
 *
 * A trace is a file with all calls that allocate and release memory in one process. It consists of
 * chunks, each with records of one kind. Programs use the numbers, such as TTD_KIND_EVENTS, and
 * ttd_kind_name(); only a program that needs the whole table expands TTD_KINDS.
 *
 *     #define PRINT(name, number, text, ...) printf("%d %s\n", number, text);
 *     TTD_KINDS(PRINT, PRINT)
 */
#ifndef TTDTRACE_KINDS_H
#define TTDTRACE_KINDS_H

/** Properties of a kind. */
enum ttd_kind_property {
    TTD_KIND_IS_PLAIN = 0,
    /** A reader that cannot read it cannot read the trace. */
    TTD_KIND_IS_CRITICAL = 1,
    /** Never compressed: readers find it by its size, and before they know any codec. */
    TTD_KIND_IS_RAW = 2,
    /** The first_record of a chunk is the id of a record; ids begin at 1. */
    TTD_KIND_HAS_IDS = 4,
    /** A chunk may have no entries. */
    TTD_KIND_MAY_BE_EMPTY = 8,
    /** Events refer to its records by id. */
    TTD_KIND_IS_DEFINITION = 16,
    /** It may be added to a trace that was closed. */
    TTD_KIND_IS_NAME = 32,
    /** It holds for the rest of the trace: when the past is cut off, it stays. */
    TTD_KIND_IS_LASTING = 64,
    /** Contents of the program's memory: a redacted copy has none. */
    TTD_KIND_IS_CONTENT = 128
};

/**
 * Expands RECORDS for each kind that has records, and CHUNK for each other kind, in the order in
 * which a writer flushes them: definitions before records that refer to them. The columns are
 *
 *     name        of TTD_KIND_...
 *     number      in the format; numbers have no gaps
 *     text        its name in reports
 *     minor       the minor version of the format that it came with
 *     properties  of enum ttd_kind_property
 *
 * then, of RECORDS,
 *
 *     count       MANY records in a chunk, or ONE, which has record_count entries
 *     record      struct ttd_... is a record
 *     member      of ttd_batch.u; the functions that decode and check the kind end with it
 *     ids         CHECKED if records define ids, refer to ids, or have an order; else FREE
 *
 * and of CHUNK
 *
 *     as          the kind of its batches, by whose bit a reader selects it
 */
/* clang-format off */
#define TTD_KINDS(RECORDS, CHUNK)                                                                  \
    RECORDS(TRACE, 1, "trace", 0,                                                                  \
            TTD_KIND_IS_CRITICAL | TTD_KIND_IS_RAW | TTD_KIND_IS_LASTING,                          \
            ONE, trace, trace, FREE)                                                               \
    /* Definitions. */                                                                             \
    RECORDS(STRINGS, 2, "strings", 0,                                                              \
            TTD_KIND_HAS_IDS | TTD_KIND_IS_DEFINITION | TTD_KIND_IS_NAME | TTD_KIND_IS_LASTING,    \
            MANY, string_definition, strings, CHECKED)                                             \
    RECORDS(MODULES, 4, "modules", 0, TTD_KIND_IS_DEFINITION | TTD_KIND_IS_LASTING,                \
            MANY, module, modules, CHECKED)                                                        \
    RECORDS(THREADS, 6, "threads", 0, TTD_KIND_IS_DEFINITION | TTD_KIND_IS_LASTING,                \
            MANY, thread, threads, CHECKED)                                                        \
    RECORDS(HEAPS, 7, "heaps", 0,                                                                  \
            TTD_KIND_HAS_IDS | TTD_KIND_IS_DEFINITION | TTD_KIND_IS_LASTING,                       \
            MANY, heap, heaps, CHECKED)                                                            \
    RECORDS(HEAP_PARENTS, 26, "heap parents", 0, TTD_KIND_IS_DEFINITION | TTD_KIND_IS_LASTING,     \
            MANY, heap_parent, heap_parents, CHECKED)                                              \
    RECORDS(STACKS, 3, "stacks", 0,                                                                \
            TTD_KIND_HAS_IDS | TTD_KIND_IS_DEFINITION | TTD_KIND_IS_LASTING,                       \
            MANY, stack, stacks, CHECKED)                                                          \
    RECORDS(SYMBOLS, 5, "symbols", 0,                                                              \
            TTD_KIND_IS_DEFINITION | TTD_KIND_IS_NAME | TTD_KIND_IS_LASTING,                       \
            MANY, symbol, symbols, CHECKED)                                                        \
    /* Facts about the recording. */                                                               \
    RECORDS(METADATA, 14, "metadata", 0, TTD_KIND_IS_LASTING,                                      \
            MANY, metadata, metadata, FREE)                                                        \
    RECORDS(USER_EVENTS, 9, "user events", 0, TTD_KIND_IS_PLAIN,                                   \
            MANY, user_event, user_events, CHECKED)                                                \
    RECORDS(LOSSES, 10, "losses", 0, TTD_KIND_IS_PLAIN,                                            \
            MANY, loss, losses, CHECKED)                                                           \
    RECORDS(STATES, 17, "states", 0, TTD_KIND_IS_PLAIN,                                            \
            MANY, state, states, FREE)                                                             \
    RECORDS(SUMS, 18, "sums", 0, TTD_KIND_IS_PLAIN,                                                \
            MANY, sum, sums, FREE)                                                                 \
    /* Snapshots, and after them their parts and the memory that these refer to. */                \
    RECORDS(VARIABLES, 22, "variables", 0, TTD_KIND_IS_NAME | TTD_KIND_IS_LASTING,                 \
            MANY, variable, variables, CHECKED)                                                    \
    RECORDS(FRAMES, 23, "frames", 0, TTD_KIND_IS_PLAIN,                                            \
            MANY, frames, frames, CHECKED)                                                         \
    RECORDS(SNAPSHOTS, 19, "snapshots", 0, TTD_KIND_IS_PLAIN,                                      \
            MANY, snapshot, snapshots, CHECKED)                                                    \
    RECORDS(FATAL_SIGNALS, 25, "fatal signals", 0, TTD_KIND_IS_PLAIN,                              \
            MANY, fatal_signal, fatal_signals, CHECKED)                                            \
    RECORDS(REGIONS, 20, "regions", 0, TTD_KIND_IS_PLAIN,                                          \
            ONE, regions, regions, CHECKED)                                                        \
    RECORDS(REFERENCES, 21, "references", 0, TTD_KIND_IS_PLAIN,                                    \
            ONE, references, references, CHECKED)                                                  \
    CHUNK(PACKED_REFERENCES, 27, "packed references", 0, TTD_KIND_IS_PLAIN, REFERENCES)            \
    RECORDS(CLASSES, 24, "classes", 0, TTD_KIND_IS_PLAIN,                                          \
            ONE, classes, classes, CHECKED)                                                        \
    /* Bytes that overwrote the header of a block are contents of the program. */                  \
    RECORDS(BLOCK_HEADERS, 28, "block headers", 1, TTD_KIND_IS_CONTENT,                            \
            ONE, block_headers, block_headers, CHECKED)                                            \
    /* Memory maps behind a cut may have pages from before it. */                                  \
    RECORDS(PAGES, 12, "pages", 0, TTD_KIND_IS_LASTING | TTD_KIND_IS_CONTENT,                      \
            ONE, pages, pages, CHECKED)                                                            \
    RECORDS(MEMORY_MAP, 13, "memory map", 0, TTD_KIND_MAY_BE_EMPTY | TTD_KIND_IS_CONTENT,          \
            ONE, memory_map, memory_map, CHECKED)                                                  \
    /* Events, and the blocks that they leave. */                                                  \
    RECORDS(EVENTS, 8, "events", 0, TTD_KIND_IS_CRITICAL,                                          \
            MANY, event, events, CHECKED)                                                          \
    RECORDS(LIVE_BLOCKS, 11, "live blocks", 0, TTD_KIND_MAY_BE_EMPTY,                              \
            ONE, live_blocks, live_blocks, CHECKED)                                                \
    CHUNK(INDEX, 15, "index", 0, TTD_KIND_IS_PLAIN, INDEX)                                         \
    RECORDS(END, 16, "end", 0, TTD_KIND_IS_RAW,                                                    \
            ONE, end, end, FREE)
/* clang-format on */

/** Kinds of records, and of the chunks that hold them. Values as in the format. */
enum ttd_kind {
#define TTD_KIND_VALUE(name, number, ...) TTD_KIND_##name = number,
    TTD_KINDS(TTD_KIND_VALUE, TTD_KIND_VALUE)
#undef TTD_KIND_VALUE
};

/** The largest known kind. */
#define TTD_KIND_LAST TTD_KIND_BLOCK_HEADERS

#endif
