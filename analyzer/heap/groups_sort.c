/* SPDX-License-Identifier: MIT */
#include "heap/groups_sort.h"

#include <stdlib.h>

#include "base/sort.h"

int heap_group_compare(const void *a, const void *b)
{
    const struct heap_group *x = a;
    const struct heap_group *y = b;
    if (x->total_bytes != y->total_bytes)
        return x->total_bytes > y->total_bytes ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->blocks != y->blocks)
        return x->blocks > y->blocks ? -1 : 1;
    return heap_key_compare(x->key, y->key);
}

/* Criteria of heap_group_compare(), the least important first. order() sorts by each in turn, the
 * smallest value first. */
enum criterion { BY_KEY, BY_BLOCKS, BY_BYTES, BY_TOTAL, CRITERIA };

static inline uint64_t group_sort_value(const struct heap_group *group, enum criterion criterion)
{
    if (criterion == BY_KEY)
        return (uint64_t)group->key.stack << 32 | group->key.property;
    if (criterion == BY_TOTAL)
        return ~group->total_bytes;
    return criterion == BY_BLOCKS ? ~group->blocks : ~group->bytes;
}

/* Moves each group once, to where its key is. */
static void move_groups(struct heap_group *groups, struct sort_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct heap_group first = groups[i];
        size_t target = i;
        for (size_t source = keys[i].index; source != i; source = keys[target].index) {
            groups[target] = groups[source];
            keys[target].index = (uint32_t)target;
            target = source;
        }
        groups[target] = first;
        keys[target].index = (uint32_t)target;
    }
}

/* Sorts as qsort() with heap_group_compare() would, in time linear in the number of groups. */
static void order(struct heap_groups *groups, struct sort_key *keys, struct sort_key *spare)
{
    for (size_t i = 0; i < groups->count; i++)
        keys[i].index = (uint32_t)i;
    for (enum criterion criterion = BY_KEY; criterion < (groups->has_totals ? CRITERIA : BY_TOTAL);
         criterion++) {
        for (size_t i = 0; i < groups->count; i++)
            keys[i].value = group_sort_value(&groups->items[keys[i].index], criterion);
        sort_keys(keys, spare, groups->count);
    }
    move_groups(groups->items, keys, groups->count);
}

enum ttd_status heap_groups_order(struct heap_groups *groups)
{
    if (groups->count < 2)
        return TTD_OK;
    struct sort_key *keys = malloc(2 * groups->count * sizeof *keys);
    if (!keys)
        return TTD_ERROR_NO_MEMORY;
    order(groups, keys, keys + groups->count);
    free(keys);
    return TTD_OK;
}
