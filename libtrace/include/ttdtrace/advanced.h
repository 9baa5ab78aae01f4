/* SPDX-License-Identifier: MIT */
/**
 * Reading and writing faster. Ordinary readers and writers need none of this. It is for programs
 * that follow all blocks of long traces, and for recorders; the price is rules about how long
 * things stay valid.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     struct ttd_reader_options options = ttd_reader_options_default();
 *     options.lazy_stacks = true;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, &options, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         if (batch.kind == TTD_KIND_EVENTS)
 *             printf("%zu events, %zu different addresses\n", batch.count, batch.address_count);
 *     ttd_reader_close(reader);
 *
 * Ordinals: within a chunk, events with equal address_ordinals have equal addresses, so that an
 * address is looked up once a chunk and not once an event. ttd_batch.addresses has the address of
 * each ordinal from ttd_batch.first_ordinal on.
 *
 * Batches of events: with ttd_reader_options.event_batches above 1, batches stay valid while later
 * ones are read, so that another thread can use them meanwhile; see ttd_reader_keep_batches().
 *
 * Lazy stacks: with ttd_reader_options.lazy_stacks, chunks of stacks are returned as they are
 * stored (spec, "Stacks") and decoded on demand: a report shows few of the many stacks of a trace.
 * Objects that keep such chunks are independent of the reader and of each other.
 *
 * Single chunks of pages: ttd_reader_pages() reads a chunk that ttd_reader_next_chunk() has found,
 * so that looking up a page does not read all the others.
 *
 * Nets: a program that wants to know which blocks are live, and needs no single call, lets a netter
 * sum up each chunk of events by address. Chunks are independent of each other, so several threads
 * can net, each with a netter of its own, in any order; see ttd_reader_rewind_unread().
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
 * thread while another reads; and netters of a reader may be used while the reader is.
 */
#ifndef TTDTRACE_ADVANCED_H
#define TTDTRACE_ADVANCED_H

#include <stdint.h>

#include <ttdtrace/heap_state.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

TTD_BEGIN_DECLS

/** The largest value of ttd_reader_options.event_batches. Each batch takes about 16 kB. */
#define TTD_EVENT_BATCHES_MAX 1024u

/** Returns the ttd_reader_options.event_batches that the reader was opened with, whatever
 * ttd_reader_keep_batches() has set since. */
TTD_EXPORT uint32_t ttd_reader_event_batches(const struct ttd_reader *reader);

/**
 * Changes how many batches of events stay valid. With fewer, the memory that they take turns in
 * stays in the processor's cache, and they are decoded in less time. The batches that are valid
 * when this is called may be overwritten by the next call on the reader.
 *
 * @param count  from 1 to ttd_reader_event_batches(), the number that a reader begins with
 * @return TTD_OK; TTD_ERROR_ARGUMENT (any other number), and nothing has changed.
 */
TTD_EXPORT enum ttd_status ttd_reader_keep_batches(struct ttd_reader *reader, uint32_t count);

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

/**
 * Starts over as ttd_reader_rewind_checked() does, but leaves chunks of events unread: each is
 * returned as a batch of kind TTD_KIND_EVENTS with its `chunk`, without events.
 *
 * With ttd_reader_options.whole_chunks the reader decodes and checks each chunk before, as if its
 * events were asked for: for programs that count events, and look at none.
 *
 * Otherwise the reader takes them for intact. So ttd_reader_is_intact() means nothing unless
 * ttd_netter_net() returns TTD_OK for each of these chunks, with the ids that ttd_reader_defined()
 * gives when it is returned. A record of a heap's parent behind a chunk of events counts as a
 * problem of the file, because the chunk may have used the heap.
 *
 * @param kinds  as for ttd_reader_rewind(), with TTD_KIND_EVENTS
 * @return TTD_OK.
 */
TTD_EXPORT enum ttd_status ttd_reader_rewind_unread(struct ttd_reader *reader, uint32_t kinds);

/** The largest ids that a trace has defined up to some chunk; UINT32_MAX if they cannot be checked,
 * because definitions are missing. */
struct ttd_defined {
    ttd_id stacks;
    ttd_id threads;
    ttd_id heaps;
};

/** Returns the ids that were defined in the chunks so far. The reading must be one that checks. */
TTD_EXPORT struct ttd_defined ttd_reader_defined(const struct ttd_reader *reader);

enum ttd_net_state {
    /** No block begins at the address. */
    TTD_NET_FREE = 0,
    TTD_NET_LIVE = 1
};

/** The net effect of a chunk's events at an address. */
struct ttd_net {
    uint64_t address;
    /** Bytes of the block that was acquired last; undefined if none was. */
    uint64_t size;
    /** The first and the last event that acquired or released a block at the address, counted from
     * the first event in the chunk. */
    uint32_t first;
    uint32_t last;
    /** Call site of the block that was acquired last: a number within the chunk. */
    uint32_t shape;
    /** The heap of all these events: a place in ttd_netted.heaps. */
    uint8_t heap;
    /** Whether the first event released a block, which was live before the chunk; and, with sums,
     * whether that event is a Free. */
    bool was_live;
    bool was_freed;
    /** After the chunk: an enum ttd_net_state. */
    uint8_t state;
};

/** An event that the wall time changes with. */
struct ttd_net_time {
    /** Its number in the chunk. */
    uint32_t index;
    /** Position of the event's effect. */
    struct ttd_position position;
    uint64_t wall_time;
};

/** A block that a ReAlloc acquires after the effect of the chunk's last event. Events behind the
 * chunk may come before it. */
struct ttd_net_pending {
    uint64_t address;
    /** When it is acquired. */
    struct ttd_position position;
};

/** No event of a chunk. */
#define TTD_NET_NO_EVENT UINT32_MAX

/** The events of a chunk that destroy a heap: their number in the chunk, and the position of the
 * first one; TTD_NET_NO_EVENT and 0:0 if there are none. */
struct ttd_net_destruction {
    uint32_t first;
    uint32_t last;
    /** One of them is a call of no known thread. */
    bool is_of_nobody;
    /** The position of the first event. */
    struct ttd_position position;
};

/** The largest number of heaps that acquire or release blocks in a chunk with nets. */
#define TTD_NET_HEAPS_MAX 16u

/** Options of the sums over a chunk. */
struct ttd_net_sum_options {
    /** A block is temporary if a Free of its thread ends it after at most so many other calls of
     * the thread; and it ends soon likewise. */
    uint64_t temporary;
    uint64_t soon;
    /** The lifetimes are wanted. */
    bool has_lifetimes;
};

struct ttd_net_amount {
    uint64_t blocks;
    uint64_t bytes;
};

/** Classes of numbers: the class of a number is the count of its binary digits. */
#define TTD_NET_CLASSES 65u

/** Blocks that a chunk acquires and releases, by the class of their lifetime: in nanoseconds, and
 * in events from the one that acquires to the one that releases. */
struct ttd_net_lifetimes {
    struct ttd_net_amount by_time[TTD_NET_CLASSES];
    struct ttd_net_amount by_events[TTD_NET_CLASSES];
};

/** The sums over the calls of a site. */
struct ttd_net_site_sums {
    struct ttd_net_amount allocated;
    /** The temporary blocks, and the blocks that end soon. They are acquired and released in the
     * chunk, and are not reallocated from another block. */
    struct ttd_net_amount temporary;
    struct ttd_net_amount soon;
    /** The sum of size times lifetime in nanoseconds, over all blocks that the chunk acquires and
     * releases. */
    uint64_t byte_time_high;
    uint64_t byte_time_low;
};

struct ttd_net_thread {
    ttd_id id;
    /** Number of its calls in the chunk. */
    uint32_t calls;
};

/** Sums over the calls of a chunk; valid until the next call on the netter. */
struct ttd_net_sums {
    /** Else the sums do not say all: the events must be read. */
    bool is_exact;
    /** By number of a site, from 1 on. */
    const struct ttd_net_site_sums *sites;
    uint32_t site_count;
    const struct ttd_net_thread *threads;
    size_t thread_count;
    const struct ttd_net_lifetimes *lifetimes;
};

/** The net effects of a chunk's events. */
struct ttd_netted {
    /** One for each address, in order of `first`; valid until the next call on the netter. */
    const struct ttd_net *nets;
    size_t count;
    /**
     * The nets say all that the events do: at each address, these concern one heap, and releases
     * and acquisitions alternate; there are at most TTD_NET_HEAPS_MAX heaps. Else, or where that is
     * not found out in a short time, the nets are undefined, and the events must be read.
     */
    bool is_plain;
    /** The heaps whose blocks events acquire or release, or that they destroy. */
    ttd_id heaps[TTD_NET_HEAPS_MAX];
    /**
     * By heap. A net leaves a block only if `last` is behind the last destruction. Its `was_live`
     * says something of the state before the chunk if `first` is before the first destruction; and
     * if it is behind the last one, that a block is released which does not exist. Else it is
     * false.
     */
    struct ttd_net_destruction destructions[TTD_NET_HEAPS_MAX];
    size_t heap_count;
    /** Blocks that the nets leave, and that are acquired behind the chunk; valid as long as the
     * nets. Where the following chunks change such an address earlier, events must be read. */
    const struct ttd_net_pending *pending;
    size_t pending_count;
    /** Position of the last acquisition or release; 0:0 if there is none. */
    struct ttd_position last_effect;
    /** Number of events by ttd_action, of failed calls, and of calls that never returned. */
    uint64_t actions[TTD_ACTION_DESTROY + 1];
    uint64_t failed;
    uint64_t unfinished;
    /** The first event of the chunk, and each that may have another wall time than the one before;
     * valid until the next call on the netter, also where the nets are not. */
    const struct ttd_net_time *times;
    size_t time_count;
    /** After ttd_netter_sum(), if the chunk is plain. */
    struct ttd_net_sums sums;
};

/** A call site of a chunk. */
struct ttd_net_site {
    ttd_id stack;
    ttd_id heap;
    /** Its blocks are new: it is no ReAlloc that makes them of other ones. */
    bool is_new;
};

/** When an event of a chunk was. */
struct ttd_net_moment {
    /** A place in ttd_net_sums.threads. */
    uint32_t thread;
    /** Number of the thread's calls in the chunk up to this one. */
    uint32_t calls;
    uint64_t wall_time;
};

/** A block that a net leaves. */
struct ttd_net_block {
    struct ttd_block block;
    /** The ttd_action of the call that acquired it. */
    uint8_t action;
};

/** Nets chunks of events: sums up the events of one chunk at a time by address. */
struct ttd_netter;

/**
 * Opens a netter of the trace that a reader reads. It reads by itself, and leaves the reader where
 * it is. No other thread may use the reader meanwhile.
 *
 * @param reader  must outlive the netter. With an input of the caller's own, a netter may be used
 *                beside other threads only if `read_at` and `size` may be; those of
 *                ttd_input_file() and ttd_input_memory() may. The same holds for the allocator
 * @param netter  set on success; owned by the caller, see ttd_netter_close()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT.
 */
TTD_EXPORT enum ttd_status ttd_netter_open(const struct ttd_reader *reader,
                                           struct ttd_netter **netter);

/** Releases everything; NULL is allowed. */
TTD_EXPORT void ttd_netter_close(struct ttd_netter *netter);

/**
 * Reads, checks and nets one chunk. All is checked that a reader checks in a chunk of events.
 *
 * @param chunk    of kind TTD_KIND_EVENTS, from a reader of this trace
 * @param defined  the ids that events of the chunk may have; NULL for all
 * @param netted   set on TTD_OK
 * @param error    detail on failure; may be NULL
 * @return TTD_OK; TTD_ERROR_ARGUMENT (another kind); TTD_ERROR_CORRUPT (also if the chunk is not
 *         the one that the reader found, or refers to an undefined id), TTD_ERROR_TRUNCATED,
 *         TTD_ERROR_UNSUPPORTED, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_netter_net(struct ttd_netter *netter, const struct ttd_chunk *chunk,
                                          const struct ttd_defined *defined,
                                          struct ttd_netted *netted, struct ttd_error *error);

/**
 * Adds up the calls of the chunks that are netted from now on: see ttd_netted.sums.
 *
 * @param options  copied
 */
TTD_EXPORT void ttd_netter_sum(struct ttd_netter *netter,
                               const struct ttd_net_sum_options *options);

/**
 * Describes a call site of the last chunk.
 *
 * @param number  from 1 to ttd_net_sums.site_count
 * @param site    set
 */
TTD_EXPORT void ttd_netter_site(const struct ttd_netter *netter, uint32_t number,
                                struct ttd_net_site *site);

/**
 * Describes when an event of the last chunk was, which has sums.
 *
 * @param index   its number in the chunk
 * @param moment  set
 */
TTD_EXPORT void ttd_netter_moment(const struct ttd_netter *netter, uint32_t index,
                                  struct ttd_net_moment *moment);

/**
 * Describes the block that a net leaves.
 *
 * @param net    of the last chunk, which is plain; its state is TTD_NET_LIVE
 * @param block  set
 */
TTD_EXPORT void ttd_netter_block(const struct ttd_netter *netter, const struct ttd_net *net,
                                 struct ttd_net_block *block);

/**
 * Finds the first event of a chunk that acquires or releases a block at an address.
 *
 * @param netter    its last chunk is plain
 * @param position  set to the start of the event's call if there is one
 * @return whether there is such an event
 */
TTD_EXPORT bool ttd_netter_find(const struct ttd_netter *netter, uint64_t address,
                                struct ttd_position *position);

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
