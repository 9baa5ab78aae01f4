/* SPDX-License-Identifier: MIT */
/** Functions of the library are run again and again: each time another call of memory, of input or
 * of output fails. */
#ifndef TESTS_API_FAILURES_H
#define TESTS_API_FAILURES_H

#include "api/fixture.h"

/** Steps of the model that make the trace. */
#define STEPS 400

/** The outcome of one run of a function under test. */
struct outcome {
    enum ttd_status status;
    struct ttd_error error;
    uint64_t memory_calls;
    uint64_t io_calls;
    uint64_t sum;
};

/** Which call fails: of memory, of input, of output. */
struct faults {
    uint64_t memory;
    uint64_t input;
    uint64_t output;
    int forever;
    size_t at_once;
};

static const struct faults no_faults = {
    .memory = CHAOS_NEVER, .input = CHAOS_NEVER, .output = CHAOS_NEVER, .forever = 0, .at_once = 0};

static inline void check_memory(const struct chaos_memory *memory)
{
    cr_assert_eq(memory->blocks, 0, "%d blocks leaked", (int)memory->blocks);
    cr_assert_eq(memory->bytes, 0);
}

/* The fault `i`: each call fails alone, and then it and all after it. */
static inline struct faults memory_fault(uint64_t i)
{
    struct faults f = no_faults;
    f.memory = i / 2;
    f.forever = i % 2;
    return f;
}

static inline void check_failed(const struct outcome *result, enum ttd_status expected, uint64_t i)
{
    cr_assert_eq(result->status, expected, "call %d: %s", (int)i / 2,
                 ttd_status_text(result->status));
    cr_assert_eq(result->error.status, expected);
}

#endif
