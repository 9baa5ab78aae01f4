/* SPDX-License-Identifier: MIT */
/** Memory, inputs and outputs that fail when told to, and that count. */
#ifndef SUPPORT_CHAOS_H
#define SUPPORT_CHAOS_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ttdtrace.h>

/** Fails never. */
#define CHAOS_NEVER UINT64_MAX

/** Counts calls; the call `fail_at`, from 0, and with `forever` all after it, fail. */
struct chaos_counter {
    uint64_t calls;
    uint64_t fail_at;
    int forever;
};

/** Memory that counts what is in use. Begin with chaos_memory_init(). */
struct chaos_memory {
    struct chaos_counter counter;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t peak;
};

void chaos_memory_init(struct chaos_memory *memory, uint64_t fail_at);

/** A table whose blocks are of exactly the size asked for. */
struct ttd_allocator chaos_allocator(struct chaos_memory *memory);

/** An input of bytes, which must outlive it. */
struct chaos_input {
    const uint8_t *data;
    size_t size;
    /** Most bytes given at once; 0 for no such limit. */
    size_t at_once;
    struct chaos_counter counter;
    /** Times closed; a second time is a bug. */
    int closed;
};

/** The table for it. A failure is EIO. */
struct ttd_input chaos_input_table(struct chaos_input *input);

/** An output into memory that may fail with ENOSPC, its close included. Free with free(data). */
struct chaos_output {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct chaos_counter counter;
    /** Calls after the failed one, close excepted: there must be none. */
    uint64_t calls_after;
    int closed;
};

struct ttd_output chaos_output_table(struct chaos_output *output);

#endif
