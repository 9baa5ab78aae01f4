/* SPDX-License-Identifier: MIT */
/** Internals of the reader, private to `read/` and `amend/`. */
#ifndef TTD_READ_READ_INTERNAL_H
#define TTD_READ_READ_INTERNAL_H

#include <stddef.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/verify.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "codec/chunk/emitter.h"
#include "codec/chunk/header.h"
#include "codec/events/events.h"
#include "codec/heap_state/heap_states.h"
#include "codec/snapshots/snapshots.h"
#include "codec/stacks/stacks.h"

/* Checks of a file that is read from beginning to end. Verify, recover and the verdict of a reader
 * rest on them. */

/** The number of ids defined so far; references are checked against it. */
struct ttd_id_check {
    /** Ids cannot be checked, because they are defined in another trace or definitions were lost.
     */
    bool unknown;
    /** The last batch defines an id that was defined before. */
    bool redefines;
    ttd_id strings;
    ttd_id stacks;
    ttd_id modules;
    ttd_id threads;
    ttd_id heaps;
    /** The largest heap that an event or a record of parents has referred to; later records must
     * not change its parent. */
    ttd_id settled_heap;
    uint64_t pages;
    struct ttd_list_state list;
    struct ttd_snapshot_order snapshots;
    /** Depth of each stack, from id 1 on. */
    uint16_t *depths;
    size_t depths_capacity;
};

/**
 * Checks the records of a batch, and notes the ids that they define.
 *
 * @param what  set to a static description of the first violation, or NULL
 * @return false if memory is exhausted
 */
bool ttd_id_check_batch(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                        const struct ttd_batch *batch, const char **what);

/** Whether an id is 0 or defined; true if ids cannot be checked. */
static inline bool ttd_id_check_knows(const struct ttd_id_check *ids, ttd_id id, ttd_id count)
{
    return id <= count || ids->unknown;
}

/** Makes room for the depths of `count` more stacks. False without memory. */
bool ttd_id_check_grow(struct ttd_id_check *ids, const struct ttd_allocator *allocator,
                       size_t count);

/** The index chunks seen so far, and the chunks that the next one must list. */
struct ttd_index_check {
    struct ttd_index_link *seen;
    size_t seen_count;
    size_t seen_capacity;
    /** The link to itself that the next index chunk must have; set by a chunk of events. */
    struct ttd_index_link pending;
    bool pending_set;
    /** Hash of each chunk's header since the last index chunk. */
    uint64_t *hashes;
    size_t hash_count;
    size_t hash_capacity;
};

struct ttd_reader;

/**
 * Called for each intact chunk.
 *
 * @param stored     header->stored_size bytes
 * @param redefines  the chunk defines ids a second time
 */
typedef enum ttd_status (*ttd_check_chunk_function)(void *context, struct ttd_reader *reader,
                                                    const struct ttd_header *header,
                                                    const uint8_t *stored, bool redefines);
/** Called for each loss, between the chunks before and after it. */
typedef enum ttd_status (*ttd_check_loss_function)(void *context, struct ttd_reader *reader,
                                                   const struct ttd_loss *loss);

/** Returns the observer of an argument that may be NULL. */
static inline struct ttd_problem_observer
ttd_observer_or_none(const struct ttd_problem_observer *observer)
{
    return observer ? *observer : (struct ttd_problem_observer){0};
}

/** The state of a check; see ttd_check_begin(). */
struct ttd_check {
    /** Every function may be NULL. The first status of a function that is not TTD_OK ends the
     * reading. */
    struct ttd_problem_observer observer;
    ttd_check_chunk_function chunk;
    ttd_check_loss_function loss;
    void *context;
    enum ttd_status status;

    struct ttd_verdict verdict;
    struct ttd_id_check ids;
    struct ttd_index_check index;
    /** Chunks are missing, so totals cannot be checked. */
    bool damaged;
    /** The current chunk: a static description of its first violation, or NULL; and whether it
     * defines ids that were defined before. */
    const char *wrong;
    bool redefines;
    /** The tables of the current chunk of events have only ids that are defined. */
    bool has_known_tables;
    /** verdict.lost_events, including the losses of the current chunk. */
    uint64_t lost_events;
    /** An End was read; and the offset of its end, where the file should end. */
    bool has_end;
    uint64_t end_behind;
    struct ttd_end end;
    /** The last problem; it is not reported before the number of events missing with it is
     * known. */
    bool is_held;
    struct ttd_problem held;
};

/** Starts a check of the whole file; the reader is before its first chunk. */
void ttd_check_begin(struct ttd_reader *reader);

/** Releases everything but the caller's functions. */
void ttd_check_free(struct ttd_reader *reader);

/** Notes damage; `bytes` and `chunks` were passed over. */
void ttd_check_damage(struct ttd_reader *reader, const struct ttd_error *error, uint64_t bytes,
                      uint64_t chunks);

/** Notes the loss that stands for the damage since the last loss. */
void ttd_check_lost(struct ttd_reader *reader, const struct ttd_loss *loss);

/** Checks a batch of the current chunk. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_batch(struct ttd_reader *reader, const struct ttd_batch *batch,
                                struct ttd_error *error);

/**
 * Checks all stacks of the current chunk without decoding them, and notes them if there is no
 * violation. If there is one, the caller decodes the stacks and checks them batch by batch: this
 * finds the problem.
 *
 * @param is_right  set to whether there is no violation, also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_check_stacks(struct ttd_reader *reader, bool *is_right,
                                 struct ttd_error *error);

/** Checks the payload of the current chunk, an index. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_index(struct ttd_reader *reader, struct ttd_cursor payload,
                                struct ttd_error *error);

/** Takes the current chunk, events that are not read, for intact. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_unread(struct ttd_reader *reader, struct ttd_error *error);

/** Ends the current chunk; all of it is intact. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status ttd_check_chunk(struct ttd_reader *reader, struct ttd_error *error);

/** Completes the verdict after the reading has ended with `status` and `error`. */
void ttd_check_end(struct ttd_reader *reader, enum ttd_status status,
                   const struct ttd_error *error);

/** Compares an index chunk with the chunks read. Sets `what` to a static description of the first
 * difference, or NULL. Returns false if memory is exhausted. */
bool ttd_index_check_chunk(struct ttd_reader *reader, struct ttd_cursor payload, const char **what);

/** Notes a chunk that the next index chunk must list. Returns false if memory is exhausted. */
bool ttd_index_check_see(struct ttd_reader *reader, const struct ttd_header *header);

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

/*
 * Copying a trace chunk by chunk into a new file; recover and redact share it. The functions of
 * `check` are called with each chunk and each loss, and write the chunks of the new file. Chunks
 * get new numbers, and the index and the End are made anew.
 */

/* Going through all of a file, checking everything; verify and recover share it. */

/**
 * Walks through the input, and closes it in any case.
 *
 * @param check    its functions are called on the way
 * @param verdict  set on TTD_OK
 * @return as ttd_verify(), or the status of the functions
 */
enum ttd_status ttd_walk_run(const struct ttd_check *check, const struct ttd_input *input,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict,
                             struct ttd_error *error);

/** The new file in the making. */
struct ttd_copy {
    struct ttd_allocator allocator;
    const struct ttd_output *output;
    struct ttd_emitter emitter;
    /** The payload of the chunk that is put next. */
    struct ttd_buffer payload;
    struct ttd_error *error;
    /** Flags to be set in the first chunk of the new trace, in addition to the old one's. */
    uint32_t trace_flags;
    /** The first chunk was written. */
    bool has_begun;
    /** Called before the End is written, if it is not NULL. */
    enum ttd_status (*before_end)(void *context);
    /** The old End. */
    struct ttd_end end;
};

/** Compresses and writes a chunk with copy->payload, and empties that. @return TTD_OK,
 * TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status ttd_copy_put(struct ttd_copy *copy, const struct ttd_emission *emission);

/** Writes a chunk as it is stored. Statuses as above. */
enum ttd_status ttd_copy_stored(struct ttd_copy *copy, const struct ttd_header *header,
                                const uint8_t *stored);

/** Writes the first chunk, unless it was written: a copy of the old one or, if that is damaged, one
 * with the reader's values. Statuses as above. */
enum ttd_status ttd_copy_begin(struct ttd_copy *copy, const struct ttd_reader *reader);

/**
 * Handles a chunk that is made anew in the copy: the first chunk, an index, the End.
 *
 * @return whether the chunk is one of these, so that the caller must not copy it
 */
bool ttd_copy_is_made(struct ttd_copy *copy, const struct ttd_reader *reader,
                      const struct ttd_header *header);

/**
 * Copies `input` to `output`. Both are closed in any case, also if an argument is NULL or invalid.
 *
 * @param copy     its output and allocator are set here
 * @param check    its context is passed to before_end as well
 * @param verdict  set on TTD_OK
 * @return as ttd_recover(), or the status of the functions
 */
enum ttd_status ttd_copy_run(struct ttd_copy *copy, const struct ttd_check *check,
                             const struct ttd_input *input, const struct ttd_output *output,
                             const struct ttd_allocator *allocator, struct ttd_verdict *verdict);

/* Copying all that is intact; recover and amend share it. */

/** The new file in the making. All zero but copy.error, copy.trace_flags and copy.before_end. */
struct ttd_recovery {
    struct ttd_copy copy;
    /** Loss records written. */
    uint64_t losses;
    /** The largest ids in the chunks so far. */
    ttd_id strings;
    ttd_id modules;
    /** Chunks are missing before the last one, so that ids may be in use that are not known. */
    bool has_gaps;
    /** Ordinal of the next record of each kind that has ordinals. */
    uint64_t ordinals[TTD_KIND_LAST + 1];
};

/** Copies as ttd_recover() does. Both files are closed in any case. */
enum ttd_status ttd_recovery_run(struct ttd_recovery *recovery, const struct ttd_input *input,
                                 const struct ttd_output *output,
                                 const struct ttd_allocator *allocator,
                                 const struct ttd_problem_observer *observer,
                                 struct ttd_verdict *verdict);

#endif
