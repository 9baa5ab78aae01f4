/* SPDX-License-Identifier: MIT */
#include "reach/stale.h"

#include <stdlib.h>

#include "base/sort.h"
#include "base/table.h"
#include "base/task.h"
#include "reach/builder.h"

_Static_assert(2 * ADDRESS_MARKS_PENDING <= ADDRESS_BATCH,
               "both ends of all are looked up at once");

#define ADDRESS_FIELD 0

/* Bytes of a granule; and the least and most granules that have bits of their own. */
#define GRANULE      256
#define GRANULES_MIN (UINT64_C(1) << 15)
#define GRANULES_MAX (UINT64_C(1) << 24)
/* Larger memory is looked up at once. */
#define GRANULES_LOOKED_AT 16

static size_t stale_marks_size(const struct address_marks *marks)
{
    return 2 * (size_t)marks->count * sizeof *marks->latest;
}

/* Fills the bits of the granules that have addresses: some 16 bits for each, so that few others
 * share them. */
static enum ttd_status stale_fill_granules(struct address_marks *marks)
{
    uint64_t granules = GRANULES_MIN;
    while (granules < GRANULES_MAX && granules < (uint64_t)marks->count * 16)
        granules *= 2;
    marks->granule_mask = granules - 1;
    marks->granules = calloc((size_t)(granules / 64), sizeof *marks->granules);
    if (!marks->granules)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < marks->count; i++) {
        uint64_t address = packed_table_get(&marks->table, i, ADDRESS_FIELD);
        uint64_t granule = address / GRANULE & marks->granule_mask;
        marks->granules[granule / 64] |= UINT64_C(1) << granule % 64;
    }
    return TTD_OK;
}

/* Whether an address may lie in a range of memory. */
static bool stale_may_have_address(const struct address_marks *marks, uint64_t first, uint64_t last)
{
    uint64_t granule = first / GRANULE, end = last / GRANULE;
    if (end - granule > GRANULES_LOOKED_AT)
        return true;
    for (; granule <= end; granule++) {
        uint64_t bit = granule & marks->granule_mask;
        if (marks->granules[bit / 64] >> bit % 64 & 1)
            return true;
    }
    return false;
}

enum ttd_status address_marks_begin(struct address_marks *marks)
{
    enum ttd_status status =
        address_index_init(&marks->index, &marks->table, ADDRESS_FIELD, marks->count);
    if (status != TTD_OK)
        return status;
    marks->latest = table_resize(NULL, 0, stale_marks_size(marks));
    return marks->latest ? stale_fill_granules(marks) : TTD_ERROR_NO_MEMORY;
}

void address_marks_free(struct address_marks *marks)
{
    if (marks->latest)
        table_free(marks->latest, stale_marks_size(marks));
    free(marks->granules);
    address_index_free(&marks->index);
    packed_table_free(&marks->table);
    *marks = (struct address_marks){.count = 0};
}

struct address_span address_marks_find(struct address_marks *marks, uint64_t address, uint64_t size)
{
    struct address_span span = {.first = 0, .end = marks->count};
    if (address)
        span.first = address_index_count(&marks->index, &marks->table, address - 1);
    if (!size)
        span.end = span.first;
    else if (size <= UINT64_MAX - address)
        span.end = address_index_count(&marks->index, &marks->table, address + size - 1);
    return span;
}

static void stale_mark_node(struct address_marks *marks, uint64_t node,
                            struct ttd_position position)
{
    /* Notes come in any order: blocks of a destroyed heap come late. */
    if (ttd_position_compare(position, marks->latest[node]) > 0)
        marks->latest[node] = position;
}

/* A segment tree: any number of addresses is marked at a few nodes that cover them. */
static void stale_mark_span(struct address_marks *marks, struct address_span span,
                            struct ttd_position position)
{
    uint64_t low = (uint64_t)span.first + marks->count;
    uint64_t high = (uint64_t)span.end + marks->count;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            stale_mark_node(marks, low++, position);
        if (high & 1)
            stale_mark_node(marks, --high, position);
    }
}

static uint64_t stale_last_byte(const struct address_note *note)
{
    uint64_t last_offset = note->size - 1, room = UINT64_MAX - note->address;
    return note->address + (last_offset < room ? last_offset : room);
}

static void stale_mark_pending(struct address_marks *marks)
{
    /* By note: the addresses before its first byte and of its last one, and the rows up to there.
     */
    uint64_t addresses[2 * ADDRESS_MARKS_PENDING];
    uint32_t counts[2 * ADDRESS_MARKS_PENDING];
    for (size_t i = 0; i < marks->pending_count; i++) {
        const struct address_note *note = &marks->pending[i];
        addresses[2 * i] = note->address - 1;
        addresses[2 * i + 1] = stale_last_byte(note);
    }
    address_index_count_batch(&marks->index, &marks->table, addresses, 2 * marks->pending_count,
                              counts);
    for (size_t i = 0; i < 2 * marks->pending_count; i += 2)
        __builtin_prefetch(&marks->latest[(size_t)counts[i] + marks->count], 1);
    for (size_t i = 0; i < marks->pending_count; i++)
        stale_mark_span(marks, (struct address_span){counts[2 * i], counts[2 * i + 1]},
                        marks->pending[i].position);
    marks->pending_count = 0;
}

bool address_marks_may_have(const struct address_marks *marks, uint64_t address, uint64_t size)
{
    struct address_note memory = {.address = address, .size = size};
    return marks->count && stale_may_have_address(marks, address, stale_last_byte(&memory));
}

void address_marks_note(struct address_marks *marks, struct address_note note)
{
    if (!note.size || !marks->count ||
        !stale_may_have_address(marks, note.address, stale_last_byte(&note)))
        return;
    marks->pending[marks->pending_count++] = note;
    if (marks->pending_count == ADDRESS_MARKS_PENDING)
        stale_mark_pending(marks);
}

struct ttd_position address_marks_now(struct address_marks *marks, uint32_t row)
{
    struct ttd_position latest = {0};
    if (marks->pending_count)
        stale_mark_pending(marks);
    for (uint64_t node = (uint64_t)row + marks->count; node; node /= 2)
        latest =
            ttd_position_compare(marks->latest[node], latest) > 0 ? marks->latest[node] : latest;
    return latest;
}

void address_marks_settle(struct address_marks *marks)
{
    stale_mark_pending(marks);
    /* From the root down, so that each leaf gets the notes of all nodes above it. */
    for (uint64_t i = 1; i < marks->count; i++) {
        stale_mark_node(marks, 2 * i, marks->latest[i]);
        stale_mark_node(marks, 2 * i + 1, marks->latest[i]);
    }
}

#define NODE_BITS     64
#define BIRTHS        4096
#define BIRTH_GRANULE 16

/* One half of the nodes, whose words are taken; the second one has the roots as well. */
struct half {
    const struct heap_reach *reach;
    bool has_roots;
    size_t count;
    struct value_range ranges[STALE_FIELDS];
    /* The rows of its words, and the address of the last one that was filled. */
    struct packed_table *table;
    size_t next;
    size_t end;
    uint64_t last;
    bool is_sorted;
};

/* Takes a word. */
typedef void word_function(struct half *half, uint64_t address, uint64_t edge, bool is_root);

static void stale_go_through(struct half *half, size_t begin, size_t end, word_function *take)
{
    const struct heap_reach *reach = half->reach;
    const struct graph *graph = &reach->graph;
    for (size_t node = begin; node < end; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->flags[i] & GRAPH_STALE)
                take(half,
                     heap_nodes_address(&reach->nodes, (uint32_t)node) +
                         edge_offset_in_source(&reach->offsets, i),
                     i, false);
        }
    }
    for (uint64_t i = 0; half->has_roots && i < graph->root_count; i++) {
        const struct heap_root_word *word = &reach->roots[graph->root_ids[i]];
        if (graph->root_flags[i] != REACH_ROOT_DROPPED && graph->root_flags[i] & GRAPH_STALE)
            take(half, heap_reach_region(reach, word->region)->begin + word->offset, i, true);
    }
}

static void measure_word(struct half *half, uint64_t address, uint64_t edge, bool is_root)
{
    value_range_widen(&half->ranges[STALE_ADDRESS], address);
    value_range_widen(&half->ranges[STALE_EDGE], edge);
    value_range_widen(&half->ranges[STALE_IS_ROOT], is_root);
    half->count++;
}

static enum ttd_status measure(void *context, size_t begin, size_t end)
{
    stale_go_through(context, begin, end, measure_word);
    return TTD_OK;
}

static void fill_word(struct half *half, uint64_t address, uint64_t edge, bool is_root)
{
    const uint64_t values[STALE_FIELDS] = {
        [STALE_ADDRESS] = address, [STALE_EDGE] = edge, [STALE_IS_ROOT] = is_root};
    packed_table_fill(half->table, half->next++, half->end, values, STALE_FIELDS);
    half->is_sorted = half->is_sorted && half->last <= address;
    half->last = address;
}

static enum ttd_status stale_words_fill(void *context, size_t begin, size_t end)
{
    stale_go_through(context, begin, end, fill_word);
    return TTD_OK;
}

static struct half stale_new_half(const struct heap_reach *reach, struct packed_table *table)
{
    return (struct half){.reach = reach,
                         .ranges = {value_range_none(), value_range_none(), value_range_none()},
                         .table = table,
                         .is_sorted = true};
}

/* Whether the words were filled in the order of their addresses. */
static bool stale_is_sorted(const struct half *first, const struct half *second,
                            const struct packed_table *table)
{
    return first->is_sorted && second->is_sorted &&
           (!first->count || !second->count ||
            first->last <= packed_table_get(table, first->count, STALE_ADDRESS));
}

/* Sorts the words: needed where roots are among them, or regions overlap. */
static enum ttd_status stale_words_sort(struct address_marks *words,
                                        const struct value_range *ranges)
{
    struct packed_table sorted;
    struct sort_key *keys = malloc(2 * (size_t)words->count * sizeof *keys);
    enum ttd_status status =
        keys ? packed_table_init(&sorted, words->count, ranges, STALE_FIELDS) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        for (uint32_t i = 0; i < words->count; i++)
            keys[i] = (struct sort_key){packed_table_get(&words->table, i, STALE_ADDRESS), i};
        sort_keys(keys, keys + words->count, words->count);
        for (uint32_t i = 0; i < words->count; i++) {
            packed_table_set(&sorted, i, STALE_ADDRESS, keys[i].value);
            for (unsigned field = STALE_EDGE; field < STALE_FIELDS; field++)
                packed_table_set(&sorted, i, field,
                                 packed_table_get(&words->table, keys[i].index, field));
        }
        packed_table_free(&words->table);
        words->table = sorted;
    }
    free(keys);
    return status;
}

enum ttd_status stale_words_take(struct stale_words *words, const struct heap_reach *reach)
{
    struct address_marks *marks = &words->words;
    struct half first = stale_new_half(reach, &marks->table), second = first;
    second.has_roots = true;
    *words = (struct stale_words){.ages = NULL};
    /* First measured: rows have as many bytes as the values in them need. */
    (void)halves_do(measure, &first, &second, reach->nodes.count);
    uint64_t count = (uint64_t)first.count + second.count;
    if (!count)
        return TTD_OK;
    if (count >= UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    marks->count = (uint32_t)count;
    for (unsigned field = 0; field < STALE_FIELDS; field++)
        value_range_join(&first.ranges[field], second.ranges[field]);
    enum ttd_status status =
        packed_table_init(&marks->table, marks->count, first.ranges, STALE_FIELDS);
    if (status != TTD_OK)
        return status;
    first.end = second.next = first.count;
    second.end = marks->count;
    (void)halves_do(stale_words_fill, &first, &second, reach->nodes.count);
    return stale_is_sorted(&first, &second, &marks->table) ? TTD_OK
                                                           : stale_words_sort(marks, first.ranges);
}

uint32_t stale_words_target(const struct stale_words *words, const struct graph *graph,
                            uint32_t word)
{
    uint64_t edge = packed_table_get(&words->words.table, word, STALE_EDGE);
    bool is_root = packed_table_get(&words->words.table, word, STALE_IS_ROOT);
    return is_root ? graph->root_targets[edge] : graph->targets[edge];
}

/* Finds the nodes that edges among the words lead to. Returns their number. */
static uint32_t stale_find_targets(struct stale_words *words, const struct heap_reach *reach)
{
    size_t groups = (size_t)reach->nodes.count / NODE_BITS + 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < words->words.count; i++) {
        if (packed_table_get(&words->words.table, i, STALE_IS_ROOT))
            continue;
        uint32_t target = stale_words_target(words, &reach->graph, i);
        words->is_target[target / NODE_BITS] |= UINT64_C(1) << target % NODE_BITS;
    }
    for (size_t i = 0; i < groups; i++) {
        words->targets_before[i] = count;
        count += (uint32_t)__builtin_popcountll(words->is_target[i]);
    }
    return count;
}

/* Lists the addresses of the targets, in the order of the nodes. */
static enum ttd_status stale_list_targets(struct stale_words *words, const struct heap_reach *reach)
{
    const struct heap_nodes *nodes = &reach->nodes;
    struct value_range range = {heap_nodes_address(nodes, 0),
                                heap_nodes_address(nodes, nodes->count - 1)};
    uint32_t row = 0;
    enum ttd_status status =
        packed_table_init(&words->targets.table, words->targets.count, &range, 1);
    for (uint32_t node = 0; status == TTD_OK && node < nodes->count; node++) {
        if (words->is_target[node / NODE_BITS] >> node % NODE_BITS & 1)
            packed_table_set(&words->targets.table, row++, 0, heap_nodes_address(nodes, node));
    }
    return status;
}

enum ttd_status stale_words_begin(struct stale_words *words, const struct heap_reach *reach)
{
    size_t groups = (size_t)reach->nodes.count / NODE_BITS + 1;
    enum ttd_status status = address_marks_begin(&words->words);
    if (status != TTD_OK)
        return status;
    words->ages = table_resize(NULL, 0, words->words.count);
    words->is_target = calloc(groups, sizeof *words->is_target);
    words->targets_before = calloc(groups, sizeof *words->targets_before);
    if (!words->ages || !words->is_target || !words->targets_before)
        return TTD_ERROR_NO_MEMORY;
    words->births = calloc(BIRTHS, sizeof *words->births);
    if (!words->births)
        return TTD_ERROR_NO_MEMORY;
    words->targets.count = stale_find_targets(words, reach);
    if (!words->targets.count)
        return TTD_OK;
    status = stale_list_targets(words, reach);
    return status == TTD_OK ? address_marks_begin(&words->targets) : status;
}

void stale_words_free(struct stale_words *words)
{
    if (words->ages)
        table_free(words->ages, words->words.count);
    free(words->births);
    free(words->is_target);
    free(words->targets_before);
    address_marks_free(&words->words);
    address_marks_free(&words->targets);
    *words = (struct stale_words){.ages = NULL};
}

static struct ttd_position stale_complement_of(struct ttd_position position)
{
    return (struct ttd_position){UINT64_MAX - position.sequence, UINT64_MAX - position.steps};
}

static void stale_note_birth(struct stale_words *words, const struct heap_block *block)
{
    /* A block of no bytes has an address as well. */
    struct address_note note = {block->address, block->size ? block->size : 1,
                                stale_complement_of(block->allocated)};
    struct address_note *last = &words->births[note.address / BIRTH_GRANULE % BIRTHS];
    if (last->address == note.address && last->size >= note.size &&
        ttd_position_compare(last->position, note.position) >= 0)
        return;
    *last = note;
    address_marks_note(&words->targets, note);
}

void stale_words_release(struct stale_words *words, const struct heap_block *block,
                         struct ttd_position position)
{
    address_marks_note(&words->words, (struct address_note){block->address, block->size, position});
    if (words->targets.count)
        stale_note_birth(words, block);
}

struct address_span stale_words_of_node(struct stale_words *words, const struct graph *graph,
                                        uint32_t node, uint64_t address, uint64_t size)
{
    const struct packed_table *table = &words->words.table;
    struct address_span span = address_marks_find(&words->words, address, size);
    for (uint32_t i = span.first; i < span.end; i++) {
        uint64_t edge = packed_table_get(table, i, STALE_EDGE);
        if (packed_table_get(table, i, STALE_IS_ROOT) || edge < graph->first[node] ||
            edge >= graph->first[node + 1])
            span.end = i;
    }
    return span;
}

bool stale_words_meet(void *context, uint64_t address, uint64_t size)
{
    const struct stale_words *words = context;
    return address_marks_may_have(&words->words, address, size) ||
           address_marks_may_have(&words->targets, address, size);
}

void stale_words_settle(struct stale_words *words)
{
    address_marks_settle(&words->words);
    if (words->targets.count)
        address_marks_settle(&words->targets);
}

struct ttd_position stale_words_first_birth(const struct stale_words *words,
                                            const struct heap_nodes *nodes, uint32_t target)
{
    uint64_t before =
        words->is_target[target / NODE_BITS] & ((UINT64_C(1) << target % NODE_BITS) - 1);
    uint32_t row =
        words->targets_before[target / NODE_BITS] + (uint32_t)__builtin_popcountll(before);
    struct ttd_position earlier = stale_complement_of(address_marks_latest(&words->targets, row));
    struct ttd_position own = heap_nodes_allocated(nodes, target);
    return ttd_position_compare(earlier, own) < 0 ? earlier : own;
}
