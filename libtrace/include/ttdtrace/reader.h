/* SPDX-License-Identifier: MIT */
/**
 * Reading a trace (spec, "Reading").
 *
 * A trace is a file with all calls that allocate and release memory in one process. A program that
 * counts the events of a trace:
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     unsigned long long events = 0;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         if (batch.kind == TTD_KIND_EVENTS)
 *             events += batch.count;
 *     ttd_reader_close(reader);
 *     printf("%llu events\n", events);
 *
 * Threads: one thread at a time may use a reader; different readers are independent. Functions
 * without a reader may be called by any thread at any time.
 */
#ifndef TTDTRACE_READER_H
#define TTDTRACE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/batch.h>
#include <ttdtrace/io.h>
#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/**
 * A reader goes through the records of a trace in file order, in batches. Its memory is bounded by
 * a few chunks (of at most 16 MiB each), whatever the input says. It remembers the headers of the
 * first 65,536 chunks: headers of chunks that a later pass skips are not read again. One thread at
 * a time may use a reader; different readers are independent.
 */
struct ttd_reader;

/** Options; start from ttd_reader_options_default(). */
struct ttd_reader_options {
    /** sizeof of this struct, so that it can grow. */
    size_t size;
    /**
     * Kinds to return, as TTD_KIND_BITs; payloads of other kinds are not even read. Index chunks
     * are returned by ttd_reader_next_chunk() only; synthetic losses are always returned.
     */
    uint32_t kinds;
    /**
     * Go on after damage: find the next intact chunk, and return a synthetic loss for the gap. When
     * false, damage ends the reading with its status.
     */
    bool tolerant;
    /**
     * Returns events of a chunk only once the whole chunk has been decoded; each chunk is decoded
     * twice. When false, only the first chunk after damage is treated so: elsewhere events may be
     * returned from a chunk whose rest then proves damaged. The loss counts those as well.
     */
    bool whole_chunks;
    /**
     * Bytes that a tolerant reader searches for chunks, in all gaps since the last rewind, before
     * it gives up with TTD_ERROR_LIMIT (spec, "Resynchronisation").
     */
    uint64_t search_max;

    /* For speed: see <ttdtrace/advanced.h>. */

    /**
     * Number of batches of events that stay valid, the last one included: 1 to
     * TTD_EVENT_BATCHES_MAX. With more than one, another thread can use all but the oldest while
     * the next one is being read; even a call that returns no events may overwrite the oldest. See
     * ttd_reader_keep_batches().
     */
    uint32_t event_batches;
    /**
     * Leaves stacks undecoded: a batch has the stacks of a whole chunk, for ttd_stacks_open(). The
     * payload's checksum is still verified.
     */
    bool lazy_stacks;
};

/** Default of ttd_reader_options.search_max, in bytes. */
#define TTD_SEARCH_MAX (UINT64_C(256) << 20)

/** Returns the defaults: all kinds, not tolerant, one batch of events, TTD_SEARCH_MAX. */
TTD_EXPORT struct ttd_reader_options ttd_reader_options_default(void);

/**
 * Opens a trace and reads its first chunk. In a tolerant reader a damaged first chunk is not an
 * error as long as an intact chunk follows: ttd_reader_trace() then has only the trace_id, and a
 * time_unit of 0, and wall times of events are 0.
 *
 * @param input      copied; the reader closes it, also when this call fails
 * @param options    NULL for the defaults
 * @param allocator  NULL for the default; copied
 * @param reader     set on success; owned by the caller, see ttd_reader_close()
 * @param error      detail on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_NOT_A_TRACE, TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED,
 *         TTD_ERROR_UNSUPPORTED, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_ARGUMENT.
 */
TTD_EXPORT enum ttd_status ttd_reader_open(const struct ttd_input *input,
                                           const struct ttd_reader_options *options,
                                           const struct ttd_allocator *allocator,
                                           struct ttd_reader **reader, struct ttd_error *error);

/** Releases everything; NULL is allowed. */
TTD_EXPORT void ttd_reader_close(struct ttd_reader *reader);

/** Returns the properties of the trace, from its first chunk. Valid until the close. */
TTD_EXPORT const struct ttd_trace *ttd_reader_trace(const struct ttd_reader *reader);

/**
 * Reads the End chunk alone: the last 160 bytes of the file as it is now. The position of the
 * reader does not change.
 *
 * TTD_OK proves that these bytes are an intact End chunk of this trace at the end of the file: the
 * recorder closed the trace, for this reason, after so many events. It proves nothing about the
 * chunks before: they may be damaged, missing, or at odds with `end`. A verdict therefore needs a
 * reading that begins with ttd_reader_rewind_checked(), and ttd_reader_is_intact() after it. Other
 * statuses prove nothing: the file may still grow, or bytes may follow an End.
 *
 * @param end  set on TTD_OK
 * @return TTD_OK; TTD_END (the file does not end with an End chunk: it was not closed cleanly, or
 *         still grows); TTD_ERROR_CORRUPT (it does, and the chunk is damaged, or of another trace);
 *         TTD_ERROR_IO. One thread at a time may use a reader. Spec, "End".
 */
TTD_EXPORT enum ttd_status ttd_reader_end(struct ttd_reader *reader, struct ttd_end *end);

/**
 * Sets the members that tie a derived trace to this one: source_trace_id, source_size, source_hash
 * (spec, "Derived files"). A derived trace belongs to this one if it has the same three values.
 *
 * @param derived  other members are left unchanged
 * @return TTD_OK, TTD_ERROR_CORRUPT (the End chunk is damaged), TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_reader_tie(struct ttd_reader *reader, struct ttd_trace *derived);

/**
 * Returns the next batch in file order. Chunks of an unknown kind are skipped unless critical.
 *
 * @param batch  set on TTD_OK
 * @param error  detail on failure; may be NULL
 * @return TTD_OK; TTD_END at the present end of the file (call again when it has grown);
 *         TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED (a last chunk incomplete, which in a growing file
 *         may heal: call again; a tolerant reader returns it as well, once it has returned all that
 *         is intact), TTD_ERROR_LIMIT (search_max was reached: the rest was not read; a tolerant
 *         reader only), TTD_ERROR_UNSUPPORTED (a tolerant reader returns a loss of all the rest
 *         before), TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_reader_next(struct ttd_reader *reader, struct ttd_batch *batch,
                                           struct ttd_error *error);

/**
 * Returns the next chunk header without reading the payload, whose checksum is not verified. The
 * header may be remembered from an earlier pass.
 * Statuses as ttd_reader_next().
 */
TTD_EXPORT enum ttd_status ttd_reader_next_chunk(struct ttd_reader *reader, struct ttd_chunk *chunk,
                                                 struct ttd_error *error);

/**
 * Goes to the chunk of events around `position`: the next batch of events begins at or before the
 * first event whose effect position is not before `position`, in the same chunk. Uses the index in
 * O(log chunks), or without an index goes from header to header. A position before the first event
 * leads to the first chunk of events; one after the last event to the End chunk, or to the end of
 * the file if there is none.
 *
 * @return TTD_OK, TTD_ERROR_IO, TTD_ERROR_NO_MEMORY, and for damage on the way TTD_ERROR_CORRUPT
 *         when not tolerant.
 */
TTD_EXPORT enum ttd_status ttd_reader_seek(struct ttd_reader *reader, struct ttd_position position,
                                           struct ttd_error *error);

/** Goes to the chunk of events that contains event `number`. Statuses as ttd_reader_seek(). */
TTD_EXPORT enum ttd_status ttd_reader_seek_event(struct ttd_reader *reader, uint64_t number,
                                                 struct ttd_error *error);

/**
 * Goes back to the first chunk and selects the kinds to return from there on. Reads nothing.
 *
 * @param kinds  TTD_KIND_BITs, as in ttd_reader_options
 * @return TTD_OK.
 */
TTD_EXPORT enum ttd_status ttd_reader_rewind(struct ttd_reader *reader, uint32_t kinds);

/**
 * Like ttd_reader_rewind(), and checks everything from there on, as ttd_verify() does: the payloads
 * of all chunks are read and decoded, even of kinds that are not returned, and damage in them gives
 * synthetic losses. The next rewind or seek ends the checking.
 *
 * @return TTD_OK.
 */
TTD_EXPORT enum ttd_status ttd_reader_rewind_checked(struct ttd_reader *reader, uint32_t kinds);

/**
 * Returns, after the end of a reading, the loss of whatever followed the last chunk if that is not
 * an End (spec, "Damage"). A verdict counts it with the losses that were returned.
 *
 * @param loss  set on true
 * @return false if the trace was closed, or if the loss returned last includes all the rest
 */
TTD_EXPORT bool ttd_reader_rest(const struct ttd_reader *reader, struct ttd_loss *loss);

/**
 * Returns whether the last checked reading reached the end of the trace and found the trace ok, as
 * ttd_verify() does: every chunk from the first to End is present and intact.
 */
TTD_EXPORT bool ttd_reader_is_intact(const struct ttd_reader *reader);

/** Returns the offset of the reader from the start of the file, in bytes; for progress. */
TTD_EXPORT uint64_t ttd_reader_offset(const struct ttd_reader *reader);

/** Returns the input's size in bytes as last seen. */
TTD_EXPORT uint64_t ttd_reader_size(const struct ttd_reader *reader);

TTD_END_DECLS

#endif
