/* SPDX-License-Identifier: MIT */
#include "analyses/state/compare.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_comparison_init(struct heap_comparison *comparison)
{
    *comparison = (struct heap_comparison){.changes = NULL};
    map_init(&comparison->by_key);
}

void heap_comparison_free(struct heap_comparison *comparison)
{
    free(comparison->changes);
    map_free(&comparison->by_key);
    *comparison = (struct heap_comparison){.changes = NULL};
}

static uint64_t compared_distance(const uint64_t sides[HEAP_SIDES])
{
    return sides[HEAP_OLD] > sides[HEAP_NEW] ? sides[HEAP_OLD] - sides[HEAP_NEW]
                                             : sides[HEAP_NEW] - sides[HEAP_OLD];
}

static enum ttd_status change_of(struct heap_comparison *comparison, uint64_t key_high,
                                 uint64_t key_low, struct heap_change **change)
{
    uint32_t index = map_get(&comparison->by_key, key_high, key_low);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&comparison->changes, &comparison->capacity,
                                            comparison->count + 1, sizeof *comparison->changes);
        index = (uint32_t)comparison->count;
        if (status == TTD_OK)
            status = map_set(&comparison->by_key, key_high, key_low, index);
        if (status != TTD_OK)
            return status;
        comparison->changes[comparison->count++] = (struct heap_change){.blocks = {0, 0}};
    }
    *change = &comparison->changes[index];
    return TTD_OK;
}

/* The first group of a key names it in reports. */
enum ttd_status heap_comparison_add(struct heap_comparison *comparison, enum heap_side side,
                                    uint64_t key_high, uint64_t key_low,
                                    const struct heap_group *group)
{
    struct heap_change *change;
    enum ttd_status status = change_of(comparison, key_high, key_low, &change);
    if (status != TTD_OK)
        return status;
    if (!change->blocks[side])
        change->keys[side] = group->key;
    change->blocks[side] += group->blocks;
    change->bytes[side] = heap_add(change->bytes[side], group->bytes);
    return TTD_OK;
}

enum heap_change_kind heap_change_kind_of(const struct heap_change *change)
{
    if (!change->blocks[HEAP_OLD])
        return HEAP_CHANGE_ADDED;
    if (!change->blocks[HEAP_NEW])
        return HEAP_CHANGE_GONE;
    const uint64_t *sides = compared_distance(change->bytes) ? change->bytes : change->blocks;
    if (sides[HEAP_OLD] == sides[HEAP_NEW])
        return HEAP_CHANGE_SAME;
    return sides[HEAP_OLD] < sides[HEAP_NEW] ? HEAP_CHANGE_GROWN : HEAP_CHANGE_SHRUNK;
}

/* Keys differ on one side at least, so that the order depends on nothing else. */
static int compare_compared(const void *a, const void *b)
{
    const struct heap_change *x = a;
    const struct heap_change *y = b;
    if (compared_distance(x->bytes) != compared_distance(y->bytes))
        return compared_distance(x->bytes) > compared_distance(y->bytes) ? -1 : 1;
    if (compared_distance(x->blocks) != compared_distance(y->blocks))
        return compared_distance(x->blocks) > compared_distance(y->blocks) ? -1 : 1;
    if (x->bytes[HEAP_NEW] != y->bytes[HEAP_NEW])
        return x->bytes[HEAP_NEW] > y->bytes[HEAP_NEW] ? -1 : 1;
    int order = heap_key_compare(x->keys[HEAP_NEW], y->keys[HEAP_NEW]);
    return order ? order : heap_key_compare(x->keys[HEAP_OLD], y->keys[HEAP_OLD]);
}

void heap_comparison_sort(struct heap_comparison *comparison)
{
    if (comparison->count)
        qsort(comparison->changes, comparison->count, sizeof *comparison->changes,
              compare_compared);
    for (size_t i = 0; i < comparison->count; i++)
        comparison->kinds[heap_change_kind_of(&comparison->changes[i])]++;
    map_free(&comparison->by_key);
}
