/* SPDX-License-Identifier: MIT */
/* The order of snapshots and their parts: what continues, what is refused, what counts as there. */
#include <criterion/criterion.h>

#include "codec/snapshots/snapshots.h"

static struct ttd_snapshot_order order;

static void begin(void)
{
    order = (struct ttd_snapshot_order){.number = 0};
}

TestSuite(snapshot_order, .init = begin);

static bool redefines;

static const char *regions(uint32_t snapshot, uint32_t first, size_t count)
{
    static const struct ttd_region none[8];
    struct ttd_regions list = {snapshot, first, none, count};
    return ttd_snapshot_order_regions(&order, &list, &redefines);
}

/** Two references, of which the first counts for what was before, the second for what comes. */
static const char *references(uint32_t snapshot, struct ttd_reference first,
                              struct ttd_reference last)
{
    struct ttd_reference array[] = {first, last};
    struct ttd_reference_range range = {snapshot, &array[0], &array[1], 2};
    return ttd_snapshot_order_references(&order, &range);
}

static const char *finish(uint32_t number)
{
    return ttd_snapshot_order_finish(&order, number, &redefines);
}

#define AT(region, offset)                                                                         \
    (struct ttd_reference)                                                                         \
    {                                                                                              \
        region, offset, 1                                                                          \
    }

Test(snapshot_order, snapshots_follow_each_other)
{
    cr_assert_null(regions(1, 1, 2));
    cr_assert_null(regions(1, 3, 1));
    cr_assert_null(references(1, AT(1, 0), AT(1, 8)));
    cr_assert_null(references(1, AT(1, 16), AT(3, 0)));
    cr_assert_null(finish(1));
    cr_assert_eq(order.regions, 3);
    cr_assert_eq(order.references, 4);
    cr_assert_null(ttd_snapshot_order_part(&order, 9));
    cr_assert_null(regions(9, 1, 1));
    cr_assert_null(references(9, AT(1, 0), AT(1, 8)));
    cr_assert_null(finish(9));
    cr_assert_null(finish(10), "a snapshot may have no parts");
    cr_assert_eq(order.regions, 0);
    cr_assert_eq(order.references, 0);
    cr_assert(!redefines);
}

Test(snapshot_order, a_snapshot_may_be_cut_short)
{
    cr_assert_null(regions(1, 1, 2));
    cr_assert_null(regions(2, 1, 2), "numbers of regions begin anew");
    cr_assert_null(finish(2));
    cr_assert_str_eq(regions(1, 3, 1), "part of a snapshot behind its end");
    cr_assert(redefines);
}

Test(snapshot_order, parts_do_not_go_back)
{
    cr_assert_null(regions(5, 1, 2));
    cr_assert_str_eq(ttd_snapshot_order_part(&order, 4), "order of snapshots");
    cr_assert_str_eq(finish(4), "order of snapshots");
    cr_assert(!redefines);
    cr_assert_null(finish(5), "what was wrong has changed nothing");
}

Test(snapshot_order, nothing_comes_behind_the_end)
{
    cr_assert_null(finish(5));
    cr_assert_str_eq(ttd_snapshot_order_part(&order, 5), "part of a snapshot behind its end");
    cr_assert_str_eq(references(5, AT(1, 0), AT(1, 8)), "part of a snapshot behind its end");
    cr_assert_str_eq(finish(5), "number of a snapshot");
    cr_assert(redefines);
    cr_assert_str_eq(finish(4), "number of a snapshot");
    cr_assert(redefines);
}

Test(snapshot_order, regions_are_dense)
{
    cr_assert_str_eq(regions(1, 2, 2), "order of regions");
    cr_assert(!redefines, "numbers 2 and 3 are new");
    cr_assert_null(regions(1, 4, 1), "and are there now");
    cr_assert_str_eq(regions(1, 4, 2), "order of regions");
    cr_assert(redefines);
    cr_assert_null(regions(1, 6, 1));
}

Test(snapshot_order, references_need_regions)
{
    cr_assert_str_eq(references(1, AT(1, 0), AT(1, 8)), "undefined region of a reference");
    cr_assert_null(regions(1, 1, 2));
    cr_assert_null(references(1, AT(1, 16), AT(2, 0)));
    cr_assert_str_eq(references(1, AT(2, 8), AT(3, 0)), "undefined region of a reference");
}

Test(snapshot_order, references_rise_from_chunk_to_chunk)
{
    cr_assert_null(regions(1, 1, 2));
    cr_assert_null(references(1, AT(1, 0), AT(2, 8)));
    cr_assert_str_eq(references(1, AT(2, 8), AT(2, 16)), "order of references");
    cr_assert_null(references(1, AT(2, 17), AT(2, 24)), "what was wrong was taken in");
    cr_assert_str_eq(references(1, AT(1, 16), AT(1, 24)), "order of references");
}
