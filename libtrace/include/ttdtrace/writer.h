/* SPDX-License-Identifier: MIT */
/**
 * Writing a trace (spec, "Chunks").
 *
 * A trace is a file with all calls that allocate and release memory in one process. A program that
 * knows such calls, such as an allocator, writes them itself; <ttdtrace/names.h> adds stacks with
 * names.
 *
 *     struct ttd_trace trace = {.trace_id = 4711, .time_unit = 1, .pointer_size = sizeof(void *)};
 *     struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1};
 *     struct ttd_event event = {.action = TTD_ACTION_ALLOC, .api = TTD_API_MALLOC, .result = 1};
 *     struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
 *     struct ttd_output output;
 *     struct ttd_writer *writer;
 *     if (ttd_output_file("made.bin", NULL, &output, NULL) != TTD_OK ||
 *         ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL) != TTD_OK ||
 *         ttd_writer_thread(writer, &thread, &event.thread) != TTD_OK)
 *         return 1;
 *     event.address = 0x602010;
 *     event.size = 24;
 *     event.time_start = (struct ttd_position){1, 0};
 *     event.time_end = (struct ttd_position){1, 1};
 *     if (ttd_writer_event(writer, &event) != TTD_OK ||
 *         ttd_writer_close(writer, &end, NULL) != TTD_OK)
 *         return 1;
 *     printf("made.bin has an event\n");
 *
 * Threads: one thread at a time may use a writer; different writers are independent. Functions
 * without a writer may be called by any thread at any time.
 */
#ifndef TTDTRACE_WRITER_H
#define TTDTRACE_WRITER_H

#include <stddef.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/io.h>
#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/**
 * A streaming writer. It appends whole chunks and never seeks, so the output may be a pipe, and
 * every chunk that was written survives a crash. Its memory does not grow with the trace, except
 * for some bytes per 1024 chunks (index).
 *
 * After a failure of the allocator or of the output, every further call returns TTD_ERROR_MISUSE,
 * and ttd_writer_close() only releases memory. A call that returns TTD_ERROR_ARGUMENT has no
 * effect.
 */
struct ttd_writer;

/** Options; start from ttd_writer_options_default(). */
struct ttd_writer_options {
    /** sizeof of this struct, so that it can grow. */
    size_t size;
    /** TTD_CODEC_LZ4 or TTD_CODEC_RAW. */
    enum ttd_codec codec;
    /** LZ4 level: 0 is fast; 3 to 12 (LZ4HC) take more time for smaller files. */
    int level;
    /** Events per chunk, 1 to 65536. */
    uint32_t events_per_chunk;
};

/** Returns the defaults: LZ4, level 0, 65536 events per chunk. */
TTD_EXPORT struct ttd_writer_options ttd_writer_options_default(void);

/**
 * Begins a trace: writes its first chunk.
 *
 * @param output     copied; the writer closes it, also when this call fails
 * @param trace      copied; trace_id and time_unit must not be 0, pointer_size must be 4 or 8;
 * other members may be 0
 * @param options    NULL for the defaults
 * @param allocator  NULL for the default; copied
 * @param writer     set on success; owned by the caller, see ttd_writer_close()
 * @param error      detail on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_writer_open(const struct ttd_output *output,
                                           const struct ttd_trace *trace,
                                           const struct ttd_writer_options *options,
                                           const struct ttd_allocator *allocator,
                                           struct ttd_writer **writer, struct ttd_error *error);

/*
 * Definitions (spec, "Definitions"). Each must precede its first use. They are copied; the writer
 * does not look for duplicates. All return TTD_OK, TTD_ERROR_ARGUMENT (such as an id not yet
 * defined), TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE. On TTD_OK `*id`
 * is the new identifier.
 */

/** Defines a string of at most 65536 bytes. */
TTD_EXPORT enum ttd_status ttd_writer_string(struct ttd_writer *writer, const char *data,
                                             size_t size, ttd_id *id);

/** Defines a stack: `offset` in `module`, called from `parent`. */
TTD_EXPORT enum ttd_status ttd_writer_stack(struct ttd_writer *writer, ttd_id parent, ttd_id module,
                                            uint64_t offset, ttd_id *id);

/**
 * Records a module's load (`module->id` is ignored and the new id returned) or unload (`*id` is
 * module->id; `id` may be NULL).
 */
TTD_EXPORT enum ttd_status ttd_writer_module(struct ttd_writer *writer,
                                             const struct ttd_module *module, ttd_id *id);

/** Records a thread's begin or end; ids as for modules. */
TTD_EXPORT enum ttd_status ttd_writer_thread(struct ttd_writer *writer,
                                             const struct ttd_thread *thread, ttd_id *id);

/** Defines a heap; heap->id is ignored. */
TTD_EXPORT enum ttd_status ttd_writer_heap(struct ttd_writer *writer, const struct ttd_heap *heap,
                                           ttd_id *id);

/**
 * Sets the parent of a heap: the heap in whose blocks its own blocks lie. Call it right after
 * defining the heap: no heap with its id or a larger one may have a parent or an event yet.
 */
TTD_EXPORT enum ttd_status ttd_writer_heap_parent(struct ttd_writer *writer,
                                                  const struct ttd_heap_parent *parent);

/** Writes the names of an address of a module. */
TTD_EXPORT enum ttd_status ttd_writer_symbol(struct ttd_writer *writer,
                                             const struct ttd_symbol *symbol);

/*
 * Records (spec, "Records"). They are copied before the call returns. All return TTD_OK,
 * TTD_ERROR_ARGUMENT, TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE.
 */

/**
 * Appends an event. `event->number` is ignored. Effect positions (see ttd_event) must not decrease,
 * identifiers must be defined, and properties that the action does not have must be 0.
 */
TTD_EXPORT enum ttd_status ttd_writer_event(struct ttd_writer *writer,
                                            const struct ttd_event *event);

/**
 * Records that events are missing between last_good (must be valid) and first_good (must be invalid
 * or not before last_good). The End chunk has the sum of their counts.
 */
TTD_EXPORT enum ttd_status ttd_writer_loss(struct ttd_writer *writer, const struct ttd_loss *loss);

/**
 * Writes an event of a client; flags are 0 or TTD_USER_EVENT_KEYFRAME. A mark, which names its
 * position, is an event of the client TTD_CLIENT_MARKS: memcpy() these 16 bytes to `event->client`;
 * `event->data` is its text in UTF-8, without a NUL.
 */
TTD_EXPORT enum ttd_status ttd_writer_user_event(struct ttd_writer *writer,
                                                 const struct ttd_user_event *event);

/**
 * Writes part of a list of blocks, sorted by address, at most 65536 blocks at a time. The next call
 * continues the list if this part was not `last` and list_id is the same; otherwise it begins
 * another list, with a larger list_id.
 */
TTD_EXPORT enum ttd_status ttd_writer_live_blocks(struct ttd_writer *writer,
                                                  const struct ttd_live_blocks *blocks);

/** Writes pages. pages->first_page is ignored; sets `*first_page` to the id of the first one. */
TTD_EXPORT enum ttd_status ttd_writer_pages(struct ttd_writer *writer,
                                            const struct ttd_pages *pages, uint64_t *first_page);

/** Writes part of a memory map: runs sorted by address, of pages that were written before. */
TTD_EXPORT enum ttd_status ttd_writer_memory_map(struct ttd_writer *writer,
                                                 const struct ttd_memory_map *map);

/** Writes a fact about the recording. For the keys in use see spec, "Metadata". */
TTD_EXPORT enum ttd_status ttd_writer_metadata(struct ttd_writer *writer,
                                               const struct ttd_metadata *metadata);

/** Writes a state of the heap, into a derived file (spec, "States"). */
TTD_EXPORT enum ttd_status ttd_writer_state(struct ttd_writer *writer,
                                            const struct ttd_state *state);

/** Writes a sum of the most recent summary, into a derived file (spec, "Sums"). */
TTD_EXPORT enum ttd_status ttd_writer_sum(struct ttd_writer *writer, const struct ttd_sum *sum);

/*
 * Snapshots (spec, "Snapshots"). Write the parts of a snapshot, in any order except that regions
 * precede references to them, then the snapshot itself by ttd_writer_snapshot(), then the parts of
 * the next one, whose number is larger. A memory map is a part as well. All are copied before the
 * call returns. All return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_LIMIT, TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_IO, TTD_ERROR_MISUSE.
 *
 * A call takes any number of regions, references or classes; a count of 0 writes nothing. Each call
 * writes chunks of its own with at most 65536 records: pass many at a time.
 */

/**
 * Writes regions of a snapshot. `regions->first` must be 1 more than the number of its regions
 * written so far.
 */
TTD_EXPORT enum ttd_status ttd_writer_regions(struct ttd_writer *writer,
                                              const struct ttd_regions *regions);

/**
 * Writes references of a snapshot, sorted by region and offset, also across calls.
 */
TTD_EXPORT enum ttd_status ttd_writer_references(struct ttd_writer *writer,
                                                 const struct ttd_references *references);

/** Writes the name of a variable of a module. It belongs to no snapshot and applies to all. */
TTD_EXPORT enum ttd_status ttd_writer_variable(struct ttd_writer *writer,
                                               const struct ttd_variable *variable);

/** Writes the addresses of the frames of a thread's stack, as a part of a snapshot. */
TTD_EXPORT enum ttd_status ttd_writer_frames(struct ttd_writer *writer,
                                             const struct ttd_frames *frames);

/** Writes classes of a snapshot. */
TTD_EXPORT enum ttd_status ttd_writer_classes(struct ttd_writer *writer,
                                              const struct ttd_classes *classes);

/** Writes headers of blocks, as a part of a snapshot. */
TTD_EXPORT enum ttd_status ttd_writer_block_headers(struct ttd_writer *writer,
                                                    const struct ttd_block_headers *headers);

/**
 * Writes a snapshot after all of its parts, and flushes: a reader of the growing file, or of the
 * file after a crash, finds the whole snapshot. Its numbers of regions and references are ignored.
 */
TTD_EXPORT enum ttd_status ttd_writer_snapshot(struct ttd_writer *writer,
                                               const struct ttd_snapshot *snapshot);

/** Writes the signal that kills the program. The number of its snapshot is not checked. */
TTD_EXPORT enum ttd_status ttd_writer_fatal_signal(struct ttd_writer *writer,
                                                   const struct ttd_fatal_signal *signal);

/**
 * Writes everything buffered as complete chunks, so that a reader of the growing file, or of the
 * file after a crash, sees it.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE.
 */
TTD_EXPORT enum ttd_status ttd_writer_flush(struct ttd_writer *writer);

/**
 * Flushes, writes the index and the End chunk, closes the output and releases the writer, whatever
 * the outcome. Without this call the file counts as not closed cleanly.
 *
 * @param writer  NULL is allowed and does nothing
 * @param end     reason, code and wall_time are used; NULL ends without an End chunk, as a death
 *                of the writer would
 * @param error   detail on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_MISUSE.
 */
TTD_EXPORT enum ttd_status ttd_writer_close(struct ttd_writer *writer, const struct ttd_end *end,
                                            struct ttd_error *error);

/** Returns the detail of this writer's last failure; all zero if there was none. */
TTD_EXPORT struct ttd_error ttd_writer_error(const struct ttd_writer *writer);

/** Returns the number of bytes passed to the output so far. */
TTD_EXPORT uint64_t ttd_writer_bytes(const struct ttd_writer *writer);

TTD_END_DECLS

#endif
