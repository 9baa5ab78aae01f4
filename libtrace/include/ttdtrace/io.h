/* SPDX-License-Identifier: MIT */
/**
 * Inputs and outputs of traces: tables of functions, with files and memory among them.
 *
 * A trace is a file with all calls that allocate and release memory in one process. The library
 * reads and writes it through such tables, so that it may lie anywhere: in a file, in memory,
 * behind a network connection.
 *
 *     struct ttd_input input;
 *     uint64_t size;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK)
 *         return 1;
 *     if (input.size(input.context, &size) == 0)
 *         printf("%llu bytes\n", (unsigned long long)size);
 *     input.close(input.context);
 *
 * Threads: one thread at a time may use an input or an output; different ones are independent.
 */
#ifndef TTDTRACE_IO_H
#define TTDTRACE_IO_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/allocator.h>
#include <ttdtrace/status.h>

TTD_BEGIN_DECLS

/** Table of functions of a readable, seekable input. Copied at open; `context` must outlive it. */
struct ttd_input {
    void *context;
    /**
     * Reads up to `size` bytes at `offset` into `data` and sets `*got`: smaller than `size` only at
     * the end of the input. Returns 0, or an errno value.
     */
    int (*read_at)(void *context, uint64_t offset, void *data, size_t size, size_t *got);
    /** Sets `*size` to the size in bytes at this moment; a file may grow. Returns 0 or an errno. */
    int (*size)(void *context, uint64_t *size);
    /** Releases the context; may be NULL. */
    void (*close)(void *context);
};

/** Table of functions of an append-only output: a file, a pipe, a socket. */
struct ttd_output {
    void *context;
    /** Appends all of `data`. Returns 0 or an errno value; after a failure it is not called again.
     */
    int (*write)(void *context, const void *data, size_t size);
    /** Releases the context, after flushing. Returns 0 or an errno value. May be NULL. */
    int (*close)(void *context);
};

/**
 * Reads from `size` bytes at `data`; they must stay valid and unchanged until the close.
 *
 * @return TTD_OK, TTD_ERROR_ARGUMENT (data NULL with a size), TTD_ERROR_NO_MEMORY.
 */
TTD_EXPORT enum ttd_status ttd_input_memory(const void *data, size_t size,
                                            const struct ttd_allocator *allocator,
                                            struct ttd_input *input);

/**
 * Opens a file for reading. It may be growing. Directories and unseekable files are refused.
 *
 * @param path   file name; on Windows in UTF-8
 * @param error  detail on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_input_file(const char *path, const struct ttd_allocator *allocator,
                                          struct ttd_input *input, struct ttd_error *error);

/**
 * Opens an input over an open file descriptor, whose own offset does not matter and, except on
 * Windows, does not change. With `own` non-zero the close closes it; on failure it stays open.
 *
 * @param error  detail on failure; may be NULL
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY; TTD_ERROR_IO if it cannot be read at an
 *         offset, as a pipe or a directory cannot.
 */
TTD_EXPORT enum ttd_status ttd_input_descriptor(int descriptor, int own,
                                                const struct ttd_allocator *allocator,
                                                struct ttd_input *input, struct ttd_error *error);

/**
 * Creates a file that only its owner can read and write (mode 0600) and that did not exist; it
 * never follows a symbolic link and never overwrites.
 *
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
TTD_EXPORT enum ttd_status ttd_output_file(const char *path, const struct ttd_allocator *allocator,
                                           struct ttd_output *output, struct ttd_error *error);

/**
 * Writes to an open file descriptor (perhaps a pipe). With `own` non-zero the close closes it.
 *
 * @return TTD_OK, TTD_ERROR_ARGUMENT, TTD_ERROR_NO_MEMORY.
 */
TTD_EXPORT enum ttd_status ttd_output_descriptor(int descriptor, int own,
                                                 const struct ttd_allocator *allocator,
                                                 struct ttd_output *output);

/** Collects output in memory; see ttd_output_memory(). */
struct ttd_memory_output {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct ttd_allocator allocator;
};

/**
 * Appends to `memory`; the caller owns it, and it must outlive the output. The call initialises it;
 * release its `data` with ttd_memory_output_free(). Writes fail with ENOMEM.
 *
 * @return TTD_OK, TTD_ERROR_ARGUMENT.
 */
TTD_EXPORT enum ttd_status ttd_output_memory(struct ttd_memory_output *memory,
                                             const struct ttd_allocator *allocator,
                                             struct ttd_output *output);

/** Releases the bytes and empties the struct; NULL and an empty one are allowed. */
TTD_EXPORT void ttd_memory_output_free(struct ttd_memory_output *memory);

TTD_END_DECLS

#endif
