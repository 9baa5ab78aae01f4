/* SPDX-License-Identifier: MIT */
/* Snapshots: how a writer splits them, and what a reader finds when. */
#include "api/snapshots.h"

/** Records of a chunk at most. */
#define CHUNK_MAX 65536

/** Records that are written, of three chunks. */
enum { COUNT = 2 * CHUNK_MAX + 1 };

TestSuite(snapshots, .init = refusals_begin, .fini = refusals_end);

/** Reads the batches of a kind. */
static void for_each(enum ttd_kind kind, void (*check)(const struct ttd_batch *batch))
{
    struct ttd_reader *reader = fixture_reader(&memory, false);
    struct ttd_batch batch;
    ttd_reader_rewind(reader, TTD_KIND_BIT(kind));
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
        if (batch.kind == kind)
            check(&batch);
    ttd_reader_close(reader);
}

static size_t seen;
static size_t batches;

static void check_region_batch(const struct ttd_batch *batch)
{
    cr_assert_eq(batch->count, 1);
    cr_assert_eq(batch->u.regions->snapshot, 1);
    cr_assert_eq(batch->u.regions->first, seen + 1);
    cr_assert_leq(batch->u.regions->count, CHUNK_MAX);
    for (size_t i = 0; i < batch->u.regions->count; i++)
        cr_assert_eq(batch->u.regions->regions[i].begin, 0x1000 * (seen + i));
    seen += batch->u.regions->count;
    batches++;
}

static void check_reference_batch(const struct ttd_batch *batch)
{
    cr_assert_eq(batch->count, 1);
    for (size_t i = 0; i < batch->u.references->count; i++, seen++) {
        const struct ttd_reference *reference = &batch->u.references->references[i];
        cr_assert_eq(reference->region, 1 + seen);
        cr_assert_eq(reference->offset, 8 * (seen % 3));
        cr_assert_eq(reference->value, 0x1000 + 16 * seen);
    }
    batches++;
}

/* Each chunk says where its own headers begin, and only the last one is broken. */
static void check_headers_batch(const struct ttd_batch *batch)
{
    const struct ttd_block_headers *list = batch->u.block_headers;
    uint64_t begin = 8;
    for (size_t i = 0; i < seen; i++)
        begin += 0x20 + 16 * (i % 3);
    cr_assert_eq(list->begin, begin);
    for (size_t i = 0; i < list->count; i++, seen++)
        cr_assert_eq(list->headers[i], 0x21 + 16 * (seen % 3));
    cr_assert_eq(list->flags, seen == COUNT ? TTD_HEADERS_BROKEN : 0);
    batches++;
}

static void check_class_batch(const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->u.classes->count; i++, seen++)
        cr_assert_eq(batch->u.classes->classes[i].address, 24 * seen);
    batches++;
}

Test(snapshots, more_than_a_chunk_has_are_split)
{
    struct ttd_reference *references = calloc(COUNT, sizeof *references);
    struct ttd_class *classes = calloc(COUNT, sizeof *classes);
    uint64_t *headers = calloc(COUNT, sizeof *headers);
    for (uint32_t i = 0; i < COUNT; i++) {
        references[i] = (struct ttd_reference){
            .region = 1 + i, .offset = 8 * (i % 3), .value = 0x1000 + 16 * i};
        classes[i].address = 24 * i;
        headers[i] = 0x21 + 16 * (i % 3);
    }
    cr_assert_eq(write_regions(1, 1, COUNT), TTD_OK);
    struct ttd_references list = {.snapshot = 1, .references = references, .count = COUNT};
    cr_assert_eq(ttd_writer_references(writer, &list), TTD_OK);
    cr_assert_eq(
        ttd_writer_classes(
            writer, &(struct ttd_classes){.snapshot = 1, .classes = classes, .count = COUNT}),
        TTD_OK);
    cr_assert_eq(
        ttd_writer_block_headers(writer, &(struct ttd_block_headers){.snapshot = 1,
                                                                     .flags = TTD_HEADERS_BROKEN,
                                                                     .begin = 8,
                                                                     .headers = headers,
                                                                     .count = COUNT}),
        TTD_OK);
    cr_assert_eq(write_snapshot(1), TTD_OK);
    free(references);
    free(classes);
    free(headers);
    for_each(TTD_KIND_REGIONS, check_region_batch);
    cr_assert_eq(seen, COUNT);
    cr_assert_eq(batches, 3);
    seen = batches = 0;
    for_each(TTD_KIND_REFERENCES, check_reference_batch);
    cr_assert_eq(seen, COUNT);
    cr_assert_eq(batches, 3);
    seen = batches = 0;
    for_each(TTD_KIND_CLASSES, check_class_batch);
    cr_assert_eq(seen, COUNT);
    cr_assert_eq(batches, 3);
    seen = batches = 0;
    for_each(TTD_KIND_BLOCK_HEADERS, check_headers_batch);
    cr_assert_eq(seen, COUNT);
    cr_assert_eq(batches, 3);
}

static void count_batch(const struct ttd_batch *batch)
{
    seen += batch->count;
}

/* All of it: what was buffered before comes first, and nothing waits for the next flush. */
Test(snapshots, a_growing_file_has_all_of_a_snapshot)
{
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .api = TTD_API_MALLOC,
                              .time_start = {1, 0},
                              .time_end = {1, 1},
                              .result = 1,
                              .address = 0x1000,
                              .size = 8};
    cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
    cr_assert_eq(ttd_writer_frames(writer, &(struct ttd_frames){.snapshot = 1}), TTD_OK);
    uint64_t before = ttd_writer_bytes(writer);
    cr_assert_eq(write_snapshot(1), TTD_OK);
    cr_assert_gt(ttd_writer_bytes(writer), before);
    static const enum ttd_kind kinds[] = {TTD_KIND_EVENTS, TTD_KIND_FRAMES, TTD_KIND_SNAPSHOTS};
    for (size_t i = 0; i < 3; i++) {
        seen = 0;
        for_each(kinds[i], count_batch);
        cr_expect_eq(seen, 1, "%s", ttd_kind_name(kinds[i]));
    }
}

static void check_frames_batch(const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++, seen++) {
        const struct ttd_frames *frames = &batch->u.frames[i];
        cr_assert_eq(frames->count, seen % 7 == 0 ? TTD_FRAMES_MAX : seen % 7 - 1);
        for (size_t k = 0; k < frames->count; k++)
            cr_assert_eq(frames->addresses[k], 1000 * seen + k);
    }
    batches++;
}

/* Addresses of a batch are of one array, which grows. */
Test(snapshots, frames_of_any_size_come_back)
{
    static uint64_t addresses[TTD_FRAMES_MAX];
    for (size_t n = 0; n < 300; n++) {
        for (size_t k = 0; k < TTD_FRAMES_MAX; k++)
            addresses[k] = 1000 * n + k;
        struct ttd_frames frames = {.snapshot = 1,
                                    .addresses = addresses,
                                    .count = n % 7 == 0 ? TTD_FRAMES_MAX : n % 7 - 1};
        cr_assert_eq(ttd_writer_frames(writer, &frames), TTD_OK);
    }
    cr_assert_eq(write_snapshot(1), TTD_OK);
    for_each(TTD_KIND_FRAMES, check_frames_batch);
    cr_assert_eq(seen, 300);
    cr_assert_gt(batches, 300 / 128, "large ones come in smaller batches");
}

static void check_counts(const struct ttd_batch *batch)
{
    static const uint64_t regions[] = {3, 0, 1};
    static const uint64_t references[] = {2, 0, 0};
    for (size_t i = 0; i < batch->count; i++, seen++) {
        cr_expect_eq(batch->u.snapshots[i].regions, regions[seen], "%zu", seen);
        cr_expect_eq(batch->u.snapshots[i].references, references[seen], "%zu", seen);
    }
}

/* Its own parts count, not those begun before, nor the numbers that the caller gives. */
Test(snapshots, a_snapshot_says_how_many_parts_it_has)
{
    cr_assert_eq(write_regions(1, 1, 2), TTD_OK);
    cr_assert_eq(write_regions(2, 1, 2), TTD_OK);
    cr_assert_eq(write_regions(2, 3, 1), TTD_OK);
    cr_assert_eq(write_reference(2, 1, 0), TTD_OK);
    cr_assert_eq(write_reference(2, 3, 0), TTD_OK);
    cr_assert_eq(write_snapshot(2), TTD_OK);
    struct ttd_snapshot none = {.number = 3,
                                .position = {1, 0},
                                .contents = TTD_SNAPSHOT_BLOCKS,
                                .regions = 7,
                                .references = 7};
    cr_assert_eq(ttd_writer_snapshot(writer, &none), TTD_OK);
    cr_assert_eq(write_regions(4, 1, 1), TTD_OK);
    cr_assert_eq(write_snapshot(4), TTD_OK);
    for_each(TTD_KIND_SNAPSHOTS, check_counts);
    cr_assert_eq(seen, 3);
}

/** The parts of snapshots that a trace has: how many of each kind, and their numbers. */
struct found {
    size_t regions;
    size_t references;
    size_t snapshots;
};

static struct found find(const struct ttd_memory_output *in)
{
    struct found found = {.regions = 0};
    struct ttd_reader *reader = fixture_reader(in, false);
    struct ttd_batch batch;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        found.regions += batch.kind == TTD_KIND_REGIONS ? batch.u.regions->count : 0;
        found.references += batch.kind == TTD_KIND_REFERENCES ? batch.u.references->count : 0;
        found.snapshots += batch.kind == TTD_KIND_SNAPSHOTS ? batch.count : 0;
    }
    ttd_reader_close(reader);
    return found;
}

Test(snapshots, recover_keeps_them)
{
    cr_assert_eq(write_regions(1, 1, 3), TTD_OK);
    cr_assert_eq(write_reference(1, 1, 0), TTD_OK);
    cr_assert_eq(write_snapshot(1), TTD_OK);
    size_t size = memory.size; /* as a recorder leaves it that was killed now */
    struct ttd_input input;
    struct ttd_memory_output recovered;
    struct ttd_output output;
    struct ttd_verdict verdict;
    cr_assert_eq(ttd_input_memory(memory.data, size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_output_memory(&recovered, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_recover(&input, &output, NULL, NULL, &verdict, NULL), TTD_OK);
    fixture_check_intact(recovered.data, recovered.size);
    struct found found = find(&recovered);
    cr_expect_eq(found.regions, 3);
    cr_expect_eq(found.references, 1);
    cr_expect_eq(found.snapshots, 1);
    ttd_memory_output_free(&recovered);
}
