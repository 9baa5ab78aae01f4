/* SPDX-License-Identifier: MIT */
/**
 * Questions about the heap of a recorded program, at any position of its trace: libttdheap.
 *
 * A trace is a recording of all calls that allocate and release memory in one process, made by
 * ttdrecord or by any program that writes the format with libtrace. A handle opens one trace. It
 * stands at a position of it, at first the end; ttdheap_find() makes a position of a text such as
 * "50%", ttdheap_go() goes there, and the other functions ask about the heap as it was then: its
 * blocks, who allocated them, which of them are lost. ttdanalyze gives the same answers. Link
 * with `pkg-config --cflags --libs ttdheap`. The ten functions with the most live bytes at half of
 * a trace:
 *
 *     struct ttdheap *heap;
 *     struct ttdheap_groups groups;
 *     struct ttd_position half;
 *     struct ttdheap_error error = {.text = ""};
 *     if (ttdheap_open("trace.bin", NULL, &heap, &error) != TTD_OK ||
 *         ttdheap_find(heap, "50%", &half, &error) != TTD_OK ||
 *         ttdheap_go(heap, half) != TTD_OK ||
 *         ttdheap_groups(heap, TTDHEAP_BY_FUNCTION, &groups, &error) != TTD_OK) {
 *         fprintf(stderr, "%s\n", error.text);
 *         return 1;
 *     }
 *     for (size_t i = 0; i < groups.count && i < 10; i++)
 *         printf("%12llu  %.*s\n", (unsigned long long)groups.items[i].bytes,
 *                (int)groups.items[i].name.size, groups.items[i].name.data);
 *     ttdheap_free(&groups.answer);
 *     ttdheap_close(heap);
 *
 * Answers. Each question fills a struct that the caller owns. Its first member, `answer`, says how
 * certain it is, and owns the arrays: ttdheap_free(&groups.answer) releases them. Arrays are flat:
 * records of one size, without pointers but for texts. Texts belong to the handle, are not
 * NUL-terminated, come from the trace, and may have any bytes. Answers may outlive ttdheap_go(),
 * but their texts not ttdheap_close(). On failure an answer is all zero, and nothing is left to
 * free.
 *
 * Failures. A function that fails returns a status and describes the failure in a ttdheap_error.
 * The handle stays usable, and may be asked again.
 *
 * Growth. A handle describes the part of the trace that was in the file when it was opened, so all
 * its answers are about the same calls. Nothing is certain about a trace that the recorder had not
 * closed by then: ttdheap_info.is_closed. A new handle has the calls that were written since.
 *
 * Damage. A damaged trace can be read as far as it is intact: the answer then is not certain, and
 * says why. Memory grows with the trace's events, and a small file can be made to stand for many: a
 * program that opens traces of strangers limits its memory.
 *
 * Threads: one thread at a time may use a handle; different handles are independent. Any thread may
 * read and free an answer at any time. A question may use one more thread while it runs. The
 * library starts no process, and does not write to files or standard streams.
 */
#ifndef TTDTRACE_TTDHEAP_H
#define TTDTRACE_TTDHEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/event.h>
#include <ttdtrace/ids.h>
#include <ttdtrace/io.h>
#include <ttdtrace/position.h>
#include <ttdtrace/status.h>
#include <ttdtrace/trace.h>

TTD_BEGIN_DECLS

/** A trace, and a position in it. */
struct ttdheap;

/** Room for the text of a failure. */
#define TTDHEAP_ERROR_TEXT 512

/** Description of a failure; the caller owns it. Written only when a function fails. */
struct ttdheap_error {
    /** The status, and the offset in the file where there is one. */
    struct ttd_error detail;
    /** The file, the reason and the place, such as "trace.bin: payload checksum, at offset 4096".
     */
    char text[TTDHEAP_ERROR_TEXT];
};

/** Options; start from ttdheap_options_default(). */
struct ttdheap_options {
    /** sizeof of this struct, so that it can grow. */
    size_t size;
    /** The trace, instead of the file; copied, and closed by the handle, also when the opening
     * fails. NULL for the file. */
    const struct ttd_input *input;
    /** Memory for reading the trace; copied. Tables of blocks come from malloc(). NULL for the
     * default. */
    const struct ttd_allocator *allocator;
    /**
     * Name of an index of the trace, as `ttdanalyze index` makes it: far positions are reached
     * sooner. An answer that rests on it is not certain, since the trace is not read as a whole; so
     * the caller names only an index that it trusts. An index that is missing or of another trace
     * is not used. NULL for none.
     */
    const char *index;
    /**
     * Is called now and then while a question reads the trace, by the thread that asks, with the
     * bytes that were read and the bytes of the trace. Returns 0 to go on; anything else ends the
     * question with TTD_ERROR_CANCELLED. A question may read the trace more than once. It must not
     * use the handle. NULL for none.
     */
    int (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    /** Steps from frame to frame that all questions together may take; 0 for the default. A trace
     * of some kilobytes can have stacks of billions of frames. */
    uint64_t steps_max;
    /** Reads ahead in another thread. */
    bool reads_ahead;
};

/** Default of ttdheap_options.steps_max. */
#define TTDHEAP_STEPS_MAX (UINT64_C(1) << 31)

/** Returns the defaults: a file, no index, no progress, reads ahead. */
TTD_EXPORT struct ttdheap_options ttdheap_options_default(void);

/**
 * Opens a trace, which may be growing, damaged or cut short, and goes to its end. The handle has
 * nothing that is written to the file later.
 *
 * @param path     name of the file; with options.input only the name in texts of failures
 * @param options  NULL for the defaults
 * @param heap     set on TTD_OK; owned by the caller, see ttdheap_close()
 * @param error    set on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_NOT_A_TRACE, TTD_ERROR_CORRUPT, TTD_ERROR_TRUNCATED,
 *         TTD_ERROR_UNSUPPORTED, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_ARGUMENT (the options
 *         are of no known size, or `path` or `heap` is NULL).
 */
TTD_EXPORT enum ttd_status ttdheap_open(const char *path, const struct ttdheap_options *options,
                                        struct ttdheap **heap, struct ttdheap_error *error);

/** Releases everything but answers; NULL is allowed. */
TTD_EXPORT void ttdheap_close(struct ttdheap *heap);

/** The first member of each answer. */
struct ttdheap_answer {
    /** Nothing that the trace leaves open could change the answer. */
    bool is_certain;
    /** Why it is not certain: texts, which belong to the answer. */
    size_t reason_count;
    const char *const *reasons;
    /** The position of the last effect that the answer rests on. */
    struct ttd_position position;
    /** The library's. */
    void *memory;
};

/** Releases the arrays of an answer, and makes it empty. Accepts NULL, and an answer of zeros. */
TTD_EXPORT void ttdheap_free(struct ttdheap_answer *answer);

/** Properties of a trace. */
struct ttdheap_info {
    struct ttdheap_answer answer;
    /** From the first chunk; time_unit is 0 if that was lost. */
    struct ttd_trace trace;
    /** The recorder had closed the trace when it was opened; `end` has the reason, and the number
     * of events. */
    bool is_closed;
    struct ttd_end end;
    /** An index is used. */
    bool has_index;
    /** The recorder has recorded a part of the blocks only. */
    bool is_choice;
    /** Events that can be read; those that are known to be missing, and the number of places where
     * events are missing in a number that is not known. */
    uint64_t events;
    uint64_t lost_events;
    uint64_t lost_unknown;
    /** By enum ttd_action; number 0 is not used. */
    uint64_t calls[TTD_ACTION_DESTROY + 1];
    /** Calls that failed; that had not returned when the trace ended. */
    uint64_t failed;
    uint64_t unfinished;
    /** Live blocks and their bytes at the end, without the blocks that lie in others. */
    uint64_t live_blocks;
    uint64_t live_bytes;
};

/**
 * Describes the trace; reads all of it.
 *
 * @param info   all zero on failure
 * @param error  set on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_UNSUPPORTED, TTD_ERROR_CANCELLED.
 */
TTD_EXPORT enum ttd_status ttdheap_info(struct ttdheap *heap, struct ttdheap_info *info,
                                        struct ttdheap_error *error);

/**
 * Finds the position that a text stands for: "FAB:17B1" (sequence and steps), "start", "end",
 * "#1234" (an event by its number), "50%" (of the events), "+1.5s" (after the start; also ns, us,
 * ms, min, h), "mark:TEXT" (the first mark with this text). A position need not exist.
 *
 * @param position  set on TTD_OK; ttd_position_max() for the end
 * @param error     set on failure; may be NULL
 * @return TTD_OK; TTD_END (no mark has this text); TTD_ERROR_ARGUMENT (the text has none of these
 *         forms); TTD_ERROR_MISUSE (wall times are not known); and as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_find(struct ttdheap *heap, const char *text,
                                        struct ttd_position *position, struct ttdheap_error *error);

/**
 * Finds the bounds of a range of calls, by texts as ttdheap_find() takes them. A bound is the
 * position of a call; ttdheap_find() gives the heap behind it: for "#1234" the range begins with
 * event 1234, or ends before it.
 *
 * @param from, to  set on TTD_OK
 * @param error     set on failure; may be NULL
 * @return TTD_ERROR_ARGUMENT (no position is between the bounds); and as ttdheap_find().
 */
TTD_EXPORT enum ttd_status ttdheap_find_range(struct ttdheap *heap, const char *from_text,
                                              const char *to_text, struct ttd_position *from,
                                              struct ttd_position *to, struct ttdheap_error *error);

/**
 * Goes to a position. Reads nothing: the next question does.
 *
 * @param position  any; the heap there is the one after the last effect at or before it
 * @return TTD_OK, TTD_ERROR_ARGUMENT (`heap` is NULL).
 */
TTD_EXPORT enum ttd_status ttdheap_go(struct ttdheap *heap, struct ttd_position position);

/** A block. */
struct ttdheap_block {
    uint64_t address;
    uint64_t size;
    /** Number and position of the call that allocated it. */
    uint64_t event;
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id stack;
    ttd_id heap;
    /** An enum ttd_api: the function that allocated it. */
    uint8_t api;
    /** It may have been released where its thread was not recorded. */
    bool is_unknown;
    uint16_t reserved;
};

/** Live blocks. */
struct ttdheap_blocks {
    struct ttdheap_answer answer;
    size_t count;
    /** Sorted by address. */
    const struct ttdheap_block *items;
};

/**
 * Lists all blocks that are live at the position.
 *
 * @param blocks  all zero on failure
 * @param error   set on failure; may be NULL
 * @return as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_blocks(struct ttdheap *heap, struct ttdheap_blocks *blocks,
                                          struct ttdheap_error *error);

/**
 * Finds the live block that covers an address; the innermost one, if blocks lie in each other. As
 * ttdheap_blocks() otherwise.
 *
 * @param blocks  with one block, or with none
 * @return as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_block_at(struct ttdheap *heap, uint64_t address,
                                            struct ttdheap_blocks *blocks,
                                            struct ttdheap_error *error);

/** Properties that blocks are grouped by. Values are stable. */
enum ttdheap_by {
    /** Blocks whose stacks are the same. */
    TTDHEAP_BY_STACK,
    /** The innermost function that is the program's own; an allocator's, if none is. */
    TTDHEAP_BY_FUNCTION,
    /** The file and the module of that function. */
    TTDHEAP_BY_FILE,
    TTDHEAP_BY_MODULE,
    TTDHEAP_BY_THREAD,
    TTDHEAP_BY_HEAP,
    /** The class of C++ that a snapshot shows by the block's table of virtual functions. */
    TTDHEAP_BY_CLASS,
    /** Ranges of sizes: 0, 1, 2 to 3, 4 to 7, … */
    TTDHEAP_BY_SIZE
};

/** Blocks that have a property in common. */
struct ttdheap_group {
    /** The property's name: of the function, file, thread, heap or class; of a stack, its function
     * as TTDHEAP_BY_FUNCTION groups it. Empty for sizes, and if it is not known. */
    struct ttd_string name;
    /** Path of the function's module. */
    struct ttd_string module;
    /** Identifier of the thread or heap; smallest size of the range; offset or address of a
     * function without a name; else 0. */
    uint64_t number;
    /** Number of the blocks, and the sum of their sizes. */
    uint64_t blocks;
    uint64_t bytes;
    /** Of these, the ones that lie in blocks of other heaps. */
    uint64_t nested_blocks;
    uint64_t nested_bytes;
    /** Positions of the first and the last allocation; the first is after the last if they are not
     * known. */
    struct ttd_position first;
    struct ttd_position last;
    /** By stack, the stack, for ttdheap_frames(); TTD_NONE if none was recorded. */
    ttd_id stack;
    /** An enum ttdheap_leak or enum ttdheap_quadrant; else 0. */
    uint32_t kind;
};

/** Groups of blocks. */
struct ttdheap_groups {
    struct ttdheap_answer answer;
    size_t count;
    /** By kind, then the most bytes first. */
    const struct ttdheap_group *items;
    /** Sums over all groups. */
    uint64_t blocks;
    uint64_t bytes;
    /** Blocks that the C and C++ runtimes keep until the end, which are in no group. */
    uint64_t runtime_blocks;
    uint64_t runtime_bytes;
};

/**
 * Groups the blocks that are live at the position.
 *
 * @param groups  all zero on failure
 * @param error   set on failure; may be NULL
 * @return TTD_ERROR_MISUSE (by class, and the trace has no snapshot of references at the position
 * or before); TTD_ERROR_LIMIT (too many steps: see ttdheap_options.steps_max); TTD_ERROR_ARGUMENT
 * (an unknown property); and as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_groups(struct ttdheap *heap, enum ttdheap_by by,
                                          struct ttdheap_groups *groups,
                                          struct ttdheap_error *error);

/** Kinds of blocks in a range of positions: allocated inside or outside of it, and released inside
 * or outside of it. Values are stable. */
enum ttdheap_quadrant {
    TTDHEAP_AIFI,
    /** Blocks that the range has added. */
    TTDHEAP_AIFO,
    /** Blocks that the range has removed. */
    TTDHEAP_AOFI,
    TTDHEAP_AOFO
};

/**
 * Compares the heap at two positions: groups by quadrant, and in it as ttdheap_groups() does. By
 * class and by size are not possible. The position of the handle does not matter.
 *
 * @param from, to  the range; `to` is not part of it, unless it is ttd_position_max()
 * @return TTD_ERROR_ARGUMENT (the range is empty, or the property is not possible); and as
 *         ttdheap_groups().
 */
TTD_EXPORT enum ttd_status ttdheap_diff(struct ttdheap *heap, struct ttd_position from,
                                        struct ttd_position to, enum ttdheap_by by,
                                        struct ttdheap_groups *groups, struct ttdheap_error *error);

/** Kinds of live blocks by the pointers to them, in the newest snapshot at or before the position.
 * Values are stable. */
enum ttdheap_leak {
    /** No block points at the block, except blocks that it leads to itself. */
    TTDHEAP_DEFINITELY_LOST,
    /** Only a pointer into the middle of a block leads to it. */
    TTDHEAP_POSSIBLY_LOST,
    /** Lost blocks lead to it, and nothing else does. */
    TTDHEAP_INDIRECTLY_LOST,
    /** Only words lead to it that may be older than the blocks they point at. */
    TTDHEAP_HELD_BY_STALE,
    /** Only a register or the stack of an ending thread leads to it. */
    TTDHEAP_HELD_WEAKLY,
    TTDHEAP_REACHABLE,
    /** It was allocated after the snapshot, or there is none: not released before the end of the
     * recording, and nothing more is known. */
    TTDHEAP_NOT_SEEN,
    /** It may have been released where its thread was not recorded. */
    TTDHEAP_UNKNOWN
};

/**
 * Classifies the blocks that are live at the position: groups by kind, and in it as
 * ttdheap_groups() does; all kinds. By size is not possible.
 *
 * @return as ttdheap_groups().
 */
TTD_EXPORT enum ttd_status ttdheap_leaks(struct ttdheap *heap, enum ttdheap_by by,
                                         struct ttdheap_groups *groups,
                                         struct ttdheap_error *error);

/** Patterns of growth of the sizes of reallocated blocks. Values are stable. */
enum ttdheap_growth {
    TTDHEAP_GROWTH_UNKNOWN,
    TTDHEAP_GROWTH_SHRINKING,
    TTDHEAP_GROWTH_SAME,
    /** By about the same number of bytes each time: moves may cost quadratic time. */
    TTDHEAP_GROWTH_LINEAR,
    /** By about the same factor each time. */
    TTDHEAP_GROWTH_GEOMETRIC,
    TTDHEAP_GROWTH_IRREGULAR
};

/** Reallocations by one stack. */
struct ttdheap_move {
    ttd_id stack;
    /** An enum ttdheap_growth; and the mean number of bytes or the mean factor. */
    uint32_t growth;
    double measure;
    uint64_t calls;
    uint64_t moved;
    uint64_t in_place;
    uint64_t failed;
    /** Bytes that moves have copied; at most, where that is not known for all; and how many of them
     * would not have been copied if blocks had grown by doubling. */
    uint64_t copied;
    uint64_t copied_at_most;
    uint64_t avoidable;
    uint64_t smallest;
    uint64_t largest;
    /** No calls of realloc(): inferred from a larger block, a release and their stack. */
    bool is_inferred;
};

/** Reallocations. */
struct ttdheap_moves {
    struct ttdheap_answer answer;
    size_t count;
    /** First the calls of realloc() and its like; in both parts the most avoidable bytes first. */
    const struct ttdheap_move *items;
};

/**
 * Lists the stacks that reallocate, in the whole trace.
 *
 * @param moves  all zero on failure
 * @param error  set on failure; may be NULL
 * @return as ttdheap_groups().
 */
TTD_EXPORT enum ttd_status ttdheap_moves(struct ttdheap *heap, struct ttdheap_moves *moves,
                                         struct ttdheap_error *error);

/** A call, as far as an answer describes it. */
struct ttdheap_call {
    /** Invalid if there is no such call, or it is not known: see ttd_position_is_valid(). */
    struct ttd_position position;
    ttd_id stack;
    ttd_id thread;
    /** An enum ttd_action, and an enum ttd_api. */
    uint8_t action;
    uint8_t api;
    bool is_unfinished;
    uint8_t reserved[5];
};

/** An error of the program: all calls with the same error and the same stacks. */
struct ttdheap_finding {
    /** Name of the error as `ttdanalyze errors` prints it, such as "double-free"; static. */
    const char *kind;
    /** The first of the calls, the address and the size given to it, and its heap. */
    struct ttdheap_call call;
    uint64_t address;
    uint64_t size;
    ttd_id heap;
    bool is_certain;
    uint8_t reserved[3];
    /** Number of the calls, and the position of the last one. */
    uint64_t count;
    struct ttd_position last;
    /** The block that it is about; address 0 if it is unknown. */
    uint64_t block_address;
    uint64_t block_size;
    struct ttdheap_call allocated;
    struct ttdheap_call released;
};

/** Errors. */
struct ttdheap_findings {
    struct ttdheap_answer answer;
    size_t count;
    /** By kind, then by position. */
    const struct ttdheap_finding *items;
    /** Number of erroneous calls. */
    uint64_t calls;
};

/**
 * Lists the calls that are errors, in the whole trace: releases of released blocks, of addresses
 * without a block, by the wrong function, and others.
 *
 * @param findings  all zero on failure
 * @param error     set on failure; may be NULL
 * @return as ttdheap_groups().
 */
TTD_EXPORT enum ttd_status ttdheap_errors(struct ttdheap *heap, struct ttdheap_findings *findings,
                                          struct ttdheap_error *error);

/** A block that covers, or covered, an address. */
struct ttdheap_owner {
    struct ttdheap_block block;
    /** Number of the owner, from 1, in order of allocation. */
    uint64_t ordinal;
    /** The address that it was reallocated from; 0 if it was newly allocated. */
    uint64_t previous_address;
    /** The call that released it; unknown while it is live. */
    struct ttdheap_call released;
    /** The release is missing in the trace: `released` allocated another block there. */
    bool is_overlapped;
    uint8_t reserved[7];
};

/** The owners of an address. */
struct ttdheap_history {
    struct ttdheap_answer answer;
    size_t count;
    /** In order of allocation: the last ones of `total`. */
    const struct ttdheap_owner *items;
    uint64_t total;
};

/**
 * Lists the blocks that ever covered an address of a range, in the whole trace.
 *
 * @param first, last  addresses, both included
 * @param max          number of owners to keep: the last ones; 0 counts them only
 * @param history      all zero on failure
 * @param error        set on failure; may be NULL
 * @return TTD_ERROR_ARGUMENT (`last` is before `first`), and as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_history(struct ttdheap *heap, uint64_t first, uint64_t last,
                                           size_t max, struct ttdheap_history *history,
                                           struct ttdheap_error *error);

/** A frame of a stack. Unknown texts are empty. */
struct ttdheap_frame {
    /** Demangled. A name of more than 1024 bytes may be shortened. */
    struct ttd_string function;
    /** As in the trace. */
    struct ttd_string symbol;
    struct ttd_string file;
    /** Path of the module. */
    struct ttd_string module;
    /** Address relative to the module, and in the process. */
    uint64_t offset;
    uint64_t address;
    uint32_t line;
    /** The function was inlined into the frame that follows. */
    bool is_inlined;
    uint8_t reserved[3];
};

/** The frames of a stack. */
struct ttdheap_frames {
    struct ttdheap_answer answer;
    size_t count;
    /** Innermost first: the first frame has called the allocator, or is the allocator. */
    const struct ttdheap_frame *items;
};

/**
 * Lists the frames of a stack, with their names, inlined functions expanded. The answer is not
 * certain if names or stacks may be missing, as in a growing trace.
 *
 * @param stack   of any answer or event; TTD_NONE, and a stack that was lost, have no frames
 * @param frames  all zero on failure
 * @param error   set on failure; may be NULL
 * @return TTD_ERROR_NO_MEMORY, and as ttdheap_groups().
 */
TTD_EXPORT enum ttd_status ttdheap_frames(struct ttdheap *heap, ttd_id stack,
                                          struct ttdheap_frames *frames,
                                          struct ttdheap_error *error);

/** The calls that are wanted. */
struct ttdheap_range {
    /** Positions; `to` is not part of the range. */
    struct ttd_position from;
    struct ttd_position to;
    /** Number of the event to begin with: 0, or `next` of the calls before. */
    uint64_t first;
    /** Number of calls to list. */
    size_t max;
};

/** Calls. */
struct ttdheap_calls {
    struct ttdheap_answer answer;
    size_t count;
    /** In the order of their effects. Their raw arguments belong to the answer. */
    const struct ttd_event *items;
    /** Number of the event to go on with; UINT64_MAX if there are no more. */
    uint64_t next;
};

/**
 * Lists calls in a range of positions. The answer is not certain if calls are missing.
 *
 * @param range  which calls
 * @param calls  all zero on failure
 * @param error  set on failure; may be NULL
 * @return as ttdheap_info().
 */
TTD_EXPORT enum ttd_status ttdheap_calls(struct ttdheap *heap, const struct ttdheap_range *range,
                                         struct ttdheap_calls *calls, struct ttdheap_error *error);

TTD_END_DECLS

#endif
