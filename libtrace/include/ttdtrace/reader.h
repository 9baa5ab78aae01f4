/* SPDX-License-Identifier: MIT */
/**
 * Reading a trace (spec, "Reading").
 *
 * Threads: one thread at a time may use a reader; different readers are independent. What has no
 * reader may be called by any thread at any time.
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
 * A reader goes through the records of a trace in file order, in batches. Its memory is bounded
 * by a few chunks (of at most 16 MiB each), whatever the input says. One thread at a time may use
 * a reader; different readers are independent.
 */
struct ttd_reader;

/** Options; start from ttd_reader_options_default(). */
struct ttd_reader_options {
    /** sizeof of this struct, so that it can grow. */
    size_t size;
    /**
     * Which kinds to return, as TTD_KIND_BITs; payloads of others are not even read. Index chunks
     * are returned by ttd_reader_next_chunk() only; synthetic losses always are.
     */
    uint32_t kinds;
    /**
     * Go on after damage: find the next intact chunk, and return a synthetic loss for the gap. When
     * false, damage ends the reading with its status.
     */
    bool tolerant;
    /**
     * Events are returned only of chunks all of which is good: each chunk of events is decoded
     * twice. When false, that is so only for the first one after damage; elsewhere events may be
     * returned of a chunk the rest of which then turns out damaged. The loss counts those, too.
     */
    bool whole_chunks;
    /**
     * A tolerant reader gives up when it has searched so many bytes for chunks, in all gaps since
     * the last rewind (spec, "Resynchronisation"): TTD_ERROR_LIMIT.
     */
    uint64_t search_max;

    /* For speed: see <ttdtrace/advanced.h>. */

    /**
     * How many batches of events stay valid, the last one included: 1 to TTD_EVENT_BATCHES_MAX.
     * With more than one, another thread can use all but the oldest while the next is being read;
     * also the oldest may be overwritten by a call that then returns no events.
     */
    uint32_t event_batches;
    /**
     * Stacks are not decoded: a batch has those of a whole chunk, for ttd_stacks_open(). The
     * payload's checksum is verified all the same.
     */
    bool lazy_stacks;
};

#define TTD_SEARCH_MAX (UINT64_C(256) << 20)

/** All kinds, not tolerant, one batch of events, a search_max of TTD_SEARCH_MAX. */
TTD_EXPORT struct ttd_reader_options ttd_reader_options_default(void);

/**
 * Opens a trace and reads its first chunk. In a tolerant reader a damaged first chunk is not an
 * error as long as an intact chunk follows: ttd_reader_trace() then has only the trace_id,
 * and a time_unit of 0: wall times of events are not known, and 0.
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
 * Reads the End chunk by itself, without any chunk before it: the last 160 bytes of the file as it
 * is now. The position of the reader does not change.
 *
 * TTD_OK proves that these bytes are an intact End chunk of this trace, where the file ends: that
 * the recorder closed it, why it ended, and how many events it had written. It proves nothing of
 * the chunks before: they may be damaged or missing, and `end` may disagree with them. A verdict
 * therefore rests on a reading that begins with ttd_reader_rewind_checked(), and on
 * ttd_reader_is_intact(). Other statuses prove nothing either: the file may still grow, or bytes
 * may follow an End.
 *
 * @param end  set on TTD_OK
 * @return TTD_OK; TTD_END (the file does not end with an End chunk: it was not closed cleanly, or
 *         still grows); TTD_ERROR_CORRUPT (it does, and the chunk is damaged, or of another trace);
 *         TTD_ERROR_IO. One thread at a time may use a reader. Spec, "End".
 */
TTD_EXPORT enum ttd_status ttd_reader_end(struct ttd_reader *reader, struct ttd_end *end);

/**
 * Fills in what ties a derived trace to this one: source_trace_id, source_size, source_hash (spec,
 * "Derived files"). A derived trace belongs to this one if its three members are the same.
 *
 * @param derived  its other members are untouched
 * @return TTD_OK, TTD_ERROR_CORRUPT (the End chunk is damaged), TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_reader_tie(struct ttd_reader *reader, struct ttd_trace *derived);

/**
 * The next batch, in file order. Chunks of unknown kind are skipped unless critical.
 *
 * @param batch  set on TTD_OK
 * @param error  detail on failure; may be NULL
 * @return TTD_OK; TTD_END at the end of what is there (call again when the file has grown);
 *         TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED (a last chunk incomplete, which in a growing file
 *         may heal: call again; a tolerant reader returns it as well, once it has returned all that
 *         is intact), TTD_ERROR_LIMIT (search_max was reached: the rest was not read; a tolerant
 *         reader only), TTD_ERROR_UNSUPPORTED (a tolerant reader returns a loss of all the rest
 *         before), TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_reader_next(struct ttd_reader *reader, struct ttd_batch *batch,
                                           struct ttd_error *error);

/**
 * The next chunk header only, without its payload; the payload's checksum is not verified.
 * Statuses as ttd_reader_next().
 */
TTD_EXPORT enum ttd_status ttd_reader_next_chunk(struct ttd_reader *reader, struct ttd_chunk *chunk,
                                                 struct ttd_error *error);

/**
 * Goes to the chunk of events in which `position` lies: the next batch of events begins at or
 * before the first event whose effect position is not before `position`, in the same chunk. Uses
 * the index in O(log chunks), or without one hops from header to header. A position before the
 * first event gives the first chunk of events, one after the last event the End chunk, or the end
 * of the file if it has none.
 *
 * @return TTD_OK, TTD_ERROR_IO, TTD_ERROR_NO_MEMORY, and for damage on the way TTD_ERROR_CORRUPT
 *         when not tolerant.
 */
TTD_EXPORT enum ttd_status ttd_reader_seek(struct ttd_reader *reader, struct ttd_position position,
                                           struct ttd_error *error);

/** Goes to the chunk of events that has event `number`. Statuses as ttd_reader_seek(). */
TTD_EXPORT enum ttd_status ttd_reader_seek_event(struct ttd_reader *reader, uint64_t number,
                                                 struct ttd_error *error);

/**
 * Goes back to the first chunk, and sets which kinds are returned from there on. Reads nothing.
 *
 * @param kinds  TTD_KIND_BITs, as in ttd_reader_options
 * @return TTD_OK.
 */
TTD_EXPORT enum ttd_status ttd_reader_rewind(struct ttd_reader *reader, uint32_t kinds);

/**
 * The same, and from there on everything is checked, as ttd_verify() does: the payloads of all
 * chunks are read and decoded, also of kinds that are not returned, and synthetic losses are
 * returned for damage in them. The next rewind or seek ends that.
 *
 * @return TTD_OK.
 */
TTD_EXPORT enum ttd_status ttd_reader_rewind_checked(struct ttd_reader *reader, uint32_t kinds);

/**
 * After the end of a reading: what may have come after the last chunk, if that is not an End (spec,
 * "Damage"). Whoever gives a verdict adds it to the losses that were returned.
 *
 * @param loss  set on true
 * @return false if the trace was closed, or if the loss returned last is of all the rest
 */
TTD_EXPORT bool ttd_reader_rest(const struct ttd_reader *reader, struct ttd_loss *loss);

/**
 * Whether the last reading that was checked came to the end of the trace and found what
 * ttd_verify() calls ok: all chunks from the first to End are there, and nothing is wrong with
 * them.
 */
TTD_EXPORT bool ttd_reader_is_intact(const struct ttd_reader *reader);

/** Returns the bytes from the start of the file to where the reader is; for progress. */
TTD_EXPORT uint64_t ttd_reader_offset(const struct ttd_reader *reader);

/** Returns the input's size in bytes as last seen. */
TTD_EXPORT uint64_t ttd_reader_size(const struct ttd_reader *reader);

TTD_END_DECLS

#endif
