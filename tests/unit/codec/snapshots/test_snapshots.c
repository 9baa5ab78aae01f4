/* SPDX-License-Identifier: MIT */
/* Snapshots and all their parts but references: round trips, and the violations that are refused.
 */
#include <string.h>

#include "codec/snapshots/snapshots.h"
#include "support/fixtures/buffer.h"

TestSuite(snapshots, .init = buffer_begin, .fini = buffer_finish);

/** Decodes what is in the buffer, up to `size`, and checks that nothing is left over. */
#define DECODE(size, ...)                                                                          \
    struct ttd_cursor in = ttd_cursor_of(buffer.data, size);                                       \
    __VA_ARGS__;                                                                                   \
    ttd_cursor_finish(&in);                                                                        \
    return in.error

/** Checks that each shorter payload is refused. */
static void expect_whole(const char *(*decode)(size_t size))
{
    cr_assert_null(decode(buffer.size));
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode(size), "%zu of %zu bytes", size, buffer.size);
}

/* ---- Snapshots ---- */

/* A different value in each member, so that two that change places are noticed. */
static const struct ttd_snapshot snapshot = {.number = UINT32_MAX,
                                             .position = {7, 8},
                                             .wall_time = 9,
                                             .duration = UINT64_MAX,
                                             .contents = 7,
                                             .reason = INT32_MAX,
                                             .flags = 3,
                                             .missing = UINT64_MAX - 1,
                                             .thread = UINT32_MAX - 1,
                                             .regions = UINT64_MAX - 2,
                                             .references = UINT64_MAX - 3};
static struct ttd_snapshot snapshot_found;

static const char *decode_snapshot(size_t size)
{
    DECODE(size, ttd_decode_snapshot(&in, &snapshot_found));
}

Test(snapshots, come_back_as_they_were)
{
    cr_assert_null(ttd_check_snapshot(&snapshot));
    ttd_encode_snapshot(&buffer, &snapshot);
    expect_whole(decode_snapshot);
    decode_snapshot(buffer.size);
    cr_assert_eq(memcmp(&snapshot_found, &snapshot, sizeof snapshot), 0);
}

static void expect_refused(struct ttd_snapshot changed, const char *expected)
{
    cr_assert_str_eq(ttd_check_snapshot(&changed), expected);
    ttd_buffer_clear(&buffer);
    ttd_encode_snapshot(&buffer, &changed);
    cr_assert_str_eq(decode_snapshot(buffer.size), expected);
}

Test(snapshots, violations_are_refused)
{
    struct ttd_snapshot changed = snapshot;
    changed.number = 0;
    expect_refused(changed, "number of a snapshot");
    changed = snapshot;
    changed.position = ttd_position_invalid();
    expect_refused(changed, "invalid position");
    changed = snapshot;
    changed.contents = 0;
    expect_refused(changed, "contents of a snapshot");
    changed.contents = 8 | TTD_SNAPSHOT_BLOCKS;
    expect_refused(changed, "contents of a snapshot");
    changed = snapshot;
    changed.reason = UINT32_C(1) << 31;
    expect_refused(changed, "reason of a snapshot");
    changed = snapshot;
    changed.flags = 8;
    expect_refused(changed, "unknown flags of a snapshot");
}

/* ---- Regions ---- */

static const struct ttd_region regions[] = {
    {TTD_REGION_HEAP, 0x602000, 0x21000, 0, 0, 5},
    {TTD_REGION_MODULE, 0x1000, 0x40, 0, UINT32_MAX, 6},
    {TTD_REGION_REGISTERS, 0, 136, 3, 0, 0},
    {TTD_REGION_STACK, 0x7FFFFFFDE000, 0x1000, UINT32_MAX, 0, 0},
    {TTD_REGION_TLS, 8, 8, 1, 2, UINT32_MAX},
    {TTD_REGION_ANONYMOUS, 0, UINT64_MAX, 0, 0, 0},
    {TTD_REGION_FILE, UINT64_MAX, 1, 0, 0, 0},
    {TTD_REGION_HEAP, 1, UINT64_MAX, 0, 0, 0}};
#define REGIONS (sizeof regions / sizeof *regions)
static struct ttd_region regions_found[REGIONS];
static struct ttd_regions regions_list;

static const char *decode_regions(size_t size)
{
    regions_list = (struct ttd_regions){.count = REGIONS};
    DECODE(size, ttd_decode_regions(&in, &regions_list, regions_found));
}

Test(snapshots, regions_come_back_as_they_were)
{
    struct ttd_regions list = {7, UINT32_MAX - (uint32_t)REGIONS + 1, regions, REGIONS};
    cr_assert_null(ttd_check_regions(&list));
    ttd_encode_regions(&buffer, &list);
    expect_whole(decode_regions);
    decode_regions(buffer.size);
    cr_assert_eq(regions_list.snapshot, 7);
    cr_assert_eq(regions_list.first, list.first);
    cr_assert_eq(regions_list.regions, regions_found);
    for (size_t i = 0; i < REGIONS; i++) {
        cr_expect_eq(regions_found[i].kind, regions[i].kind, "%zu", i);
        cr_expect_eq(regions_found[i].begin, regions[i].begin, "%zu", i);
        cr_expect_eq(regions_found[i].size, regions[i].size, "%zu", i);
        cr_expect_eq(regions_found[i].thread, regions[i].thread, "%zu", i);
        cr_expect_eq(regions_found[i].module, regions[i].module, "%zu", i);
        cr_expect_eq(regions_found[i].name, regions[i].name, "%zu", i);
    }
}

static void expect_region_refused(struct ttd_region region, const char *expected)
{
    struct ttd_regions list = {1, 1, &region, 1};
    cr_assert_str_eq(ttd_check_regions(&list), expected);
    ttd_buffer_clear(&buffer);
    ttd_encode_regions(&buffer, &list);
    struct ttd_cursor in = ttd_cursor_of(buffer.data, buffer.size);
    ttd_decode_regions(&in, &list, regions_found);
    cr_assert_not_null(in.error, "%s", expected);
}

Test(snapshots, violations_of_regions_are_refused)
{
    expect_region_refused((struct ttd_region){0, 8, 8, 0, 0, 0}, "kind of a region");
    expect_region_refused((struct ttd_region){TTD_REGION_FILE + 1, 8, 8, 0, 0, 0},
                          "kind of a region");
    expect_region_refused((struct ttd_region){TTD_REGION_HEAP, 8, 0, 0, 0, 0}, "size of a region");
    expect_region_refused((struct ttd_region){TTD_REGION_HEAP, 2, UINT64_MAX, 0, 0, 0},
                          "size of a region");
    expect_region_refused((struct ttd_region){TTD_REGION_REGISTERS, 8, 8, 0, 0, 0},
                          "begin of registers");
    struct ttd_regions list = {0, 1, regions, 1};
    cr_assert_str_eq(ttd_check_regions(&list), "number of a snapshot");
    list = (struct ttd_regions){1, 0, regions, 1};
    cr_assert_str_eq(ttd_check_regions(&list), "number of a region");
    list = (struct ttd_regions){1, UINT32_MAX, regions, 2};
    cr_assert_str_eq(ttd_check_regions(&list), "number of a region");
}

/* ---- Variables ---- */

static struct ttd_variable variables_found[2];

static const char *decode_variables(size_t size)
{
    uint64_t offset = 0;
    DECODE(size,
           for (size_t i = 0; i < 2; i++) ttd_decode_variable(&in, &variables_found[i], &offset));
}

Test(snapshots, variables_come_back_as_they_were)
{
    static const struct ttd_variable variables[] = {{1, UINT64_MAX, 3, 4},
                                                    {UINT32_MAX, 5, UINT64_MAX, UINT32_MAX}};
    uint64_t offset = 0;
    for (size_t i = 0; i < 2; i++)
        ttd_encode_variable(&buffer, &variables[i], &offset);
    expect_whole(decode_variables);
    decode_variables(buffer.size);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(variables_found[i].module, variables[i].module, "%zu", i);
        cr_expect_eq(variables_found[i].offset, variables[i].offset, "%zu", i);
        cr_expect_eq(variables_found[i].size, variables[i].size, "%zu", i);
        cr_expect_eq(variables_found[i].name, variables[i].name, "%zu", i);
    }
    buffer.data[0] = 0;
    cr_expect_str_eq(decode_variables(buffer.size), "module of a variable");
}

/* ---- Frames ---- */

static struct ttd_frames frames_found;
static uint64_t addresses_found[TTD_FRAMES_MAX];

static const char *decode_frames(size_t size)
{
    DECODE(size, ttd_decode_frames(&in, &frames_found);
           ttd_decode_frame_addresses(&in, addresses_found, frames_found.count));
}

Test(snapshots, frames_come_back_as_they_were)
{
    static const uint64_t addresses[] = {0x7FFFFFFDE080, 0x7FFFFFFDE0C0, 0, UINT64_MAX, 1};
    struct ttd_frames frames = {UINT32_MAX, 2, UINT32_MAX - 1, addresses, 5};
    ttd_encode_frames(&buffer, &frames);
    expect_whole(decode_frames);
    decode_frames(buffer.size);
    cr_expect_eq(frames_found.snapshot, frames.snapshot);
    cr_expect_eq(frames_found.thread, frames.thread);
    cr_expect_eq(frames_found.stack, frames.stack);
    cr_expect_eq(frames_found.count, frames.count);
    cr_expect_eq(memcmp(addresses_found, addresses, sizeof addresses), 0);
}

Test(snapshots, frames_have_a_snapshot_and_a_limit)
{
    static const uint64_t addresses[TTD_FRAMES_MAX + 1];
    struct ttd_frames frames = {1, 0, 0, addresses, TTD_FRAMES_MAX};
    ttd_encode_frames(&buffer, &frames);
    cr_assert_null(decode_frames(buffer.size));
    ttd_buffer_clear(&buffer);
    frames.count++;
    ttd_encode_frames(&buffer, &frames);
    cr_assert_str_eq(decode_frames(buffer.size), "value out of range");
    ttd_buffer_clear(&buffer);
    frames = (struct ttd_frames){.snapshot = 0};
    ttd_encode_frames(&buffer, &frames);
    cr_assert_str_eq(decode_frames(buffer.size), "number of a snapshot");
}

/* ---- Classes ---- */

static struct ttd_class classes_found[3];

static const char *decode_classes(size_t size)
{
    struct ttd_classes list = {.count = 3};
    DECODE(size, ttd_decode_classes(&in, &list, classes_found));
}

Test(snapshots, classes_come_back_as_they_were)
{
    static const struct ttd_class classes[] = {{0x555555557D48, 4}, {8, UINT32_MAX}, {8, 0}};
    ttd_encode_classes(&buffer, &(struct ttd_classes){7, classes, 3});
    expect_whole(decode_classes);
    decode_classes(buffer.size);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(classes_found[i].address, classes[i].address, "%zu", i);
        cr_expect_eq(classes_found[i].name, classes[i].name, "%zu", i);
    }
    buffer.data[0] = 0;
    cr_expect_str_eq(decode_classes(buffer.size), "number of a snapshot");
    buffer.data[0] = buffer.data[4] = 1;
    cr_expect_str_eq(decode_classes(buffer.size), "reserved field is not zero");
}

/* ---- Block headers ---- */

static uint64_t headers_found[3];

static const char *decode_headers(size_t size)
{
    struct ttd_block_headers list = {.count = 3};
    DECODE(size, ttd_decode_block_headers(&in, &list, headers_found));
}

Test(snapshots, block_headers_come_back_as_they_were)
{
    static const uint64_t headers[] = {0x291, 0x20, UINT64_MAX};
    ttd_encode_block_headers(&buffer, &(struct ttd_block_headers){7, 3, 0x1008, headers, 3});
    expect_whole(decode_headers);
    decode_headers(buffer.size);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(headers_found[i], headers[i], "%zu", i);
    buffer.data[0] = 0;
    cr_expect_str_eq(decode_headers(buffer.size), "number of a snapshot");
    buffer.data[0] = 1;
    buffer.data[4] = 4;
    cr_expect_str_eq(decode_headers(buffer.size), "flags of block headers");
}

/* ---- Fatal signals ---- */

static struct ttd_fatal_signal signal_found;
static struct ttd_register registers_found[TTD_REGISTERS_MAX];

static const char *decode_signal(size_t size)
{
    DECODE(size, ttd_decode_fatal_signal(&in, &signal_found);
           ttd_decode_registers(&in, registers_found, signal_found.count));
}

static const struct ttd_register registers[] = {{UINT32_MAX, 0}, {7, UINT64_MAX}};
static const struct ttd_fatal_signal fatal = {.position = {1, 2},
                                              .wall_time = UINT64_MAX,
                                              .thread = 3,
                                              .stack = 4,
                                              .signal = INT32_MAX,
                                              .code = INT64_MIN,
                                              .address = UINT64_MAX - 1,
                                              .snapshot = UINT32_MAX,
                                              .registers = registers,
                                              .count = 2};

Test(snapshots, signals_come_back_as_they_were)
{
    ttd_encode_fatal_signal(&buffer, &fatal);
    expect_whole(decode_signal);
    decode_signal(buffer.size);
    cr_expect_null(signal_found.registers);
    signal_found.registers = registers;
    cr_expect_eq(memcmp(&signal_found, &fatal, sizeof fatal), 0);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(registers_found[i].number, registers[i].number, "%zu", i);
        cr_expect_eq(registers_found[i].value, registers[i].value, "%zu", i);
    }
}

static const char *decode_changed(struct ttd_fatal_signal changed)
{
    ttd_buffer_clear(&buffer);
    ttd_encode_fatal_signal(&buffer, &changed);
    return decode_signal(buffer.size);
}

Test(snapshots, violations_of_signals_are_refused)
{
    static const struct ttd_register many[TTD_REGISTERS_MAX + 1];
    struct ttd_fatal_signal changed = fatal;
    changed.position = ttd_position_invalid();
    cr_expect_str_eq(decode_changed(changed), "invalid position");
    changed = fatal;
    changed.signal = 0;
    cr_expect_str_eq(decode_changed(changed), "number of a signal");
    changed.signal = UINT32_C(1) << 31;
    cr_expect_str_eq(decode_changed(changed), "value out of range");
    changed = fatal;
    changed.registers = many;
    changed.count = TTD_REGISTERS_MAX;
    cr_expect_null(decode_changed(changed));
    changed.count++;
    cr_expect_str_eq(decode_changed(changed), "value out of range");
}
