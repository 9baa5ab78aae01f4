/* SPDX-License-Identifier: MIT */
/**
 * Every tag, offset, size, mask and limit of the format, once. Encoders, decoders and tests share
 * them. The sections refer to spec/format.md.
 */
#ifndef TTD_LAYOUT_H
#define TTD_LAYOUT_H

#include <stdint.h>

/* "Chunk header". Offsets of its fields, and its size. */
#define TTD_HEADER_MAGIC          0
#define TTD_HEADER_MAJOR          8
#define TTD_HEADER_KIND           10
#define TTD_HEADER_CODEC          12
#define TTD_HEADER_FLAGS          13
#define TTD_HEADER_MINOR          14
#define TTD_HEADER_STORED_SIZE    16
#define TTD_HEADER_RAW_SIZE       20
#define TTD_HEADER_TRACE_ID       24
#define TTD_HEADER_NUMBER         32
#define TTD_HEADER_OFFSET         40
#define TTD_HEADER_FIRST_RECORD   48
#define TTD_HEADER_RECORD_COUNT   56
#define TTD_HEADER_RESERVED       60
#define TTD_HEADER_FIRST_POSITION 64
#define TTD_HEADER_LAST_POSITION  80
#define TTD_HEADER_PAYLOAD_HASH   96
#define TTD_HEADER_HASH           104
#define TTD_HEADER_SIZE           112

#define TTD_MAGIC_SIZE 8
/** "\x89TTDH\r\n\x1a". */
#define TTD_MAGIC_BYTES 0x89, 0x54, 0x54, 0x44, 0x48, 0x0D, 0x0A, 0x1A

/** Chunks begin at multiples of this and are padded with zeros to it. */
#define TTD_ALIGNMENT 8

#define TTD_CHUNK_CRITICAL   0x01u
#define TTD_CHUNK_FLAGS_MASK 0x01u

/* "Limits". */
#define TTD_PAYLOAD_MAX      (UINT32_C(16) << 20) /**< stored, and raw */
#define TTD_RECORDS_MAX      UINT32_C(65536)      /**< of one chunk */
#define TTD_STRING_MAX       UINT32_C(65536)      /**< bytes of a string, a user event's data */
#define TTD_STACK_DEPTH_MAX  4096
#define TTD_SYMBOL_FRAME_MAX 1024
#define TTD_VARINT_MAX       10
#define TTD_PAGE_SIZE_MIN    512
#define TTD_PAGE_SIZE_MAX    65536
/** The most that `stored` bytes of an LZ4 block can stand for. */
#define TTD_LZ4_RAW_MAX(stored) (UINT64_C(255) * (stored) + 64)

/* "Trace": payload of the first chunk. */
#define TTD_TRACE_GROUP           0
#define TTD_TRACE_PARENT_TRACE_ID 16
#define TTD_TRACE_PARENT_POSITION 24
#define TTD_TRACE_START_TIME      40
#define TTD_TRACE_TIME_UNIT       48
#define TTD_TRACE_PROCESS_ID      56
#define TTD_TRACE_PARENT_PROCESS  64
#define TTD_TRACE_FLAGS           72
#define TTD_TRACE_ARCHITECTURE    76
#define TTD_TRACE_POINTER_SIZE    80
#define TTD_TRACE_RESERVED        84
#define TTD_TRACE_SOURCE_TRACE_ID 88
#define TTD_TRACE_SOURCE_SIZE     96
#define TTD_TRACE_SOURCE_HASH     104
#define TTD_TRACE_SIZE            112
#define TTD_TRACE_FLAGS_MASK      0x0Fu

/* "End": payload of the last chunk. */
#define TTD_END_PAYLOAD_REASON       0
#define TTD_END_PAYLOAD_CODE         4
#define TTD_END_PAYLOAD_WALL_TIME    8
#define TTD_END_PAYLOAD_EVENTS       16
#define TTD_END_PAYLOAD_LOST_EVENTS  24
#define TTD_END_PAYLOAD_CHUNKS       32
#define TTD_END_PAYLOAD_INDEX_OFFSET 40
#define TTD_END_PAYLOAD_SIZE         48
/** The whole chunk, so that it is found from the end of a file. */
#define TTD_END_CHUNK_SIZE (TTD_HEADER_SIZE + TTD_END_PAYLOAD_SIZE)

/* "Index". */
#define TTD_INDEX_LINK_COUNT  0
#define TTD_INDEX_RESERVED    4
#define TTD_INDEX_LINKS       8
#define TTD_LINK_OFFSET       0
#define TTD_LINK_FIRST_EVENT  8
#define TTD_LINK_POSITION     16
#define TTD_LINK_SIZE         32
#define TTD_INDEX_ENTRIES_MAX 1024
/** The index chunk itself, and those 1, 2, 4, … before it. */
#define TTD_INDEX_LINKS_MAX 64

/* "Events": columns, in the order of their lengths and of their bytes. */
enum ttd_column {
    TTD_COLUMN_CLASSES = 0,
    TTD_COLUMN_SHAPE_CLASSES,
    TTD_COLUMN_SHAPE_STACKS,
    TTD_COLUMN_SHAPES_FIRST,
    TTD_COLUMN_SHAPES_MORE,
    TTD_COLUMN_SIZES,
    TTD_COLUMN_RELEASED,
    TTD_COLUMN_ACQUIRED,
    TTD_COLUMN_RELEASED_EXPLICIT,
    TTD_COLUMN_ACQUIRED_EXPLICIT,
    TTD_COLUMN_TIME_GAPS,
    TTD_COLUMN_TIME_FORMS,
    TTD_COLUMN_TIME_VALUES,
    TTD_COLUMN_CLOCK,
    TTD_COLUMN_EXTRA,
    TTD_COLUMN_COUNT
};

#define TTD_EVENTS_CLASS_COUNT 0
#define TTD_EVENTS_SHAPE_COUNT 4
#define TTD_EVENTS_LENGTHS     8
#define TTD_EVENTS_COLUMNS     (TTD_EVENTS_LENGTHS + 4 * TTD_COLUMN_COUNT)

/* Bits of a class's form. */
#define TTD_FORM_OUTCOME      0x03u
#define TTD_FORM_ADDRESS      0x04u /**< address is not 0 */
#define TTD_FORM_BASE         0x08u /**< base_address is not 0 */
#define TTD_FORM_SIZE         0x10u /**< size is coded */
#define TTD_FORM_PARAMETERS   0x60u
#define TTD_FORM_MASK         0x7Fu
#define TTD_OUTCOME_FAILED    0u /**< result is 0 */
#define TTD_OUTCOME_ONE       1u /**< result is 1 */
#define TTD_OUTCOME_RESULT    2u /**< result in the extra column */
#define TTD_OUTCOME_NEVER     3u /**< the call never returned */
#define TTD_PARAMETERS_NONE   0x00u
#define TTD_PARAMETERS_BY_API 0x20u /**< by the API's template */
#define TTD_PARAMETERS_WHOLE  0x40u /**< all in the extra column */

/* Symbols of the column of shapes: one byte, one of 31 × 256, or three bytes. */
#define TTD_SHAPE_ONE_BYTE  0xE0u
#define TTD_SHAPE_ESCAPE    0xFFu
#define TTD_SHAPE_TWO_BYTES (TTD_SHAPE_ONE_BYTE + (TTD_SHAPE_ESCAPE - TTD_SHAPE_ONE_BYTE) * 256u)

/** Addresses are rotated right by this before differences are taken. */
#define TTD_ADDRESS_ROTATION 4
/** A place in a list is one byte; 0 is an explicit address. */
#define TTD_PLACE_MAX 255u

/* Bits of an exception's form. */
#define TTD_TIME_THREAD         0x01u /**< a thread follows */
#define TTD_TIME_START          0x06u
#define TTD_TIME_START_SHIFT    1
#define TTD_TIME_END            0x38u
#define TTD_TIME_END_SHIFT      3
#define TTD_TIME_MASK           0x3Fu
#define TTD_TIME_START_STEP     0u /**< one step after the thread's last end */
#define TTD_TIME_START_SEQUENCE 1u /**< a new sequence */
#define TTD_TIME_START_STEPS    2u /**< some steps after the thread's last end */
#define TTD_TIME_START_EXPLICIT 3u
#define TTD_TIME_END_STEP       0u /**< one step after the start */
#define TTD_TIME_END_SEQUENCE   1u /**< a new sequence */
#define TTD_TIME_END_STEPS      2u /**< some steps after the start */
#define TTD_TIME_END_EXPLICIT   3u
#define TTD_TIME_END_NEVER      4u

/* "Live blocks". */
#define TTD_BLOCKS_LIST     0
#define TTD_BLOCKS_LIST_ID  4
#define TTD_BLOCKS_FLAGS    8
#define TTD_BLOCKS_RESERVED 12
#define TTD_BLOCKS_POSITION 16
#define TTD_BLOCKS_LENGTHS  32
#define TTD_BLOCKS_LAST     1u
enum ttd_block_column {
    TTD_BLOCK_ADDRESSES = 0,
    TTD_BLOCK_SIZES,
    TTD_BLOCK_EVENTS,
    TTD_BLOCK_SEQUENCES,
    TTD_BLOCK_STEPS,
    TTD_BLOCK_THREADS,
    TTD_BLOCK_HEAPS,
    TTD_BLOCK_STACKS,
    TTD_BLOCK_APIS,
    TTD_BLOCK_COLUMN_COUNT
};
#define TTD_BLOCKS_COLUMNS (TTD_BLOCKS_LENGTHS + 4 * TTD_BLOCK_COLUMN_COUNT)

/* "Stacks". */
enum ttd_stack_column {
    TTD_STACK_PARENTS = 0,
    TTD_STACK_FRAMES,
    TTD_STACK_MODULES,
    TTD_STACK_OFFSETS,
    TTD_STACK_COLUMN_COUNT
};
#define TTD_STACKS_LENGTHS 0
#define TTD_STACKS_COLUMNS (TTD_STACKS_LENGTHS + 4 * TTD_STACK_COLUMN_COUNT)

/* "Pages". */
#define TTD_PAGES_PAGE_SIZE 0
#define TTD_PAGES_RESERVED  4
#define TTD_PAGES_DATA      8

/* "Memory map". */
#define TTD_MAP_SNAPSHOT  0
#define TTD_MAP_FLAGS     4
#define TTD_MAP_POSITION  8
#define TTD_MAP_PAGE_SIZE 24
#define TTD_MAP_RESERVED  28
#define TTD_MAP_RUNS      32
#define TTD_MAP_LAST      1u
#define TTD_MEMORY_MASK   0x0Fu

/* "Snapshots". */
#define TTD_SNAPSHOT_CONTENTS_MASK 0x07u
#define TTD_SNAPSHOT_FLAGS_MASK    0x07u

/* "Regions". */
#define TTD_REGIONS_SNAPSHOT 0
#define TTD_REGIONS_FIRST    4
#define TTD_REGIONS_RECORDS  8

/* "References", of both kinds. */
#define TTD_REFERENCES_SNAPSHOT 0
#define TTD_REFERENCES_RESERVED 4
#define TTD_REFERENCES_LENGTHS  8
enum ttd_reference_column {
    TTD_REFERENCE_REGIONS = 0,
    TTD_REFERENCE_OFFSETS,
    TTD_REFERENCE_VALUES,
    TTD_REFERENCE_COLUMN_COUNT
};
#define TTD_REFERENCES_COLUMNS (TTD_REFERENCES_LENGTHS + 4 * TTD_REFERENCE_COLUMN_COUNT)
/** Words lie at multiples of 8: offsets are rotated right by this, and so are values of the older
 * kind. Of a value of the newer one as many low bits are apart. */
#define TTD_REFERENCE_ROTATION 3
#define TTD_REFERENCE_LOW_BITS 7
/** The distance of words that lie one behind the other. */
#define TTD_REFERENCE_SIZE 8
enum ttd_packed_reference_column {
    TTD_PACKED_REFERENCE_RUNS = 0,
    TTD_PACKED_REFERENCE_OFFSETS,
    TTD_PACKED_REFERENCE_VALUES,
    TTD_PACKED_REFERENCE_LOW_BITS,
    TTD_PACKED_REFERENCE_COLUMN_COUNT
};
#define TTD_PACKED_REFERENCES_COLUMNS                                                              \
    (TTD_REFERENCES_LENGTHS + 4 * TTD_PACKED_REFERENCE_COLUMN_COUNT)

/* "Classes". */
#define TTD_CLASSES_SNAPSHOT 0
#define TTD_CLASSES_RESERVED 4
#define TTD_CLASSES_RECORDS  8

/* "Block headers". */
#define TTD_BLOCK_HEADERS_SNAPSHOT 0
#define TTD_BLOCK_HEADERS_FLAGS    4
#define TTD_BLOCK_HEADERS_BEGIN    8
#define TTD_BLOCK_HEADERS_RECORDS  16
#define TTD_HEADERS_FLAGS_MASK     7u

#endif
