/* SPDX-License-Identifier: MIT */
/**
 * Reading faster. An ordinary reader needs none of this: whoever follows all blocks of long traces
 * does, and pays with rules about what stays valid for how long.
 *
 * Ordinals: within a chunk, events with equal address_ordinals have equal addresses, so that an
 * address is looked up once a chunk and not once an event. ttd_batch.addresses has the address of
 * each ordinal from ttd_batch.first_ordinal on.
 *
 * Batches of events: with ttd_reader_options.event_batches above 1, batches stay valid while later
 * ones are read, so that another thread can use them meanwhile.
 *
 * Lazy stacks: with ttd_reader_options.lazy_stacks, chunks of stacks are returned as they are
 * stored (spec, "Stacks") and decoded as far as they are asked for: a trace has many stacks, of
 * which a report shows few. Objects that keep such chunks are independent of the reader and of each
 * other.
 *
 * Single chunks of pages: ttd_reader_pages() reads one where ttd_reader_next_chunk() has found it,
 * so that a page is looked up without reading all others.
 *
 * Threads: one thread at a time may use an object. ttd_reader_event_batches() may be called by any
 * thread while another reads.
 */
#ifndef TTDTRACE_ADVANCED_H
#define TTDTRACE_ADVANCED_H

#include <stdint.h>

#include <ttdtrace/reader.h>

TTD_BEGIN_DECLS

/** The largest value of ttd_reader_options.event_batches. Each batch takes about 16 kB. */
#define TTD_EVENT_BATCHES_MAX 1024u

/** Returns ttd_reader_options.event_batches, which the reader was opened with. */
TTD_EXPORT uint32_t ttd_reader_event_batches(const struct ttd_reader *reader);

/**
 * Reads a chunk of pages by itself. The reader is before the first chunk then, as by
 * ttd_reader_rewind().
 *
 * @param chunk  of kind TTD_KIND_PAGES, from ttd_reader_next_chunk() of a reader of this trace
 * @param pages  set on TTD_OK; valid until the next call on the reader
 * @return TTD_OK; TTD_ERROR_ARGUMENT (another kind); TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED or
 *         TTD_ERROR_UNSUPPORTED, also of a tolerant reader; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_reader_pages(struct ttd_reader *reader,
                                            const struct ttd_chunk *chunk, struct ttd_pages *pages,
                                            struct ttd_error *error);

struct ttd_stacks;

/**
 * Keeps the stacks of a batch.
 *
 * @param batch      of a reader with lazy_stacks; what is needed of it is copied
 * @param allocator  NULL for the default; copied
 * @param stacks     set on success; owned by the caller, see ttd_stacks_close()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT (no stored stacks of that reader).
 */
TTD_EXPORT enum ttd_status ttd_stacks_open(const struct ttd_batch *batch,
                                           const struct ttd_allocator *allocator,
                                           struct ttd_stacks **stacks);

/** Releases everything; NULL is allowed. */
TTD_EXPORT void ttd_stacks_close(struct ttd_stacks *stacks);

/**
 * Looks up a stack. All that come before it in the chunk are decoded, too, if they are not yet.
 *
 * @param stack  set on TTD_OK
 * @param error  detail on TTD_ERROR_CORRUPT and TTD_ERROR_NO_MEMORY; may be NULL
 * @return TTD_OK; TTD_END (not one of this chunk); TTD_ERROR_CORRUPT (the chunk is damaged there or
 *         before, or at most 127 stacks behind; stacks from before can still be had);
 *         TTD_ERROR_NO_MEMORY (may be asked again).
 */
TTD_EXPORT enum ttd_status ttd_stacks_get(struct ttd_stacks *stacks, ttd_id id,
                                          struct ttd_stack *stack, struct ttd_error *error);

TTD_END_DECLS

#endif
