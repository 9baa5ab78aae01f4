/* SPDX-License-Identifier: MIT */
/** A trace in memory, and its writer, for each test of a file that checks what a writer refuses. */
#ifndef API_REFUSALS_H
#define API_REFUSALS_H

#include "api/fixture.h"

static struct ttd_memory_output memory;
static struct ttd_writer *writer;

static inline void refusals_begin(void)
{
    struct ttd_trace trace = fixture_trace();
    writer = fixture_writer(&memory, &trace, NULL);
}

/* Whatever was refused, the trace is intact. */
static inline void refusals_end(void)
{
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    ttd_memory_output_free(&memory);
}

/** Checks that a call was refused as a wrong argument, and why. */
static inline void check_refused(enum ttd_status status, const char *what)
{
    cr_expect_eq(status, TTD_ERROR_ARGUMENT, "%s: %s", what, ttd_status_text(status));
    cr_expect_str_eq(ttd_writer_error(writer).what, what);
}

#endif
