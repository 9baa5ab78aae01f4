/* SPDX-License-Identifier: MIT */
/** Internals of the reader, private to `read/`. */
#ifndef TTD_READ_READ_INTERNAL_H
#define TTD_READ_READ_INTERNAL_H

#include <stddef.h>
#include <ttdtrace/allocator.h>
#include <ttdtrace/reader.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "codec/chunk/fixed_chunks.h"
#include "codec/chunk/header.h"
#include "codec/events/events.h"
#include "codec/heap_state/heap_states.h"
#include "codec/stacks/stacks.h"
#include "read/check.h"

/* The directory of a reader: the headers that were read from the first chunk on. A later pass over
 * the same trace takes from it the headers of chunks that it passes over, and reads none of them
 * again. */

/** Headers at most: about 6 MB, for a trace of four billion events. A file of more chunks has the
 * rest of its headers read in each pass. */
#define TTD_DIRECTORY_MAX 65536

/** Good headers of chunks that follow one another without a gap, from the start of the file. */
struct ttd_directory {
    struct ttd_header *headers;
    size_t count;
    size_t capacity;
    /** Index of the header that is expected to be asked for next. */
    size_t next;
};

void ttd_directory_free(struct ttd_directory *directory, const struct ttd_allocator *allocator);

/** Returns the header at `offset`, valid until a header is added; NULL if it is not known.
 */
const struct ttd_header *ttd_directory_find(struct ttd_directory *directory, uint64_t offset);

/**
 * Takes in a good header that was read just now. A header that differs from the known one at its
 * place shows that the file has changed: all from there on is forgotten.
 *
 * @return false without memory
 */
bool ttd_directory_add(struct ttd_directory *directory, const struct ttd_allocator *allocator,
                       const struct ttd_header *header);

/** Forgets all headers of chunks that end behind `offset`. */
void ttd_directory_cut(struct ttd_directory *directory, uint64_t offset);

/** Records of kinds other than events that are decoded at a time at most. */
#define TTD_RECORD_BATCH 128

/** The input of a reader, and the payload of the chunk that was read last. */
struct ttd_source {
    struct ttd_input input;
    /** Size of the input when it was last asked; a file may grow. */
    uint64_t size;
    /** 0 as long as it is not known. */
    uint64_t trace_id;
    /** Bytes that were searched for a good header since the last rewind, and how many may be. */
    uint64_t searched;
    uint64_t search_max;
    struct ttd_directory directory;
    /** Stored payload with its padding, and decompressed. */
    struct ttd_buffer stored;
    struct ttd_buffer raw;
};

void ttd_source_init(struct ttd_source *source, const struct ttd_input *input,
                     const struct ttd_allocator *allocator);
void ttd_source_free(struct ttd_source *source);

/** Reads exactly `size` bytes; TTD_ERROR_TRUNCATED if there are fewer, TTD_ERROR_IO. */
enum ttd_status ttd_source_read(struct ttd_source *source, uint64_t offset, void *data, size_t size,
                                struct ttd_error *error);

/** Asks for the input's size anew. */
enum ttd_status ttd_source_refresh(struct ttd_source *source, struct ttd_error *error);

/**
 * Reads the header at `offset` and checks that it belongs there and that the chunk is complete.
 *
 * @param header  set on TTD_OK
 * @return TTD_OK, TTD_END (nothing there), TTD_ERROR_TRUNCATED, TTD_ERROR_CORRUPT,
 *         TTD_ERROR_UNSUPPORTED, TTD_ERROR_IO.
 */
enum ttd_status ttd_source_header(struct ttd_source *source, uint64_t offset,
                                  struct ttd_header *header, struct ttd_error *error);

/**
 * Reads and checks the payload of a chunk whose header is good, whatever its codec: source->stored
 * has it until the next call.
 *
 * @return TTD_OK, TTD_ERROR_TRUNCATED, TTD_ERROR_CORRUPT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status ttd_source_stored(struct ttd_source *source, const struct ttd_header *header,
                                  struct ttd_error *error);

/**
 * Reads, checks and decompresses the payload of a chunk whose header is good. It is valid until
 * the next call.
 *
 * @return TTD_OK, TTD_ERROR_TRUNCATED, TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED,
 *         TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status ttd_source_payload(struct ttd_source *source, const struct ttd_header *header,
                                   struct ttd_cursor *payload, struct ttd_error *error);

/** The decompressed payload that ttd_source_payload() has read last; it is of this header's chunk.
 */
static inline const uint8_t *ttd_source_raw(const struct ttd_source *source,
                                            const struct ttd_header *header)
{
    return header->codec == TTD_CODEC_RAW ? source->stored.data : source->raw.data;
}

/**
 * Finds the next good header at or after `offset` (spec, "Resynchronisation") whose chunk number
 * is at least `number`.
 *
 * @param next_offset  set on TTD_OK to its offset
 * @return TTD_OK, TTD_END (none; `*next_offset` is where to go on when the file has grown),
 *         TTD_ERROR_LIMIT (source->search_max is reached; `*next_offset` is where), TTD_ERROR_IO.
 */
enum ttd_status ttd_source_resync(struct ttd_source *source, uint64_t offset, uint64_t number,
                                  uint64_t *next_offset, struct ttd_error *error);

/** Damage without a loss record yet. */
struct ttd_gap {
    bool pending;
    /** No later chunk shows how many events are missing. */
    bool is_endless;
    struct ttd_error error;
    struct ttd_position last_good;
    /** Number of the first event that may be missing. */
    uint64_t event;
};

struct ttd_reader {
    struct ttd_allocator allocator;
    struct ttd_reader_options options;
    struct ttd_source source;
    struct ttd_trace trace;
    /** A failure that ends the reading for good. */
    bool failed;
    struct ttd_error error;

    /** Place of the next chunk, and the number that it must have. */
    uint64_t offset;
    uint64_t next_number;
    /** The event that must come next, and the effect position of the one before. */
    uint64_t next_event;
    struct ttd_position position;
    /** The bytes at `offset` are damaged, and no chunk was found behind them yet. */
    bool scanning;
    /** It was reported that chunk 0 is no trace chunk. */
    bool first_is_told;
    /** The End chunk was passed. */
    bool has_ended;
    /** A loss was made up from the End chunk's totals; they are not to be compared again.
     */
    bool end_judged;
    struct ttd_gap gap;
    /** The first damage on the way to the chunk that was looked for last; its `what` is NULL if
     * there was none. */
    struct ttd_error passed;
    /** A loss was made up for all between the last chunk and the end of the file. */
    bool rest_is_lost;

    /** Everything is checked on the way; the last reading of that kind found all in order. */
    bool checks;
    bool is_intact;
    struct ttd_check check;
    /** Chunks of events are returned unread: see ttd_reader_rewind_unread(). */
    bool leaves_events;

    /** The chunk that is being decoded, as long as records of it are left. */
    struct ttd_header header;
    struct ttd_cursor payload;
    uint64_t next_record;
    uint32_t records_left;
    /** No record of it was decoded yet; it was decoded before, only to be checked. */
    bool is_first_batch;
    bool is_checked;
    /** Stacks are to be decoded, whatever the options say. */
    bool decodes_stacks;
    /** next_event and position before the chunk. */
    uint64_t event_before;
    struct ttd_position position_before;

    struct ttd_events_decoder events;
    struct ttd_stacks_decoder stacks;
    uint64_t symbol_offset;
    struct ttd_symbol_frame *frames;
    size_t frames_capacity;
    uint64_t variable_offset;
    /** The entries of a record that is a whole chunk; or the addresses of the frames, or the
     * registers of the fatal signals, of a batch. Its capacity is in bytes. */
    void *items;
    size_t items_capacity;
    struct ttd_loss synthetic;
    /** A batch of any kind; events are elsewhere. */
    union {
#define KIND_RECORDS_ONE  1
#define KIND_RECORDS_MANY TTD_RECORD_BATCH
#define KIND_RECORDS(name, number, text, minor, properties, count, record, member, ids)            \
    struct ttd_##record member[KIND_RECORDS_##count];
#define KIND_NO_RECORDS(...)
        TTD_KINDS(KIND_RECORDS, KIND_NO_RECORDS)
#undef KIND_RECORDS
#undef KIND_NO_RECORDS
    } records;
};

/** Describes a header to users. */
struct ttd_chunk ttd_chunk_of(const struct ttd_header *header);

/** Ends the reading for good: each later call fails for the same reason. Returns its status. */
enum ttd_status ttd_reader_stop(struct ttd_reader *reader, const struct ttd_error *reason,
                                struct ttd_error *error);

/**
 * Finds the next chunk at or after reader->offset. A tolerant reader passes over damage and notes
 * it in reader->gap.
 *
 * @param kinds  TTD_KIND_BITs; headers of these are read, other headers may come from the
 * directory. A reader that checks reads all.
 * @return TTD_OK; TTD_END, TTD_ERROR_TRUNCATED, TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED,
 *         TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status ttd_reader_find(struct ttd_reader *reader, uint32_t kinds,
                                struct ttd_header *header, struct ttd_error *error);

/** Moves behind a chunk; its events count as seen when `counted`. */
void ttd_reader_pass(struct ttd_reader *reader, const struct ttd_header *header, bool counted);

/** Notes damage in a tolerant reader and returns TTD_OK; else ends the reading. */
enum ttd_status ttd_reader_damage(struct ttd_reader *reader, const struct ttd_error *damage,
                                  struct ttd_error *error);

/**
 * Returns the first records of the chunk with this header, or a loss that is due before it. TTD_END
 * when there is nothing to return: go on with the next chunk.
 */
enum ttd_status ttd_reader_enter(struct ttd_reader *reader, const struct ttd_header *header,
                                 struct ttd_batch *batch, struct ttd_error *error);

/**
 * Returns the next records of the chunk at hand. TTD_END when it is damaged and was passed over.
 */
enum ttd_status ttd_reader_go_on(struct ttd_reader *reader, struct ttd_batch *batch,
                                 struct ttd_error *error);

/**
 * Returns the loss record for the gap before `header` (NULL at the end of the file).
 *
 * @param event  the number of the event that comes after the gap, or TTD_UNKNOWN
 */
void ttd_reader_synthesize_loss(struct ttd_reader *reader, const struct ttd_header *header,
                                uint64_t event, struct ttd_batch *batch);

/**
 * Ends the reading at something that this library does not support; a tolerant reader returns a
 * loss record first.
 */
enum ttd_status ttd_reader_end_unsupported(struct ttd_reader *reader,
                                           const struct ttd_error *detail, struct ttd_batch *batch,
                                           struct ttd_error *error);

/** Fails for the undecodable chunk at hand; TTD_END when it was passed over. */
enum ttd_status ttd_reader_fail_chunk(struct ttd_reader *reader, const struct ttd_error *detail,
                                      struct ttd_batch *batch, struct ttd_error *error);

/** Validates the numbers of records in a header of a known kind. Returns a description of the first
 * violation, or NULL. */
const char *ttd_reader_check_records(const struct ttd_header *header);

/** Reads the payload of a chunk and gets ready to decode it; fails as the source does. */
enum ttd_status ttd_reader_begin(struct ttd_reader *reader, const struct ttd_header *header,
                                 struct ttd_error *error);

/** Fills in the fault of the chunk at hand, and returns `status`. */
static inline enum ttd_status ttd_reader_fail(const struct ttd_reader *reader,
                                              enum ttd_status status, const char *what,
                                              struct ttd_error *error)
{
    return ttd_fail(error, status, what, reader->header.offset, reader->header.number);
}

/** Decodes the next records of the chunk; there are some left. */
enum ttd_status ttd_reader_decode(struct ttd_reader *reader, struct ttd_batch *batch,
                                  struct ttd_error *error);

#endif
