/* SPDX-License-Identifier: MIT */
/* Groups of moves: found by key, ordered, merged. */
#include <stdlib.h>
#include <string.h>

#include "analyses/activity/growth.h"
#include "analyses/activity/moves.h"
#include "base/grow.h"

void heap_move_table_init(struct heap_move_table *table)
{
    memset(table, 0, sizeof *table);
    map_init(&table->by_key);
}

void heap_move_table_free(struct heap_move_table *table)
{
    map_free(&table->by_key);
    free(table->groups);
    memset(table, 0, sizeof *table);
}

enum ttd_status heap_move_table_find(struct heap_move_table *table, struct heap_key key,
                                     struct heap_move_group **group)
{
    uint32_t index = map_get(&table->by_key, key.stack, key.property);
    if (index != MAP_NONE) {
        *group = &table->groups[index];
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->groups, &table->capacity, table->count + 1,
                                        sizeof *table->groups);
    if (status == TTD_OK)
        status = map_set(&table->by_key, key.stack, key.property, (uint32_t)table->count);
    if (status != TTD_OK)
        return status;
    *group = &table->groups[table->count++];
    **group = (struct heap_move_group){.key = key, .smallest = UINT64_MAX};
    return TTD_OK;
}

/* Keys differ, so that the order depends on nothing else. */
static int moves_compare_groups(const void *a, const void *b)
{
    const struct heap_move_group *x = a;
    const struct heap_move_group *y = b;
    uint64_t x_avoidable = heap_move_avoidable(&x->counts);
    uint64_t y_avoidable = heap_move_avoidable(&y->counts);
    if (x_avoidable != y_avoidable)
        return x_avoidable > y_avoidable ? -1 : 1;
    if (x->counts.copies.bytes_at_most != y->counts.copies.bytes_at_most)
        return x->counts.copies.bytes_at_most > y->counts.copies.bytes_at_most ? -1 : 1;
    if (x->counts.reallocs != y->counts.reallocs)
        return x->counts.reallocs > y->counts.reallocs ? -1 : 1;
    return heap_key_compare(x->key, y->key);
}

void heap_move_table_sort(struct heap_move_table *table)
{
    if (table->count)
        qsort(table->groups, table->count, sizeof *table->groups, moves_compare_groups);
}

void heap_move_add_avoidable(struct heap_move_counts *counts, int64_t bytes)
{
    if (__builtin_add_overflow(counts->avoidable, bytes, &counts->avoidable))
        counts->avoidable = bytes > 0 ? INT64_MAX : INT64_MIN;
}

static void add_counts(struct heap_move_counts *sum, const struct heap_move_counts *counts)
{
    sum->reallocs += counts->reallocs;
    sum->moved += counts->moved;
    sum->in_place += counts->in_place;
    sum->from_null += counts->from_null;
    sum->to_zero += counts->to_zero;
    sum->failed += counts->failed;
    sum->unfinished += counts->unfinished;
    sum->unknown_old += counts->unknown_old;
    sum->copies.remapped += counts->copies.remapped;
    sum->copies.unknown += counts->copies.unknown;
    sum->copies.bytes = heap_add(sum->copies.bytes, counts->copies.bytes);
    sum->copies.bytes_at_most = heap_add(sum->copies.bytes_at_most, counts->copies.bytes_at_most);
    heap_move_add_avoidable(sum, counts->avoidable);
}

static void moves_merge_groups(void *target, const void *source)
{
    struct heap_move_group *sum = target;
    const struct heap_move_group *group = source;
    add_counts(&sum->counts, &group->counts);
    heap_growth_merge(sum, group);
}

static struct heap_amount moves_group_amount(const void *record)
{
    const struct heap_move_counts *counts = &((const struct heap_move_group *)record)->counts;
    return (struct heap_amount){counts->copies.bytes_at_most, counts->copies.bytes_at_most,
                                counts->reallocs};
}

static void moves_recount(void *owner)
{
    struct heap_move_table *table = owner;
    table->total = (struct heap_move_counts){0};
    for (size_t i = 0; i < table->count; i++)
        add_counts(&table->total, &table->groups[i].counts);
}

struct heap_site_table heap_move_site_table(struct heap_move_table *table)
{
    return (struct heap_site_table){.owner = table,
                                    .records = table->groups,
                                    .count = &table->count,
                                    .size = sizeof *table->groups,
                                    .merge = moves_merge_groups,
                                    .compare = moves_compare_groups,
                                    .amount_of = moves_group_amount,
                                    .recount = moves_recount};
}
