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
typedef struct chaos_counter {
    uint64_t calls;
    uint64_t fail_at;
    int forever;
} chaos_counter;

/** Memory that counts what is in use. Begin with chaos_memory_init(). */
typedef struct chaos_memory {
    chaos_counter counter;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t peak;
} chaos_memory;

void chaos_memory_init(chaos_memory *memory, uint64_t fail_at);

/** A table whose blocks are of exactly the size asked for. */
ttd_allocator chaos_allocator(chaos_memory *memory);

/** An input of bytes, which must outlive it. */
typedef struct chaos_input {
    const uint8_t *data;
    size_t size;
    /** Most bytes given at once; 0 for no such limit. */
    size_t at_once;
    chaos_counter counter;
    /** Times closed; a second time is a bug. */
    int closed;
} chaos_input;

/** The table for it. A failure is EIO. */
ttd_input chaos_input_table(chaos_input *input);

/** An output into memory that may fail with ENOSPC, its close included. Free with free(data). */
typedef struct chaos_output {
    uint8_t *data;
    size_t size;
    size_t capacity;
    chaos_counter counter;
    /** Calls after the failed one, close excepted: there must be none. */
    uint64_t calls_after;
    int closed;
} chaos_output;

ttd_output chaos_output_table(chaos_output *output);

#endif
