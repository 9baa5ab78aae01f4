/* SPDX-License-Identifier: MIT */
/* References come to the trace in the order in which they were found, and nothing else does while
 * the trace is locked. */
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <ttdtrace/ttdtrace.h>
#include <unistd.h>

#include "collect/trace/reference_writer.h"

/* References that the search gives away at once, those of a full pack, and those that are left
 * over. */
enum { AT_ONCE = 1024, PER_PACK = TTD_REFERENCE_PACK_MAX, REST = 17 };
enum { PACKS = 40, SNAPSHOT = 5 };

static struct ttd_writer *trace_writer; /* to memory */
static struct ttd_memory_output memory;

static _Atomic uint64_t written; /* references, whose values are numbered from 1 on */
static _Atomic uint64_t ticks;
static _Atomic bool is_wrong; /* what was written; asserted by the test's own thread */
static uint64_t refused_from; /* those from here on cannot be written */
static uint64_t slowness_us;
static _Atomic bool is_locked;

/* These take the place of the trace's and of the host's. */
bool trace_references(struct trace *trace, struct ttd_reference_pack *pack)
{
    (void)trace;
    is_wrong = is_wrong || is_locked;
    usleep((useconds_t)slowness_us);
    if (written >= refused_from)
        return false;
    written += ttd_reference_pack_count(pack);
    return ttd_writer_reference_pack(trace_writer, pack) == TTD_OK;
}

static _Atomic uint64_t refused; /* records as invalid */

bool trace_check(struct trace *trace, enum ttd_status status)
{
    (void)trace;
    refused += status == TTD_ERROR_ARGUMENT;
    return status == TTD_OK;
}

uint64_t host_tick(struct host *host)
{
    (void)host;
    return ticks++;
}

static struct reference_writer writer;

static void begin(uint32_t contents)
{
    struct ttd_output output;
    struct ttd_trace info = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    struct ttd_region region = {.kind = TTD_REGION_HEAP, .begin = 0, .size = UINT32_MAX};
    struct ttd_regions regions = {SNAPSHOT, 1, &region, 1};
    cr_assert_eq(ttd_output_memory(&memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &info, NULL, NULL, &trace_writer, NULL), TTD_OK);
    cr_assert_eq(ttd_writer_regions(trace_writer, &regions), TTD_OK);
    written = 0;
    refused_from = UINT64_MAX;
    slowness_us = 0;
    reference_writer_open(&writer, NULL, NULL,
                          &(struct ttd_snapshot){.number = SNAPSHOT, .contents = contents});
}

/* Ends the trace, whose references must be those from 1 on. Returns how many there are. */
static uint64_t read_back(void)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_batch batch;
    struct ttd_reader_options options = ttd_reader_options_default();
    uint64_t count = 0;
    options.kinds = TTD_KIND_BIT(TTD_KIND_REFERENCES);
    cr_assert_eq(ttd_writer_close(trace_writer, &(struct ttd_end){.reason = 0}, NULL), TTD_OK);
    cr_assert_eq(ttd_input_memory(memory.data, memory.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
        for (size_t i = 0; i < batch.u.references->count; i++)
            cr_assert_eq(batch.u.references->references[i].value, ++count);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
    return count;
}

static void close_writer(void)
{
    cr_assert(reference_writer_close(&writer, true));
    cr_assert_not(is_wrong);
    cr_assert_eq(read_back(), written);
}

/* Adds references, of which `*value` were added before. */
static bool add(uint64_t *value, size_t count)
{
    struct ttd_reference references[AT_ONCE];
    for (size_t i = 0; i < count; i++, ++*value)
        references[i] = (struct ttd_reference){1, *value * 8, *value + 1};
    return reference_writer_add(&writer, references, count);
}

/* Finds what fills some packs, and a few more. Returns how many references were accepted. */
static uint64_t find(size_t packs)
{
    uint64_t value = 0, accepted = 0;
    while (accepted < packs * PER_PACK && add(&value, AT_ONCE))
        accepted = value;
    return accepted == packs * PER_PACK && add(&value, REST) ? value : accepted;
}

static void expect_all_written(size_t packs)
{
    uint64_t accepted = find(packs);
    cr_assert_eq(accepted, (uint64_t)packs * PER_PACK + REST);
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
    expect_all_written(PACKS);
}

Test(reference_writer, waits_for_a_slow_trace)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    slowness_us = 2000;
    expect_all_written(PACKS);
}

/* The pages of the memory go to the same trace. */
Test(reference_writer, has_no_thread_beside_contents)
{
    begin(TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY);
    cr_assert_eq(find(2), 2 * PER_PACK + REST);
    cr_assert_not(writer.has_thread);
    cr_assert_eq(written, 0);
    close_writer();
    begin(TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY);
    expect_all_written(PACKS);
}

Test(reference_writer, writes_where_no_thread_can_be_started)
{
    struct rlimit none = {0, 0};
    if (geteuid() == 0)
        cr_assert_eq(setresuid(65534, 65534, 65534), 0); /* the limit does not hold for root */
    cr_assert_eq(setrlimit(RLIMIT_NPROC, &none), 0);
    begin(TTD_SNAPSHOT_REFERENCES);
    cr_assert_eq(find(2), 2 * PER_PACK + REST);
    cr_assert_not(writer.has_thread);
    close_writer();
    begin(TTD_SNAPSHOT_REFERENCES);
    expect_all_written(PACKS);
}

Test(reference_writer, shows_that_the_collector_is_alive)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    ticks = 0;
    find(PACKS);
    close_writer();
    cr_assert_eq(ticks, PACKS + 1);
}

Test(reference_writer, drops_what_is_not_wanted)
{
    for (int may_have_thread = 0; may_have_thread < 2; may_have_thread++) {
        begin(TTD_SNAPSHOT_REFERENCES | (may_have_thread ? 0 : TTD_SNAPSHOT_MEMORY));
        slowness_us = 500000;
        find(REFERENCE_PACKS - 1);
        reference_writer_close(&writer, false);
        cr_assert_lt(written, (REFERENCE_PACKS - 1) * PER_PACK);
        cr_assert_eq(read_back(), written);
    }
}

Test(reference_writer, says_that_the_trace_has_failed)
{
    for (int may_have_thread = 0; may_have_thread < 2; may_have_thread++) {
        begin(TTD_SNAPSHOT_REFERENCES | (may_have_thread ? 0 : TTD_SNAPSHOT_MEMORY));
        refused_from = 3 * PER_PACK;
        cr_assert_leq(find(PACKS), (uint64_t)(3 + REFERENCE_PACKS) * PER_PACK);
        cr_assert_not(reference_writer_close(&writer, true));
        cr_assert_eq(written, 3 * PER_PACK);
        cr_assert_eq(read_back(), written);
    }
}

Test(reference_writer, says_that_references_are_wrong)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    uint64_t value = 0, again = 0;
    refused = 0;
    cr_assert(add(&value, REST));
    cr_assert_not(add(&again, REST), "their order");
    cr_assert_eq(refused, 1);
    cr_assert_not(reference_writer_close(&writer, true));
    cr_assert_eq(read_back(), REST);
}

Test(reference_writer, does_not_write_while_the_trace_is_locked)
{
    begin(TTD_SNAPSHOT_REFERENCES);
    uint64_t value = 0;
    while (value < (uint64_t)PACKS * PER_PACK) {
        cr_assert(add(&value, AT_ONCE));
        if (value % (8 * AT_ONCE) != 0)
            continue;
        reference_writer_lock(&writer);
        is_locked = true;
        usleep(100);
        is_locked = false;
        reference_writer_unlock(&writer);
    }
    close_writer();
    cr_assert_eq(written, value);
}
