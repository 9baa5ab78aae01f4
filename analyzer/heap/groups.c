/* SPDX-License-Identifier: MIT */
#include "heap/groups.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/sort.h"

void heap_block_classes_free(struct heap_block_classes *classes)
{
    free(classes->classes);
    map_free(&classes->numbers);
    *classes = (struct heap_block_classes){.count = 0};
}

/** Compares two groups for qsort(): by total bytes, bytes and blocks, then by key. */
static int heap_group_compare(const void *a, const void *b)
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

/* Criteria of heap_group_compare(), the least important first. groups_order() sorts by each in
 * turn, the smallest value first. */
enum criterion { BY_KEY, BY_BLOCKS, BY_BYTES, BY_TOTAL, CRITERIA };

static inline uint64_t group_sort_value(const struct heap_group *group, enum criterion criterion)
{
    if (criterion == BY_KEY)
        return (uint64_t)group->key.stack << 32 | group->key.property;
    if (criterion == BY_TOTAL)
        return ~group->total_bytes;
    return criterion == BY_BLOCKS ? ~group->blocks : ~group->bytes;
}

/* Sorts as qsort() with heap_group_compare() would, in time linear in the number of groups. */
static void groups_order(struct heap_groups *groups, struct sort_key *keys, struct sort_key *spare)
{
    _Static_assert(sizeof *groups->items <= SORT_RECORD_MAX, "groups are moved as records");
    for (size_t i = 0; i < groups->count; i++)
        keys[i].index = (uint32_t)i;
    for (enum criterion criterion = BY_KEY; criterion < (groups->has_totals ? CRITERIA : BY_TOTAL);
         criterion++) {
        for (size_t i = 0; i < groups->count; i++)
            keys[i].value = group_sort_value(&groups->items[keys[i].index], criterion);
        sort_keys(keys, spare, groups->count);
    }
    sort_records(groups->items, sizeof *groups->items, keys, groups->count);
}

/** Sorts groups in the order of heap_group_compare(). @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status heap_groups_order(struct heap_groups *groups)
{
    if (groups->count < 2)
        return TTD_OK;
    struct sort_key *keys = malloc(2 * groups->count * sizeof *keys);
    if (!keys)
        return TTD_ERROR_NO_MEMORY;
    groups_order(groups, keys, keys + groups->count);
    free(keys);
    return TTD_OK;
}

#define NUMBERS_MIN 64

void heap_groups_init(struct heap_groups *groups)
{
    *groups = (struct heap_groups){.has_stacks = true, .hash = hash_key_new()};
}

void heap_groups_init_like(struct heap_groups *groups, const struct heap_groups *other)
{
    *groups = (struct heap_groups){.sample = other->sample,
                                   .split = other->split,
                                   .has_stacks = other->has_stacks,
                                   .classes = other->classes,
                                   .parents = other->parents,
                                   .kind = other->kind,
                                   .hash = other->hash};
}

/* Groups are no longer found by their keys. */
static void groups_forget_keys(struct heap_groups *groups)
{
    free(groups->numbers);
    groups->numbers = NULL;
    groups->number_capacity = 0;
}

void heap_groups_free(struct heap_groups *groups)
{
    free(groups->items);
    groups_forget_keys(groups);
    *groups = (struct heap_groups){0};
}

/* Finds the slot of a key's group; an empty one if it has none yet. */
static inline uint32_t *groups_find_number(const struct heap_groups *groups, struct heap_key key)
{
    size_t mask = groups->number_capacity - 1;
    size_t i = (size_t)hash_value(groups->hash, (uint64_t)key.stack << 32 | key.property) & mask;
    for (;; i = (i + 1) & mask) {
        uint32_t *number = &groups->numbers[i];
        if (!*number || (groups->items[*number - 1].key.stack == key.stack &&
                         groups->items[*number - 1].key.property == key.property))
            return number;
    }
}

/* Makes room for one more number. */
static enum ttd_status groups_reserve_number(struct heap_groups *groups)
{
    /* At most half full, so that few slots are looked at for a key. */
    if (groups->count < groups->number_capacity / 2)
        return TTD_OK;
    size_t capacity = groups->number_capacity ? 2 * groups->number_capacity : NUMBERS_MIN;
    uint32_t *numbers = calloc(capacity, sizeof *numbers);
    if (!numbers)
        return TTD_ERROR_NO_MEMORY;
    free(groups->numbers);
    groups->numbers = numbers;
    groups->number_capacity = capacity;
    for (size_t i = 0; i < groups->count; i++)
        *groups_find_number(groups, groups->items[i].key) = (uint32_t)i + 1;
    return TTD_OK;
}

/* The group of a key; NULL if there is none. */
static inline struct heap_group *groups_find(const struct heap_groups *groups, struct heap_key key)
{
    if (!groups->number_capacity)
        return NULL;
    uint32_t number = *groups_find_number(groups, key);
    return number ? &groups->items[number - 1] : NULL;
}

/* A new group of nothing, with the key, API and position of its first block. */
static enum ttd_status add_group(struct heap_groups *groups, const struct heap_group *first,
                                 struct heap_group **group)
{
    enum ttd_status status = grow_array((void **)&groups->items, &groups->capacity,
                                        groups->count + 1, sizeof *groups->items);
    if (status == TTD_OK)
        status = groups_reserve_number(groups);
    if (status != TTD_OK)
        return status;
    *group = &groups->items[groups->count];
    **group = (struct heap_group){.key = first->key,
                                  .first = first->first,
                                  .last = first->last,
                                  .address = first->address,
                                  .api = first->api,
                                  .kind = groups->kind};
    *groups_find_number(groups, first->key) = (uint32_t)++groups->count;
    return TTD_OK;
}

static struct heap_key groups_key_in(const struct heap_groups *groups,
                                     const struct heap_block *block)
{
    struct heap_key key = heap_key_of_block(groups->split, block);
    if (groups->split == HEAP_SPLIT_CLASS)
        key.property = heap_block_classes_get(groups->classes, block);
    if (!groups->has_stacks)
        key.stack = TTD_NONE;
    return key;
}

static bool groups_is_nested(const struct heap_groups *groups, const struct heap_block *block)
{
    return groups->parents && heap_parents_get(groups->parents, block->heap) != TTD_NONE;
}

void heap_groups_count_nested(const struct heap_groups *groups, uint64_t *blocks, uint64_t *bytes)
{
    for (size_t i = 0; i < groups->count; i++) {
        *blocks += groups->items[i].nested_blocks;
        *bytes = heap_add(*bytes, groups->items[i].nested_bytes);
    }
}

/* Returns the number of blocks that a block of a sample stands for: the inverse of its probability
 * of being recorded. */
static double groups_weight(uint64_t sample, const struct heap_block *block)
{
    /* Blocks of custom heaps are all recorded; one without bytes never is. */
    if (!sample || !block->size || block->api == TTD_API_LIVE_HEAP_ALLOC ||
        block->api == TTD_API_LIVE_HEAP_REALLOC)
        return 1;
    /* 1 - exp(-x) by its series for a small x, and from there by p(2x) = p(x) * (2 - p(x)). */
    double x = (double)block->size / (double)sample;
    unsigned doublings = 0;
    for (; x > 0.001 && doublings < 64; doublings++)
        x /= 2;
    double probability = x - x * x / 2 + x * x * x / 6;
    for (; doublings > 0; doublings--)
        probability *= 2 - probability;
    return 1 / probability;
}

/* Adds to the estimates the blocks that a block stands for, or takes them away again. */
static void groups_estimate(struct heap_groups *groups, struct heap_group *group,
                            const struct heap_block *block, int sign)
{
    double weight = sign * groups_weight(groups->sample, block);
    struct heap_estimate estimate = {weight, weight * (double)block->size};
    heap_estimate_add(&group->estimate, estimate);
    heap_estimate_add(&groups->estimate, estimate);
}

enum ttd_status heap_groups_add(struct heap_groups *groups, const struct heap_block *block)
{
    struct heap_key key = groups_key_in(groups, block);
    struct heap_group *group = groups_find(groups, key);
    if (!group) {
        struct heap_group first = {.key = key,
                                   .first = block->allocated,
                                   .last = block->allocated,
                                   .address = block->address,
                                   .api = block->api};
        enum ttd_status status = add_group(groups, &first, &group);
        if (status != TTD_OK)
            return status;
    }
    groups->latest = (uint32_t)(group - groups->items);
    group->blocks++;
    group->bytes = heap_add(group->bytes, block->size);
    if (groups_is_nested(groups, block)) {
        group->nested_blocks++;
        group->nested_bytes = heap_add(group->nested_bytes, block->size);
    }
    if (ttd_position_compare(block->allocated, group->first) < 0)
        group->address = block->address;
    heap_group_widen(group, block->allocated);
    groups->blocks++;
    groups->bytes = heap_add(groups->bytes, block->size);
    if (groups->sample)
        groups_estimate(groups, group, block, 1);
    return TTD_OK;
}

struct heap_group *heap_groups_find(const struct heap_groups *groups,
                                    const struct heap_block *block)
{
    return groups_find(groups, groups_key_in(groups, block));
}

struct heap_group *heap_groups_add_total(struct heap_groups *groups, const struct heap_block *owner,
                                         uint64_t size)
{
    struct heap_group *group = heap_groups_find(groups, owner);
    groups->has_totals = true;
    if (!group)
        return NULL;
    group->total_blocks++;
    group->total_bytes = heap_add(group->total_bytes, size);
    return group;
}

void heap_groups_subtract(struct heap_groups *groups, const struct heap_block *block)
{
    struct ttd_position allocated = block->allocated;
    struct heap_group *group = groups_find(groups, groups_key_in(groups, block));
    if (!group)
        return;
    if (ttd_position_compare(allocated, group->first) == 0 ||
        ttd_position_compare(allocated, group->last) == 0) {
        group->first = ttd_position_invalid();
        group->last = ttd_position_min();
    }
    group->blocks--;
    group->bytes -= block->size;
    if (groups_is_nested(groups, block)) {
        group->nested_blocks--;
        group->nested_bytes -= block->size;
    }
    groups->blocks--;
    groups->bytes -= block->size;
    if (groups->sample)
        groups_estimate(groups, group, block, -1);
}

void heap_lost_range_merge(struct heap_lost_range *sum, const struct heap_lost_range *range)
{
    if (ttd_position_compare(range->after, sum->after) < 0)
        sum->after = range->after;
    if (ttd_position_compare(range->before, sum->before) > 0)
        sum->before = range->before;
    if (range->released)
        sum->has_other_stacks |= range->has_other_stacks ||
                                 (sum->released && sum->release_stack != range->release_stack);
    if (range->released && ttd_position_compare(range->first_release, sum->first_release) < 0) {
        sum->first_release = range->first_release;
        sum->release_stack = range->release_stack;
    }
    if (range->released && ttd_position_compare(range->last_release, sum->last_release) > 0)
        sum->last_release = range->last_release;
    sum->released += range->released;
}

/* Makes one ring of two. */
static void groups_join_rings(struct heap_group *sum, const struct heap_group *group)
{
    if (sum->below && group->below) {
        struct heap_below *next = sum->below->next;
        sum->below->next = group->below->next;
        group->below->next = next;
    } else if (group->below) {
        sum->below = group->below;
    }
}

void heap_way_merge(struct heap_way *sum, struct heap_way way)
{
    if (sum->kind == HEAP_WAY_NONE)
        *sum = way;
    else if (way.kind != HEAP_WAY_NONE && (way.kind != sum->kind || way.offset != sum->offset))
        *sum = (struct heap_way){.kind = HEAP_WAY_SEVERAL};
}

static void groups_merge(void *target, const void *source)
{
    struct heap_group *sum = target;
    const struct heap_group *group = source;
    sum->blocks += group->blocks;
    sum->bytes = heap_add(sum->bytes, group->bytes);
    sum->total_blocks += group->total_blocks;
    sum->total_bytes = heap_add(sum->total_bytes, group->total_bytes);
    heap_estimate_add(&sum->estimate, group->estimate);
    sum->nested_blocks += group->nested_blocks;
    sum->nested_bytes = heap_add(sum->nested_bytes, group->nested_bytes);
    if (sum->lost && group->lost)
        heap_lost_range_merge(sum->lost, group->lost);
    groups_join_rings(sum, group);
    if (ttd_position_compare(group->first, sum->first) < 0) {
        sum->address = group->address;
        sum->holder = group->holder;
    }
    heap_way_merge(&sum->way, group->way);
    heap_group_widen(sum, group->first);
    heap_group_widen(sum, group->last);
}

enum ttd_status heap_groups_add_sum(struct heap_groups *groups, const struct heap_group *sum)
{
    struct heap_group *group = groups_find(groups, sum->key);
    enum ttd_status status = group ? TTD_OK : add_group(groups, sum, &group);
    if (status != TTD_OK)
        return status;
    groups_merge(group, sum);
    groups->blocks += sum->blocks;
    heap_estimate_add(&groups->estimate, sum->estimate);
    groups->bytes = heap_add(groups->bytes, sum->bytes);
    return TTD_OK;
}

enum ttd_status heap_groups_sort(struct heap_groups *groups)
{
    groups_forget_keys(groups);
    return heap_groups_order(groups);
}

enum ttd_status heap_groups_join(struct heap_groups *groups)
{
    struct hash_map by_other;
    map_init(&by_other);
    enum ttd_status status = TTD_OK;
    size_t count = 0;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct heap_group *group = &groups->items[i];
        uint32_t index = map_get(&by_other, group->key.property, 0);
        if (index != MAP_NONE) {
            groups_merge(&groups->items[index], group);
            continue;
        }
        status = map_set(&by_other, group->key.property, 0, (uint32_t)count);
        group->key.stack = TTD_NONE;
        groups->items[count++] = *group;
    }
    map_free(&by_other);
    groups->count = count;
    return status == TTD_OK ? heap_groups_sort(groups) : status;
}

static struct heap_amount group_amount(const void *record)
{
    const struct heap_group *group = record;
    return (struct heap_amount){group->bytes, group->bytes, group->blocks};
}

static void groups_recount(void *owner)
{
    struct heap_groups *groups = owner;
    groups->blocks = 0;
    groups->bytes = 0;
    groups->estimate = (struct heap_estimate){0, 0};
    for (size_t i = 0; i < groups->count; i++) {
        groups->blocks += groups->items[i].blocks;
        heap_estimate_add(&groups->estimate, groups->items[i].estimate);
        groups->bytes = heap_add(groups->bytes, groups->items[i].bytes);
    }
}

struct heap_site_table heap_groups_site_table(struct heap_groups *groups)
{
    return (struct heap_site_table){.owner = groups,
                                    .records = groups->items,
                                    .count = &groups->count,
                                    .size = sizeof *groups->items,
                                    .merge = groups_merge,
                                    .compare = heap_group_compare,
                                    .amount_of = group_amount,
                                    .recount = groups_recount};
}

void heap_tables_init(struct heap_tables *tables)
{
    static const enum heap_split splits[HEAP_TABLES] = {HEAP_SPLIT_NONE, HEAP_SPLIT_HEAP,
                                                        HEAP_SPLIT_THREAD, HEAP_SPLIT_SIZE};
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        heap_groups_init(&tables->by[i]);
        tables->by[i].split = splits[i];
        tables->by[i].has_stacks = i == HEAP_BY_STACK;
    }
}

void heap_tables_free(struct heap_tables *tables)
{
    for (size_t i = 0; i < HEAP_TABLES; i++)
        heap_groups_free(&tables->by[i]);
}

void heap_tables_clear(struct heap_tables *tables)
{
    heap_tables_free(tables);
    heap_tables_init(tables);
}

enum ttd_status heap_tables_add(struct heap_tables *tables, const struct heap_block *block)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < HEAP_TABLES && status == TTD_OK; i++)
        status = heap_groups_add(&tables->by[i], block);
    return status;
}

enum ttd_status heap_tables_sort(struct heap_tables *tables)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < HEAP_TABLES && status == TTD_OK; i++)
        status = heap_groups_sort(&tables->by[i]);
    return status;
}
