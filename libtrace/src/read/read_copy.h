/* SPDX-License-Identifier: MIT */
/**
 * Copying a trace chunk by chunk into a new file; recover and redact share it. The functions of
 * `check` are called with each chunk and each loss, and write the chunks of the new file. Chunks
 * get new numbers, and the index and the End are made anew.
 */
#ifndef TTD_READ_READ_COPY_H
#define TTD_READ_READ_COPY_H

#include "base/buffer.h"
#include "codec/chunk/emitter.h"
#include "read/read_internal.h"

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
