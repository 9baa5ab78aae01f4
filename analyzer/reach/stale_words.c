/* SPDX-License-Identifier: MIT */
#include "reach/stale_words.h"

#include <stdlib.h>

#include "base/sort.h"
#include "base/table.h"
#include "reach/between.h"

_Static_assert(2 * STALE_RELEASES <= ADDRESS_BATCH, "both ends of all are looked up together");

/* Takes a word. */
typedef void word_function(void *context, uint64_t address, uint64_t edge, bool is_root);

static bool is_taken(uint8_t root_flags)
{
    return root_flags != REACH_ROOT_DROPPED && root_flags & GRAPH_STALE;
}

static void go_through(const struct heap_reach *reach, word_function *take, void *context)
{
    const struct graph *graph = &reach->graph;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->flags[i] & GRAPH_STALE)
                take(context,
                     heap_nodes_address(&reach->nodes, node) +
                         edge_offset_in_source(&reach->offsets, i),
                     i, false);
        }
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        const struct heap_root_word *word = &reach->roots[graph->root_ids[i]];
        if (is_taken(graph->root_flags[i]))
            take(context, heap_reach_region(reach, word->region)->begin + word->offset, i, true);
    }
}

struct measure {
    uint64_t count;
    struct value_range ranges[STALE_FIELDS];
};

static void measure_word(void *context, uint64_t address, uint64_t edge, bool is_root)
{
    struct measure *measure = context;
    value_range_widen(&measure->ranges[STALE_ADDRESS], address);
    value_range_widen(&measure->ranges[STALE_EDGE], edge);
    value_range_widen(&measure->ranges[STALE_IS_ROOT], is_root);
    measure->count++;
}

struct filler {
    struct packed_table *table;
    uint32_t count;
    uint64_t last;
    bool is_sorted;
};

static void fill_word(void *context, uint64_t address, uint64_t edge, bool is_root)
{
    struct filler *filler = context;
    const uint64_t values[STALE_FIELDS] = {
        [STALE_ADDRESS] = address, [STALE_EDGE] = edge, [STALE_IS_ROOT] = is_root};
    packed_table_fill(filler->table, filler->count++, values, STALE_FIELDS);
    filler->is_sorted = filler->is_sorted && filler->last <= address;
    filler->last = address;
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
    struct measure measure = {
        .count = 0, .ranges = {value_range_none(), value_range_none(), value_range_none()}};
    struct filler filler = {.table = &words->table, .is_sorted = true};
    *words = (struct stale_words){.count = 0};
    /* First measured: rows have as many bytes as the values in them need. */
    go_through(reach, measure_word, &measure);
    if (!measure.count)
        return TTD_OK;
    if (measure.count >= UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    words->count = (uint32_t)measure.count;
    enum ttd_status status =
        packed_table_init(&words->table, words->count, measure.ranges, STALE_FIELDS);
    if (status == TTD_OK) {
        go_through(reach, fill_word, &filler);
        if (!filler.is_sorted)
            status = sort(words, measure.ranges);
    }
    return status;
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
