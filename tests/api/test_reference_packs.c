/* SPDX-License-Identifier: MIT */
/* Packs of references: what they hold, what they refuse, and that the writer writes it. */
#include "api/snapshots.h"

#include <ttdtrace/advanced.h>

static struct ttd_reference_pack *pack;

static void begin(void)
{
    refusals_begin();
    cr_assert_eq(ttd_reference_pack_create(NULL, &pack), TTD_OK);
}

static void finish(void)
{
    ttd_reference_pack_free(pack);
    refusals_end();
}

TestSuite(reference_packs, .init = begin, .fini = finish);

static enum ttd_status add(uint32_t snapshot, uint32_t region, uint64_t offset, size_t count)
{
    struct ttd_reference *references = calloc(count, sizeof *references);
    for (size_t i = 0; i < count; i++)
        references[i] = (struct ttd_reference){region, offset + 8 * i, 0x1010 + i};
    struct ttd_references list = {snapshot, references, count};
    enum ttd_status status = ttd_reference_pack_add(pack, &list);
    free(references);
    return status;
}

Test(reference_packs, are_written_beside_others)
{
    cr_assert_eq(write_regions(1, 1, 3), TTD_OK);
    cr_assert_eq(write_reference(1, 1, 0), TTD_OK);
    cr_assert_eq(add(1, 1, 8, 100), TTD_OK);
    cr_assert_eq(add(1, 2, 0, 100), TTD_OK);
    cr_assert_eq(ttd_reference_pack_count(pack), 200);
    cr_assert_eq(ttd_writer_reference_pack(writer, pack), TTD_OK);
    cr_assert_eq(ttd_reference_pack_count(pack), 0);
    cr_assert_eq(write_reference(1, 2, 800), TTD_OK);
    cr_assert_eq(add(1, 3, 0, 1), TTD_OK);
    cr_assert_eq(ttd_writer_reference_pack(writer, pack), TTD_OK);
    cr_assert_eq(write_snapshot(1), TTD_OK);
}

Test(reference_packs, may_be_empty)
{
    uint64_t bytes = ttd_writer_bytes(writer);
    cr_assert_eq(add(1, 1, 0, 0), TTD_OK);
    cr_assert_eq(ttd_writer_reference_pack(writer, pack), TTD_OK);
    cr_assert_eq(ttd_writer_bytes(writer), bytes);
    ttd_reference_pack_free(NULL);
}

Test(reference_packs, refuse_what_a_writer_refuses)
{
    struct ttd_reference zero = {.region = 1, .offset = 8000};
    cr_assert_eq(add(1, 1, 8, 100), TTD_OK);
    cr_expect_eq(add(1, 1, 8 * 100, 1), TTD_ERROR_ARGUMENT, "the last one again");
    cr_expect_eq(add(2, 1, 8 * 101, 1), TTD_ERROR_ARGUMENT, "another snapshot");
    cr_expect_eq(add(0, 1, 8 * 101, 1), TTD_ERROR_ARGUMENT, "no snapshot");
    cr_expect_eq(ttd_reference_pack_add(pack, &(struct ttd_references){1, &zero, 1}),
                 TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_reference_pack_add(pack, &(struct ttd_references){1, NULL, 1}),
                 TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_reference_pack_create(NULL, NULL), TTD_ERROR_ARGUMENT);
    cr_expect_eq(ttd_reference_pack_count(pack), 100);
    check_refused(ttd_writer_reference_pack(writer, pack), "undefined region of a reference");
    cr_expect_eq(ttd_reference_pack_count(pack), 100, "it is as it was");
    cr_assert_eq(write_regions(1, 1, 1), TTD_OK);
    cr_assert_eq(write_reference(1, 1, 8), TTD_OK);
    check_refused(ttd_writer_reference_pack(writer, pack), "order of references");
}

Test(reference_packs, are_one_chunk)
{
    cr_assert_eq(add(1, 1, 0, TTD_REFERENCE_PACK_MAX - 1), TTD_OK);
    cr_expect_eq(add(1, 2, 0, 2), TTD_ERROR_LIMIT);
    cr_assert_eq(add(1, 2, 0, 1), TTD_OK);
    cr_expect_eq(add(1, 3, 0, 1), TTD_ERROR_LIMIT);
    cr_assert_eq(write_regions(1, 1, 2), TTD_OK);
    cr_assert_eq(ttd_writer_reference_pack(writer, pack), TTD_OK);
    cr_assert_eq(write_snapshot(1), TTD_OK);
}

enum { REGIONS = 1000 };

/* Adds references of more and more regions until memory is exhausted. Returns their number. */
static uint32_t fill(void)
{
    enum ttd_status status = TTD_OK;
    uint32_t regions = 0;
    while (status == TTD_OK && regions < REGIONS) {
        status = add(1, regions + 1, 0, 1);
        regions += status == TTD_OK;
    }
    cr_assert(status == TTD_OK || status == TTD_ERROR_NO_MEMORY);
    cr_assert_eq(ttd_reference_pack_count(pack), regions, "a failure adds nothing");
    return regions;
}

/* Memory is exhausted when references are added, and not when those of which all is well are
 * written. */
Test(reference_packs, need_memory)
{
    uint32_t filled = 0, last = 0;
    for (uint64_t n = 0; filled < REGIONS; n++) {
        struct chaos_memory limited;
        chaos_memory_init(&limited, n);
        struct ttd_allocator allocator = chaos_allocator(&limited);
        ttd_reference_pack_free(pack);
        pack = NULL;
        enum ttd_status status = ttd_reference_pack_create(&allocator, &pack);
        cr_assert_eq(status, n == 0 ? TTD_ERROR_NO_MEMORY : TTD_OK);
        if (status == TTD_OK) {
            filled = fill();
            cr_assert_geq(filled, last);
            last = filled;
            if (filled == REGIONS) {
                cr_assert_eq(write_regions(1, 1, REGIONS), TTD_OK);
                cr_assert_eq(ttd_writer_reference_pack(writer, pack), TTD_OK);
                cr_assert_eq(write_snapshot(1), TTD_OK);
            }
            ttd_reference_pack_free(pack);
        }
        pack = NULL;
        cr_assert_eq(limited.blocks, 0, "nothing is left allocated");
    }
}
