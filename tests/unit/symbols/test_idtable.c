/* SPDX-License-Identifier: MIT */
/* Records by identifier. */
#include <criterion/criterion.h>

#include "symbols/trace_definitions.h"

struct record {
    uint64_t value;
};

static struct idtable table;

static void begin(void)
{
    idtable_init(&table, sizeof(struct record));
}

static void finish(void)
{
    idtable_free(&table);
}

TestSuite(idtable, .init = begin, .fini = finish);

static struct record *add(ttd_id id)
{
    void *record;
    cr_assert_eq(idtable_add(&table, id, &record), TTD_OK);
    return record;
}

Test(idtable, has_nothing_at_first)
{
    cr_assert_null(idtable_get(&table, 1));
    cr_assert_eq(idtable_count(&table), 0);
}

Test(idtable, adds_records_of_zeros)
{
    cr_assert_eq(add(1)->value, 0);
}

Test(idtable, finds_each_record_by_its_identifier)
{
    for (ttd_id id = 1; id <= 1000; id++)
        add(id)->value = 10 * id;
    for (ttd_id id = 1; id <= 1000; id++)
        cr_assert_eq(((struct record *)idtable_get(&table, id))->value, 10 * id);
    cr_assert_eq(idtable_count(&table), 1000);
    cr_assert_null(idtable_get(&table, 0));
    cr_assert_null(idtable_get(&table, 1001));
}

Test(idtable, has_one_run_of_consecutive_identifiers)
{
    for (ttd_id id = 7; id <= 1000; id++)
        add(id);
    cr_assert_eq(table.run_count, 1);
}

Test(idtable, has_no_records_in_gaps)
{
    add(5)->value = 50;
    add(6)->value = 60;
    add(100)->value = 1000;

    cr_assert_null(idtable_get(&table, 4));
    cr_assert_null(idtable_get(&table, 7));
    cr_assert_null(idtable_get(&table, 99));
    cr_assert_eq(((struct record *)idtable_get(&table, 6))->value, 60);
    cr_assert_eq(((struct record *)idtable_get(&table, 100))->value, 1000);
    cr_assert_eq(idtable_count(&table), 3);
}

Test(idtable, takes_no_memory_for_gaps)
{
    add(1);
    add(UINT32_MAX);
    cr_assert_eq(table.run_count, 2);
    cr_assert_leq(table.runs[0].capacity + table.runs[1].capacity, 64);
    cr_assert_not_null(idtable_get(&table, UINT32_MAX));
}

Test(idtable, ignores_an_identifier_that_was_added)
{
    add(1)->value = 10;
    cr_assert_null(add(1));
    cr_assert_eq(((struct record *)idtable_get(&table, 1))->value, 10);
}

Test(idtable, ignores_an_identifier_out_of_order)
{
    add(5);
    cr_assert_null(add(4));
    cr_assert_null(idtable_get(&table, 4));
    cr_assert_eq(idtable_count(&table), 1);
}
