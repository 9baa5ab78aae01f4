/* SPDX-License-Identifier: MIT */
/**
 * Reading and writing faster. Ordinary readers and writers need none of this. It is for programs
 * that follow all blocks of long traces, and for recorders; the price is rules about how long
 * things stay valid.
 *
 * Ordinals: within a chunk, events with equal address_ordinals have equal addresses, so that an
 * address is looked up once a chunk and not once an event. ttd_batch.addresses has the address of
 * each ordinal from ttd_batch.first_ordinal on.
 *
 * Batches of events: with ttd_reader_options.event_batches above 1, batches stay valid while later
 * ones are read, so that another thread can use them meanwhile.
 *
 * Lazy stacks: with ttd_reader_options.lazy_stacks, chunks of stacks are returned as they are
 * stored (spec, "Stacks") and decoded on demand: a report shows few of the many stacks of a trace.
 * Objects that keep such chunks are independent of the reader and of each other.
 *
 * Single chunks of pages: ttd_reader_pages() reads a chunk that ttd_reader_next_chunk() has found,
 * so that looking up a page does not read all the others.
 *
 * Plain calls: ttd_writer_calls() writes a run of ordinary allocations and releases in much less
 * time than ttd_writer_event().
 *
 * Packs of references: a recorder that searches a large heap packs its findings while another
 * thread compresses and writes the earlier packs.
 *
 * Cuts: a recorder that is to keep the recent past only replaces the file that it writes by a
 * shorter one, again and again.
 *
 * Threads: one thread at a time may use an object. ttd_reader_event_batches() may be called by any
 * thread while another reads.
 */
#ifndef TTDTRACE_ADVANCED_H
#define TTDTRACE_ADVANCED_H

#include <stdint.h>

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

TTD_BEGIN_DECLS

/** The largest value of ttd_reader_options.event_batches. Each batch takes about 16 kB. */
#define TTD_EVENT_BATCHES_MAX 1024u

/** Returns the ttd_reader_options.event_batches that the reader was opened with. */
TTD_EXPORT uint32_t ttd_reader_event_batches(const struct ttd_reader *reader);

/**
 * Reads one chunk of pages. Afterwards the reader stands before the first chunk, as after
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
 * @param batch      from a reader with lazy_stacks; need not outlive the call
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
 * Looks up a stack. Decodes those before it in the chunk as well, unless that was done already.
 *
 * @param stack  set on TTD_OK
 * @param error  detail on TTD_ERROR_CORRUPT and TTD_ERROR_NO_MEMORY; may be NULL
 * @return TTD_OK; TTD_END (not a stack of this chunk); TTD_ERROR_CORRUPT (the chunk is damaged at
 *         the stack, before it, or up to 127 stacks behind it; stacks before the damage are still
 *         available); TTD_ERROR_NO_MEMORY (the call may be repeated).
 */
TTD_EXPORT enum ttd_status ttd_stacks_get(struct ttd_stacks *stacks, ttd_id id,
                                          struct ttd_stack *stack, struct ttd_error *error);

/** A call that allocated a block of `size` bytes, or freed a block: see ttd_writer_calls(). */
struct ttd_call {
    /** Address of the block; not 0. */
    uint64_t address;
    /** Size requested, or given to a sized release; 0 for any other release. */
    uint64_t size;
    /** TTD_NONE if it is not known. */
    ttd_id stack;
    /** TTD_ACTION_ALLOC or TTD_ACTION_FREE. */
    uint8_t action;
    /** The function that was called (enum ttd_api). */
    uint8_t api;
    /** 1: the size of an allocation, or the address freed. 2: the address freed and the size. */
    uint8_t parameter_count;
};

/** Calls of one thread, one right after the other. */
struct ttd_calls {
    const struct ttd_call *calls;
    size_t count;
    ttd_id thread;
    ttd_id heap;
    /** Wall time of every call of the run: see ttd_event. */
    uint64_t wall_time;
    /** Position where the first call begins. Each call ends one step later, and the next one begins
     * one step after that. */
    struct ttd_position start;
};

/**
 * Appends the events of plain calls, each as ttd_writer_event() would: with the result 1, the
 * parameters that the call names, and no other property.
 *
 * @param written  always set, to the number of events appended
 * @return TTD_OK if all were appended; otherwise the status of ttd_writer_event() for the next one:
 *         TTD_ERROR_ARGUMENT (also if the call is not a plain one), TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, TTD_ERROR_MISUSE.
 */
TTD_EXPORT enum ttd_status ttd_writer_calls(struct ttd_writer *writer,
                                            const struct ttd_calls *calls, size_t *written);

/**
 * References of one snapshot, as a chunk has them: a quarter of an array's size. A pack is used by
 * one thread at a time, so that one thread can fill a pack while another writes packs that were
 * handed over to it.
 */
struct ttd_reference_pack;

/** The most references of a pack. */
#define TTD_REFERENCE_PACK_MAX 65536u

/**
 * Makes an empty pack.
 *
 * @param allocator  NULL for the default; copied
 * @param pack       set on success; owned by the caller, see ttd_reference_pack_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT.
 */
TTD_EXPORT enum ttd_status ttd_reference_pack_create(const struct ttd_allocator *allocator,
                                                     struct ttd_reference_pack **pack);

/** Releases everything; NULL is allowed. */
TTD_EXPORT void ttd_reference_pack_free(struct ttd_reference_pack *pack);

/** Returns the number of references in a pack. */
TTD_EXPORT size_t ttd_reference_pack_count(const struct ttd_reference_pack *pack);

/**
 * Adds references. All references of a pack are of one snapshot, sorted by region and offset.
 *
 * @param references  copied; an empty list adds nothing
 * @return TTD_OK; otherwise none was added: TTD_ERROR_ARGUMENT (snapshot 0 or another one, their
 *         order, or a value of 0), TTD_ERROR_LIMIT (more than TTD_REFERENCE_PACK_MAX in all),
 *         TTD_ERROR_NO_MEMORY (the pack can only be freed from then on).
 */
TTD_EXPORT enum ttd_status ttd_reference_pack_add(struct ttd_reference_pack *pack,
                                                  const struct ttd_references *references);

/**
 * Writes the references of a pack as ttd_writer_references() would, in one chunk (spec, "Packed
 * references"), and empties the pack.
 *
 * @param pack  kept by the caller, who can fill it again
 * @return as ttd_writer_references(). On TTD_ERROR_ARGUMENT and TTD_ERROR_MISUSE the pack keeps its
 *         references, and the caller can only free it.
 */
TTD_EXPORT enum ttd_status ttd_writer_reference_pack(struct ttd_writer *writer,
                                                     struct ttd_reference_pack *pack);

/**
 * A cut through the trace that a writer is writing. Of the events before it only those remain that
 * ttd_cut_event() is given: the calls of the blocks that are live at the cut.
 */
struct ttd_cut;

/**
 * Flushes the writer, and begins a cut behind all that was written.
 *
 * @param writer  of a trace without live blocks that name events by their number; must outlive the
 *                cut
 * @param cut     set on success; owned by the caller until ttd_cut_apply() or ttd_cut_close()
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE.
 */
TTD_EXPORT enum ttd_status ttd_cut_open(struct ttd_writer *writer, struct ttd_cut **cut);

/**
 * Keeps an event from before the cut, with its positions; in the order of the effect positions. Its
 * memory is some bytes for each event.
 *
 * @return TTD_OK, and else as ttd_writer_event().
 */
TTD_EXPORT enum ttd_status ttd_cut_event(struct ttd_cut *cut, const struct ttd_event *event);

/**
 * Writes the trace anew: definitions, metadata, pages and losses from before the cut, a loss of all
 * events that are left out by this cut and the earlier ones, the events that were kept, and all
 * from behind the cut. The writer continues there, as if nothing else had ever been written. The
 * cut is closed in any case. A failure leaves the writer and its output as they were.
 *
 * @param input     has all that the writer has written; flush it before. Not closed
 * @param output    closed on failure; on success the writer takes it over, and closes the old one
 * @param reason    of the loss
 * @param left_out  set on TTD_OK: events that are left out by this cut and the earlier ones
 * @param error     detail on failure; may be NULL
 * @return TTD_OK; TTD_ERROR_TRUNCATED, TTD_ERROR_CORRUPT (the input has something else);
 *         TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE (the writer has failed).
 */
TTD_EXPORT enum ttd_status ttd_cut_apply(struct ttd_cut *cut, const struct ttd_input *input,
                                         const struct ttd_output *output,
                                         enum ttd_loss_reason reason, uint64_t *left_out,
                                         struct ttd_error *error);

/** Releases a cut that is not applied; NULL is allowed. */
TTD_EXPORT void ttd_cut_close(struct ttd_cut *cut);

TTD_END_DECLS

#endif
