/* SPDX-License-Identifier: MIT */
/* Snapshots and their parts that a writer refuses. */
#include "api/snapshots.h"

TestSuite(snapshots_refused, .init = refusals_begin, .fini = refusals_end);

Test(snapshots_refused, values_must_be_legal)
{
    struct ttd_snapshot snapshot = {.number = 1, .position = {1, 0}};
    check_refused(ttd_writer_snapshot(writer, &snapshot), "contents of a snapshot");
    snapshot.contents = TTD_SNAPSHOT_BLOCKS;
    snapshot.thread = 1;
    check_refused(ttd_writer_snapshot(writer, &snapshot), "thread of a snapshot");
    struct ttd_region region = {.kind = TTD_REGION_HEAP, .size = 1, .name = 1};
    struct ttd_regions regions = {.snapshot = 1, .first = 1, .regions = &region, .count = 1};
    check_refused(ttd_writer_regions(writer, &regions), "identifier in a region");
    region = (struct ttd_region){.kind = TTD_REGION_HEAP};
    check_refused(ttd_writer_regions(writer, &regions), "size of a region");
    regions.regions = NULL;
    check_refused(ttd_writer_regions(writer, &regions), "regions");
    struct ttd_references references = {.snapshot = 1, .references = NULL, .count = 1};
    check_refused(ttd_writer_references(writer, &references), "references");
    struct ttd_reference reference = {.region = 1, .offset = 0, .value = 0};
    references.references = &reference;
    check_refused(ttd_writer_references(writer, &references), "value of a reference");
    struct ttd_class class = {.address = 8, .name = 1};
    struct ttd_classes classes = {.snapshot = 1, .classes = &class, .count = 1};
    check_refused(ttd_writer_classes(writer, &classes), "name of a class");
    classes.classes = NULL;
    check_refused(ttd_writer_classes(writer, &classes), "classes");
    struct ttd_block_headers headers = {.snapshot = 1, .headers = NULL, .count = 1};
    check_refused(ttd_writer_block_headers(writer, &headers), "block headers");
    headers.headers = (uint64_t[]){0x0F, 0x21};
    headers.count = 2;
    check_refused(ttd_writer_block_headers(writer, &headers), "size in a block header");
    struct ttd_variable variable = {.size = 1};
    check_refused(ttd_writer_variable(writer, &variable), "variable");
    variable.module = 1;
    check_refused(ttd_writer_variable(writer, &variable), "variable");
    cr_expect_eq(write_snapshot(1), TTD_OK, "nothing has begun");
}

Test(snapshots_refused, frames_and_signals_must_be_legal)
{
    struct ttd_frames frames = {.snapshot = 1, .count = 1};
    check_refused(ttd_writer_frames(writer, &frames), "number of frames");
    uint64_t address = 8;
    frames.addresses = &address;
    frames.count = TTD_FRAMES_MAX + 1;
    check_refused(ttd_writer_frames(writer, &frames), "number of frames");
    frames.count = 1;
    frames.stack = 1;
    check_refused(ttd_writer_frames(writer, &frames), "identifier in frames");
    struct ttd_fatal_signal signal = {.position = {1, 0}, .stack = 1};
    check_refused(ttd_writer_fatal_signal(writer, &signal), "identifier in a fatal signal");
    signal.stack = TTD_NONE;
    check_refused(ttd_writer_fatal_signal(writer, &signal), "number of a signal");
    signal.signal = 11;
    signal.count = 1;
    check_refused(ttd_writer_fatal_signal(writer, &signal), "number of registers");
    signal.count = 0;
    signal.position = ttd_position_invalid();
    check_refused(ttd_writer_fatal_signal(writer, &signal), "position of a fatal signal");
}

Test(snapshots_refused, parts_come_before_their_snapshot)
{
    cr_expect_eq(write_regions(1, 1, 2), TTD_OK);
    cr_expect_eq(write_snapshot(1), TTD_OK);
    check_refused(write_snapshot(1), "number of a snapshot");
    check_refused(write_regions(1, 3, 1), "part of a snapshot behind its end");
    check_refused(write_reference(1, 1, 0), "part of a snapshot behind its end");
    struct ttd_frames frames = {.snapshot = 1};
    check_refused(ttd_writer_frames(writer, &frames), "part of a snapshot behind its end");
    struct ttd_class class = {.address = 8, .name = TTD_NONE};
    struct ttd_classes classes = {.snapshot = 1, .classes = &class, .count = 1};
    check_refused(ttd_writer_classes(writer, &classes), "part of a snapshot behind its end");
    struct ttd_block_headers headers = {.snapshot = 1, .headers = (uint64_t[]){0x21}, .count = 1};
    check_refused(ttd_writer_block_headers(writer, &headers), "part of a snapshot behind its end");
    struct ttd_memory_map map = {.snapshot = 1, .last = true, .page_size = 4096};
    check_refused(ttd_writer_memory_map(writer, &map), "part of a snapshot behind its end");
    cr_expect_eq(write_regions(5, 1, 1), TTD_OK);
    check_refused(write_snapshot(4), "order of snapshots");
}

Test(snapshots_refused, references_need_regions_and_order)
{
    check_refused(write_reference(1, 1, 0), "undefined region of a reference");
    check_refused(write_regions(1, 2, 1), "order of regions");
    cr_expect_eq(write_regions(1, 1, 2), TTD_OK);
    cr_expect_eq(write_reference(1, 1, 8), TTD_OK);
    check_refused(write_reference(1, 1, 8), "order of references");
    check_refused(write_reference(1, 3, 0), "undefined region of a reference");
    cr_expect_eq(write_reference(1, 2, 0), TTD_OK);
}

Test(snapshots_refused, none_are_written)
{
    uint64_t bytes = ttd_writer_bytes(writer);
    cr_expect_eq(
        ttd_writer_regions(
            writer, &(struct ttd_regions){.snapshot = 1, .first = 1, .regions = NULL, .count = 0}),
        TTD_OK);
    cr_expect_eq(
        ttd_writer_references(
            writer, &(struct ttd_references){.snapshot = 1, .references = NULL, .count = 0}),
        TTD_OK);
    cr_expect_eq(ttd_writer_classes(
                     writer, &(struct ttd_classes){.snapshot = 1, .classes = NULL, .count = 0}),
                 TTD_OK);
    cr_expect_eq(ttd_writer_bytes(writer), bytes);
}
