/* SPDX-License-Identifier: MIT */
#include "reach/stale_words.h"

#include <stdlib.h>

#include "base/halves.h"
#include "base/sort.h"
#include "base/table.h"
#include "reach/between.h"

_Static_assert(2 * STALE_RELEASES <= ADDRESS_BATCH, "both ends of all are looked up together");

/* One half of the nodes, whose words are taken; the second one has the roots as well. */
struct half {
    const struct heap_reach *reach;
    bool has_roots;
    uint64_t count;
    struct value_range ranges[STALE_FIELDS];
    /* The rows of its words, and the address of the last one that was filled. */
    struct packed_table *table;
    uint64_t next;
    uint64_t end;
    uint64_t last;
    bool is_sorted;
};

/* Takes a word. */
typedef void word_function(struct half *half, uint64_t address, uint64_t edge, bool is_root);

static bool is_taken(uint8_t root_flags)
{
    return root_flags != REACH_ROOT_DROPPED && root_flags & GRAPH_STALE;
}

static void go_through(struct half *half, size_t begin, size_t end, word_function *take)
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
        if (is_taken(graph->root_flags[i]))
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
    go_through(context, begin, end, measure_word);
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

static enum ttd_status fill(void *context, size_t begin, size_t end)
{
    go_through(context, begin, end, fill_word);
    return TTD_OK;
}

static struct half new_half(const struct heap_reach *reach, struct packed_table *table)
{
    return (struct half){.reach = reach,
                         .ranges = {value_range_none(), value_range_none(), value_range_none()},
                         .table = table,
                         .is_sorted = true};
}

/* Whether the words were filled in the order of their addresses. */
static bool is_sorted(const struct half *first, const struct half *second,
                      const struct packed_table *table)
{
    return first->is_sorted && second->is_sorted &&
           (!first->count || !second->count ||
            first->last <= packed_table_get(table, first->count, STALE_ADDRESS));
}

/* Sorts the words, which is needed where roots are among them, or regions overlap. */
static enum ttd_status sort(struct stale_words *words, const struct value_range *ranges)
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
    struct half first = new_half(reach, &words->table), second = first;
    second.has_roots = true;
    *words = (struct stale_words){.count = 0};
    /* First measured: rows have as many bytes as the values in them need. */
    (void)halves_do(measure, &first, &second, reach->nodes.count);
    uint64_t count = first.count + second.count;
    if (!count)
        return TTD_OK;
    if (count >= UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    words->count = (uint32_t)count;
    for (unsigned field = 0; field < STALE_FIELDS; field++)
        value_range_join(&first.ranges[field], second.ranges[field]);
    enum ttd_status status =
        packed_table_init(&words->table, words->count, first.ranges, STALE_FIELDS);
    if (status != TTD_OK)
        return status;
    first.end = second.next = first.count;
    second.end = count;
    (void)halves_do(fill, &first, &second, reach->nodes.count);
    return is_sorted(&first, &second, &words->table) ? TTD_OK : sort(words, first.ranges);
}

enum ttd_status stale_words_begin(struct stale_words *words)
{
    enum ttd_status status =
        address_index_init(&words->index, &words->table, STALE_ADDRESS, words->count);
    if (status != TTD_OK)
        return status;
    words->released = table_resize(NULL, 0, 2 * (size_t)words->count * sizeof *words->released);
    words->is_copied = table_resize(NULL, 0, (size_t)words->count * sizeof *words->is_copied);
    return words->released && words->is_copied ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void stale_words_free(struct stale_words *words)
{
    if (words->released)
        table_free(words->released, 2 * (size_t)words->count * sizeof *words->released);
    if (words->is_copied)
        table_free(words->is_copied, (size_t)words->count * sizeof *words->is_copied);
    address_index_free(&words->index);
    packed_table_free(&words->table);
    *words = (struct stale_words){.count = 0};
}

struct span {
    uint32_t first;
    uint32_t end;
};

/* The words that begin in a range. */
static struct span find(struct stale_words *words, uint64_t address, uint64_t size)
{
    struct span span = {.first = 0, .end = words->count};
    if (address)
        span.first = address_index_count(&words->index, &words->table, address - 1);
    if (!size)
        span.end = span.first;
    else if (size <= UINT64_MAX - address)
        span.end = address_index_count(&words->index, &words->table, address + size - 1);
    return span;
}

static void set(struct stale_words *words, uint64_t word, struct ttd_position position)
{
    /* Blocks of a destroyed heap are told of late. */
    if (ttd_position_compare(position, words->released[word]) > 0)
        words->released[word] = position;
}

/* Notes a release of words. A segment tree: any number of them is noted at a few nodes that cover
 * them. */
static void note(struct stale_words *words, struct span span, struct ttd_position position)
{
    uint64_t low = (uint64_t)span.first + words->count;
    uint64_t high = (uint64_t)span.end + words->count;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            set(words, low++, position);
        if (high & 1)
            set(words, --high, position);
    }
}

/* Notes the pending releases. */
static void note_pending(struct stale_words *words)
{
    /* By release: the addresses before its first byte and of its last one, and the words up to
     * there. */
    uint64_t addresses[2 * STALE_RELEASES];
    uint32_t counts[2 * STALE_RELEASES];
    for (size_t i = 0; i < words->pending_count; i++) {
        const struct stale_release *release = &words->pending[i];
        uint64_t last_offset = release->size - 1, room = UINT64_MAX - release->address;
        addresses[2 * i] = release->address - 1;
        addresses[2 * i + 1] = release->address + (last_offset < room ? last_offset : room);
    }
    address_index_count_batch(&words->index, &words->table, addresses, 2 * words->pending_count,
                              counts);
    for (size_t i = 0; i < 2 * words->pending_count; i += 2)
        __builtin_prefetch(&words->released[(size_t)counts[i] + words->count], 1);
    for (size_t i = 0; i < words->pending_count; i++)
        note(words, (struct span){counts[2 * i], counts[2 * i + 1]}, words->pending[i].position);
    words->pending_count = 0;
}

void stale_words_release(struct stale_words *words, uint64_t address, uint64_t size,
                         struct ttd_position position)
{
    if (!size)
        return;
    words->pending[words->pending_count++] = (struct stale_release){address, size, position};
    if (words->pending_count == STALE_RELEASES)
        note_pending(words);
}

void stale_words_copy(struct stale_words *words, const struct graph *graph, uint32_t node,
                      uint64_t address, uint64_t size)
{
    struct span span = find(words, address, size);
    for (uint32_t i = span.first; i < span.end; i++) {
        uint64_t edge = packed_table_get(&words->table, i, STALE_EDGE);
        if (packed_table_get(&words->table, i, STALE_IS_ROOT) || edge < graph->first[node] ||
            edge >= graph->first[node + 1])
            break;
        words->is_copied[i] = true;
    }
}

void stale_words_settle(struct stale_words *words)
{
    note_pending(words);
    /* From the root down, so that each word gets what was noted at any node above it. */
    for (uint64_t i = 1; i < words->count; i++) {
        set(words, 2 * i, words->released[i]);
        set(words, 2 * i + 1, words->released[i]);
    }
}
