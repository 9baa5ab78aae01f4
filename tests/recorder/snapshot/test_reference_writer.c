/* SPDX-License-Identifier: MIT */
/* References come to the trace in the order in which they were found, and nothing else does while
 * the trace is locked. */
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collect/trace/reference_writer.h"
#include "snapshot/calls.h"

enum { ARRAYS = 40, REST = 17 };

static _Atomic uint64_t written; /* references, whose values are numbered from 1 on */
static _Atomic uint64_t ticks;
static _Atomic bool is_wrong; /* what was written; asserted by the test's own thread */
static uint64_t refused_from; /* those from here on cannot be written */
static uint64_t slowness_us;
static _Atomic bool is_locked;

/* These take the place of the trace's and of the host's. */
bool trace_references(struct trace *trace, const struct ttd_references *references)
{
    (void)trace;
    is_wrong = is_wrong || is_locked || references->snapshot != 5;
    usleep((useconds_t)slowness_us);
    if (written >= refused_from)
        return false;
    for (size_t i = 0; i < references->count; i++)
        is_wrong = is_wrong || references->references[i].value != written + i + 1;
    written += references->count;
    return true;
}

uint64_t host_tick(struct host *host)
{
    (void)host;
    return ticks++;
}

static struct reference_writer writer;

static void begin(uint32_t contents)
{
    written = 0;
    refused_from = UINT64_MAX;
    slowness_us = 0;
    reference_writer_open(&writer, NULL, NULL,
                          &(struct ttd_snapshot){.number = 5, .contents = contents});
}

static void close_writer(void)
{
    cr_assert(reference_writer_close(&writer, true));
    cr_assert_not(is_wrong);
}

static void fill(struct ttd_reference *array, uint64_t *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        array[i].value = ++*value;
}

/* Finds full arrays, and one more that is not. Returns how many references were accepted. */
static uint64_t find(size_t arrays)
{
    uint64_t value = 0, accepted = 0;
    struct ttd_reference *array = reference_writer_next(&writer, 0);
    for (size_t i = 0; i <= arrays; i++) {
        size_t count = i < arrays ? REFERENCES_PER_CHUNK : REST;
        cr_assert_not_null(array);
        fill(array, &value, count);
        if ((array = reference_writer_next(&writer, count)) == NULL)
            return accepted;
        accepted += count;
    }
    return accepted;
}

static void expect_all_written(size_t arrays)
{
    uint64_t accepted = find(arrays);
    cr_assert_eq(accepted, (uint64_t)arrays * REFERENCES_PER_CHUNK + REST);
    close_writer();
    cr_assert_eq(written, accepted);
}

Test(reference_writer, writes_few_when_it_is_closed)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    cr_assert_eq(find(0), REST);
    cr_assert_eq(written, 0);
    close_writer();
    cr_assert_eq(written, REST);
}

Test(reference_writer, writes_many_in_order)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    expect_all_written(ARRAYS);
}

Test(reference_writer, waits_for_a_slow_trace)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    slowness_us = 2000;
    expect_all_written(ARRAYS);
}

/* The pages of the memory go to the same trace. */
Test(reference_writer, has_no_thread_beside_contents)
{
    begin(TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY);
    cr_assert_eq(find(2), 2 * REFERENCES_PER_CHUNK + REST);
    cr_assert_not(writer.has_thread);
    cr_assert_eq(written, 0);
    close_writer();
    begin(TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY);
    expect_all_written(ARRAYS);
}

Test(reference_writer, writes_where_no_thread_can_be_started)
{
    struct rlimit none = {0, 0};
    if (geteuid() == 0)
        cr_assert_eq(setresuid(65534, 65534, 65534), 0); /* the limit does not hold for root */
    cr_assert_eq(setrlimit(RLIMIT_NPROC, &none), 0);
    begin(TTD_SNAPSHOT_REFERENCES);
    cr_assert_eq(find(2), 2 * REFERENCES_PER_CHUNK + REST);
    cr_assert_not(writer.has_thread);
    close_writer();
    begin(TTD_SNAPSHOT_REFERENCES);
    expect_all_written(ARRAYS);
}

Test(reference_writer, shows_that_the_collector_is_alive)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    ticks = 0;
    find(ARRAYS);
    close_writer();
    cr_assert_eq(ticks, ARRAYS + 1);
}

Test(reference_writer, drops_what_is_not_wanted)
{
    for (int may_have_thread = 0; may_have_thread < 2; may_have_thread++) {
        begin(TTD_SNAPSHOT_REFERENCES | (may_have_thread ? 0 : TTD_SNAPSHOT_MEMORY));
        slowness_us = 20000;
        find(REFERENCE_ARRAYS - 2);
        reference_writer_close(&writer, false);
        cr_assert_lt(written, (REFERENCE_ARRAYS - 2) * REFERENCES_PER_CHUNK);
    }
}

Test(reference_writer, says_that_the_trace_has_failed)
{
    for (int may_have_thread = 0; may_have_thread < 2; may_have_thread++) {
        begin(TTD_SNAPSHOT_REFERENCES | (may_have_thread ? 0 : TTD_SNAPSHOT_MEMORY));
        refused_from = 3 * REFERENCES_PER_CHUNK;
        cr_assert_lt(find(ARRAYS), (uint64_t)(3 + REFERENCE_ARRAYS) * REFERENCES_PER_CHUNK);
        cr_assert_not(reference_writer_close(&writer, true));
        cr_assert_eq(written, 3 * REFERENCES_PER_CHUNK);
    }
}

Test(reference_writer, does_not_write_while_the_trace_is_locked)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    uint64_t value = 0;
    struct ttd_reference *array = reference_writer_next(&writer, 0);
    for (size_t i = 0; i < ARRAYS; i++) {
        fill(array, &value, REFERENCES_PER_CHUNK);
        array = reference_writer_next(&writer, REFERENCES_PER_CHUNK);
        cr_assert_not_null(array);
        reference_writer_lock(&writer);
        is_locked = true;
        usleep(100);
        is_locked = false;
        reference_writer_unlock(&writer);
    }
    close_writer();
    cr_assert_eq(written, value);
}
