/* SPDX-License-Identifier: MIT */
#include "reach/usual_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

#define NO_GROUP UINT32_MAX

/** Counts of one offset in a site or a group. */
struct usual_pair {
    /** Index of the site or group. */
    uint32_t owner;
    uint32_t offset;
    uint32_t blocks;
    /** The block that was counted last. */
    uint32_t node;
};

struct usual_pairs {
    /** Index by owner and offset. */
    struct hash_map index;
    struct usual_pair *items;
    size_t count;
    size_t capacity;
};

/** The search; fills the table. */
struct usual_search {
    struct usual_offsets *usual;
    const struct heap_reach *reach;
    const struct heap_stack_callers *callers;
    struct usual_pairs of_sites;
    struct usual_pairs of_groups;
};

static uint32_t usual_root_offset(const struct heap_reach *reach, uint64_t root)
{
    uint64_t offset = reach->roots[reach->graph.root_ids[root]].target_offset;
    return offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

/* Receiver of a pointer. */
typedef void usual_pointer(struct usual_offsets *usual, uint64_t *next, uint32_t target,
                           uint32_t offset);

static void usual_count(struct usual_offsets *usual, uint64_t *next, uint32_t target,
                        uint32_t offset)
{
    if (offset)
        next[target + 1]++;
    else
        usual->are_started[target] = true;
}

static void usual_place(struct usual_offsets *usual, uint64_t *next, uint32_t target,
                        uint32_t offset)
{
    if (offset)
        usual->offsets[next[target]++] = offset;
}

/* Goes through all pointers except pointers of a block into itself: those hold nothing. */
static void usual_each_pointer(struct usual_offsets *usual, const struct heap_reach *reach,
                               uint64_t *next, usual_pointer *see)
{
    const struct graph *graph = &reach->graph;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->targets[i] != node)
                see(usual, next, graph->targets[i], edge_offset_in_target(&reach->offsets, i));
        }
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        /* A pointer beyond doubt. */
        if (!(graph->root_flags[i] & GRAPH_STALE))
            see(usual, next, graph->root_targets[i], usual_root_offset(reach, i));
    }
}

/* Sorts the offsets of all pointers behind a start by their targets. */
static enum ttd_status usual_sort(struct usual_offsets *usual, const struct heap_reach *reach)
{
    uint32_t node_count = reach->graph.node_count;
    usual->first = calloc((size_t)node_count + 2, sizeof *usual->first);
    usual->are_started = calloc((size_t)node_count + 1, sizeof *usual->are_started);
    if (!usual->first || !usual->are_started)
        return TTD_ERROR_NO_MEMORY;
    uint64_t *next = usual->first + 1;
    usual_each_pointer(usual, reach, next, usual_count);
    for (uint32_t node = 0; node < node_count; node++)
        next[node + 1] += next[node];
    usual->offsets = malloc((size_t)next[node_count] * sizeof *usual->offsets + 1);
    if (!usual->offsets)
        return TTD_ERROR_NO_MEMORY;
    usual_each_pointer(usual, reach, next, usual_place);
    return TTD_OK;
}

/* Finds the pair of a site or group and an offset, or makes it. */
static enum ttd_status usual_add_pair(struct usual_pairs *pairs, uint32_t owner, uint32_t offset,
                                      struct usual_pair **pair)
{
    uint32_t index = map_get(&pairs->index, owner, offset);
    if (index == MAP_NONE) {
        index = (uint32_t)pairs->count;
        enum ttd_status status = grow_array((void **)&pairs->items, &pairs->capacity,
                                            pairs->count + 1, sizeof *pairs->items);
        if (status == TTD_OK)
            status = map_set(&pairs->index, owner, offset, index);
        if (status != TTD_OK)
            return status;
        pairs->items[pairs->count++] =
            (struct usual_pair){.owner = owner, .offset = offset, .node = HEAP_NO_NODE};
    }
    *pair = &pairs->items[index];
    return TTD_OK;
}

/* Finds a group by two numbers, or makes it. */
static enum ttd_status usual_group_of(struct usual_offsets *usual, uint64_t a, uint64_t b,
                                      bool is_function, uint32_t *group)
{
    *group = map_get(&usual->group_index, a, b);
    if (*group != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&usual->groups, &usual->group_capacity,
                                        usual->group_count + 1, sizeof *usual->groups);
    if (status == TTD_OK)
        status = map_set(&usual->group_index, a, b, (uint32_t)usual->group_count);
    if (status != TTD_OK)
        return status;
    *group = (uint32_t)usual->group_count;
    usual->groups[usual->group_count++] = (struct usual_group){.is_function = is_function};
    return TTD_OK;
}

/* The first number of the key of a group has a prefix in its upper half, so that keys of different
 * kinds differ: of stacks, of addresses, and of functions whose callee is another group or none. */
enum { PREFIX_STACK, PREFIX_ADDRESS, PREFIX_FUNCTION, PREFIX_CALLER };

static uint64_t usual_key(uint64_t prefix, uint32_t number)
{
    return prefix << 32 | number;
}

/* Finds the groups of a stack. Stacks without known functions are in the group of their own. */
static enum ttd_status usual_find_groups(const struct usual_search *search, ttd_id stack,
                                         struct usual_site *site)
{
    struct usual_offsets *usual = search->usual;
    struct heap_callers callers = {.count = 0};
    uint32_t *groups = site->groups;
    for (int i = 0; i < USUAL_GROUPS; i++)
        groups[i] = NO_GROUP;
    enum ttd_status status =
        usual_group_of(usual, usual_key(PREFIX_STACK, stack), 0, false, &groups[0]);
    if (status != TTD_OK || !search->callers->list)
        return status;
    search->callers->list(search->callers->context, stack, &callers);
    site->layouts = (uint8_t)((callers.is_sds ? 1U << USUAL_SDS : 0) |
                              (callers.is_hash_table ? 1U << USUAL_HASH_TABLE : 0) |
                              (callers.is_slice_page ? 1U << USUAL_SLICES : 0));
    site->has_instances = callers.is_instance;
    memcpy(site->headers, callers.headers, sizeof site->headers);
    site->trailer = callers.trailer;
    if (callers.count)
        status = usual_group_of(usual, usual_key(PREFIX_ADDRESS, callers.items[0].module),
                                callers.items[0].offset, true, &groups[1]);
    if (status == TTD_OK && callers.wrapper.module)
        status = usual_group_of(usual, usual_key(PREFIX_ADDRESS, callers.wrapper.module),
                                callers.wrapper.offset, true, &groups[USUAL_GROUPS - 1]);
    uint64_t prefix = PREFIX_FUNCTION;
    for (size_t i = 0; i < callers.count && status == TTD_OK; i++) {
        const struct heap_caller *caller = &callers.items[i];
        status = caller->function ? usual_group_of(usual, usual_key(prefix, caller->function),
                                                   UINT64_MAX, i == 0, &groups[2 + i])
                                  : usual_group_of(usual, usual_key(prefix, caller->module),
                                                   caller->offset, i == 0, &groups[2 + i]);
        prefix = (uint64_t)PREFIX_CALLER + groups[2 + i];
    }
    return status;
}

static enum ttd_status usual_site_of(struct usual_search *search, ttd_id stack, uint32_t *site)
{
    struct usual_offsets *usual = search->usual;
    *site = map_get(&usual->site_index, stack, 0);
    if (*site != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&usual->sites, &usual->site_capacity,
                                        usual->site_count + 1, sizeof *usual->sites);
    if (status == TTD_OK)
        status = map_set(&usual->site_index, stack, 0, (uint32_t)usual->site_count);
    if (status != TTD_OK)
        return status;
    *site = (uint32_t)usual->site_count;
    usual->sites[usual->site_count] = (struct usual_site){.layouts = 0};
    return usual_find_groups(search, stack, &usual->sites[usual->site_count++]);
}

/* Headers of sds, by offset, and the lengths of text that they are used for. */
static const struct {
    uint32_t offset;
    uint64_t text_min;
    uint64_t text_max;
} usual_sds[] = {{1, 0, 31},
                 {3, 0, UINT8_MAX},
                 {5, UINT8_MAX + 1, UINT16_MAX},
                 {9, UINT8_MAX + 1, UINT32_MAX},
                 {17, UINT8_MAX + 1, UINT64_MAX}};

/* Whether a pointer points behind a header of sds, before the text and its terminator. */
static bool usual_fits_sds(uint64_t size, uint32_t offset)
{
    for (size_t i = 0; i < sizeof usual_sds / sizeof usual_sds[0]; i++) {
        if (usual_sds[i].offset == offset)
            return size > offset && size - offset - 1 >= usual_sds[i].text_min &&
                   size - offset - 1 <= usual_sds[i].text_max;
    }
    return false;
}

#define TABLE_GROUP       16
#define TABLE_BUCKETS_MIN 4

/* Whether a pointer points at the control bytes of a table of hashbrown. They come after the data,
 * one for each bucket and TABLE_GROUP more. The data of all buckets have the same size, and are
 * padded to a multiple of TABLE_GROUP. */
static bool usual_fits_table(uint64_t size, uint32_t offset)
{
    if (offset % TABLE_GROUP || size <= (uint64_t)offset + TABLE_GROUP)
        return false;
    uint64_t buckets = size - offset - TABLE_GROUP;
    bool is_power = !(buckets & (buckets - 1));
    uint64_t item = offset / buckets;
    uint64_t padded = (item * buckets + TABLE_GROUP - 1) / TABLE_GROUP * TABLE_GROUP;
    return is_power && buckets >= TABLE_BUCKETS_MIN && item && padded == offset;
}

#define SLICE_PAGE_MIN     128
#define SLICE_PAGE_PADDING 16 /* left to the allocator */
#define SLICE_PAGE_INFO    32

/* Whether a pointer points at the record at the end of a page of GLib's slices, by which its
 * allocator holds the page. */
static bool usual_fits_slices(uint64_t size, uint32_t offset)
{
    uint64_t page = size + SLICE_PAGE_PADDING;
    return page >= SLICE_PAGE_MIN && !(page & (page - 1)) && offset == size - SLICE_PAGE_INFO;
}

static bool usual_fits(enum usual_layout layout, uint64_t size, uint32_t offset)
{
    switch (layout) {
    case USUAL_SDS:
        return usual_fits_sds(size, offset);
    case USUAL_HASH_TABLE:
        return usual_fits_table(size, offset);
    case USUAL_SLICES:
        return usual_fits_slices(size, offset);
    case USUAL_LAYOUTS:
        break;
    }
    return false;
}

/* Whether the word at an offset in a block points at the start of another block. */
static bool usual_has_pointer(const struct heap_reach *reach, uint32_t node, uint32_t offset)
{
    const struct graph *graph = &reach->graph;
    uint64_t low = graph->first[node], high = graph->first[node + 1];
    SEARCH_SORTED(low, high, middle, edge_offset_in_source(&reach->offsets, middle) < offset);
    return low < graph->first[node + 1] && graph->targets[low] != node &&
           edge_offset_in_source(&reach->offsets, low) == offset &&
           !edge_offset_in_target(&reach->offsets, low);
}

/* Counts a block, and the offsets that it is pointed at. */
static enum ttd_status usual_count_block(struct usual_search *search, uint32_t site, uint32_t node)
{
    struct usual_offsets *usual = search->usual;
    uint64_t size = heap_nodes_size(&search->reach->nodes, node);
    bool fits[USUAL_LAYOUTS] = {false};
    enum ttd_status status = TTD_OK;
    for (uint64_t i = usual->first[node]; i < usual->first[node + 1] && status == TTD_OK; i++) {
        struct usual_pair *pair;
        status = usual_add_pair(&search->of_sites, site, usual->offsets[i], &pair);
        if (status != TTD_OK)
            break;
        pair->blocks += pair->node != node;
        pair->node = node;
        for (int layout = 0; layout < USUAL_LAYOUTS; layout++)
            fits[layout] |= usual_fits((enum usual_layout)layout, size, usual->offsets[i]);
    }
    for (int i = 0; i < USUAL_GROUPS; i++) {
        if (usual->sites[site].groups[i] == NO_GROUP)
            continue;
        struct usual_group *group = &usual->groups[usual->sites[site].groups[i]];
        group->blocks++;
        group->pointed += usual->are_started[node] || usual->first[node] < usual->first[node + 1];
        group->started += usual->are_started[node];
        for (int layout = 0; layout < USUAL_LAYOUTS; layout++)
            group->fitting[layout] += fits[layout];
    }
    return status;
}

/* Sums the offsets of sites up by group: a block belongs to one site. */
static enum ttd_status usual_sum_up(struct usual_search *search)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < search->of_sites.count && status == TTD_OK; i++) {
        const struct usual_pair *of_site = &search->of_sites.items[i];
        const struct usual_site *site = &search->usual->sites[of_site->owner];
        for (int j = 0; j < USUAL_GROUPS && status == TTD_OK; j++) {
            struct usual_pair *pair;
            if (site->groups[j] == NO_GROUP)
                continue;
            status = usual_add_pair(&search->of_groups, site->groups[j], of_site->offset, &pair);
            if (status == TTD_OK)
                pair->blocks += of_site->blocks;
        }
    }
    return status;
}

/* Inserts an offset into the ordered list of a group's most frequent ones. */
static void usual_rank(struct usual_group *group, const struct usual_pair *pair)
{
    int place = USUAL_OFFSETS;
    if (pair->offset == UINT32_MAX)
        return;
    while (place && pair->blocks > group->offset_blocks[place - 1])
        place--;
    if (place == USUAL_OFFSETS)
        return;
    int moved = USUAL_OFFSETS - 1 - place;
    memmove(&group->offsets[place + 1], &group->offsets[place],
            (size_t)moved * sizeof group->offsets[0]);
    memmove(&group->offset_blocks[place + 1], &group->offset_blocks[place],
            (size_t)moved * sizeof group->offset_blocks[0]);
    group->offsets[place] = pair->offset;
    group->offset_blocks[place] = pair->blocks;
}

static bool usual_is_nine_of_ten(uint64_t part, uint64_t whole)
{
    return part * 10 >= whole * 9;
}

/* Drops all offsets but the first if that one is enough or the blocks have owners at their starts;
 * and those that are rare. */
static void usual_choose(struct usual_group *group)
{
    bool is_enough = usual_is_nine_of_ten(group->offset_blocks[0], group->pointed);
    bool has_starts = (uint64_t)group->started * 10 > group->pointed;
    uint32_t least = group->pointed < USUAL_BLOCKS ? 2 : USUAL_BLOCKS_FEW;
    if (least < group->pointed / 10)
        least = group->pointed / 10;
    int kept = 1;
    while (kept < USUAL_OFFSETS && !is_enough && !has_starts && group->offset_blocks[0] >= least &&
           group->offset_blocks[kept] >= least)
        kept++;
    for (int i = kept; i < USUAL_OFFSETS; i++)
        group->offsets[i] = 0;
}

static bool usual_has(const struct usual_group *group, uint32_t offset)
{
    for (int i = 0; i < USUAL_OFFSETS; i++) {
        if (group->offsets[i] == offset)
            return true;
    }
    return false;
}

/* Counts the blocks that are pointed at with the chosen offsets of their groups. */
static void usual_cover(struct usual_search *search, uint32_t site, uint32_t node)
{
    struct usual_offsets *usual = search->usual;
    for (int i = 0; i < USUAL_GROUPS; i++) {
        if (usual->sites[site].groups[i] == NO_GROUP)
            continue;
        struct usual_group *group = &usual->groups[usual->sites[site].groups[i]];
        uint64_t pointer = usual->first[node];
        while (pointer < usual->first[node + 1] && !usual_has(group, usual->offsets[pointer]))
            pointer++;
        group->covered += pointer < usual->first[node + 1];
    }
}

/* Whether so many blocks of a group are enough for a rule. */
static bool usual_is_enough(const struct usual_group *group, uint32_t blocks, bool may_be_few)
{
    if ((uint64_t)group->pointed * 2 < group->blocks)
        return false;
    if (group->pointed >= USUAL_BLOCKS)
        return usual_is_nine_of_ten(blocks, group->pointed);
    return may_be_few && group->pointed >= USUAL_BLOCKS_FEW && !group->started &&
           blocks == group->pointed;
}

static void usual_decide(struct usual_group *group)
{
    group->has_usual =
        group->offsets[0] && usual_is_enough(group, group->covered, group->is_function);
    for (int layout = 0; layout < USUAL_LAYOUTS; layout++) {
        if (usual_is_enough(group, group->fitting[layout], true))
            group->layouts |= (uint8_t)(1U << layout);
    }
}

static enum ttd_status usual_count_blocks(struct usual_search *search)
{
    const struct heap_nodes *nodes = &search->reach->nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < nodes->count && status == TTD_OK; node++) {
        uint32_t site;
        status = usual_site_of(search, heap_nodes_stack(nodes, node), &site);
        if (status == TTD_OK)
            status = usual_count_block(search, site, node);
    }
    return status == TTD_OK ? usual_sum_up(search) : status;
}

/* Finds the usual ones among the most frequent offsets. */
static void usual_decide_all(struct usual_search *search)
{
    const struct heap_nodes *nodes = &search->reach->nodes;
    struct usual_offsets *usual = search->usual;
    for (size_t i = 0; i < search->of_groups.count; i++)
        usual_rank(&usual->groups[search->of_groups.items[i].owner], &search->of_groups.items[i]);
    for (size_t i = 0; i < usual->group_count; i++)
        usual_choose(&usual->groups[i]);
    for (uint32_t node = 0; node < nodes->count; node++) {
        if (usual->first[node] < usual->first[node + 1])
            usual_cover(search, map_get(&usual->site_index, heap_nodes_stack(nodes, node), 0),
                        node);
    }
    for (size_t i = 0; i < usual->group_count; i++)
        usual_decide(&usual->groups[i]);
}

static void usual_free_pairs(struct usual_pairs *pairs)
{
    map_free(&pairs->index);
    free(pairs->items);
}

enum ttd_status usual_offsets_find(struct usual_offsets *usual, const struct heap_reach *reach,
                                   const struct heap_stack_callers *callers)
{
    struct usual_search search = {.usual = usual, .reach = reach, .callers = callers};
    *usual = (struct usual_offsets){.first = NULL};
    map_init(&usual->site_index);
    map_init(&usual->group_index);
    map_init(&search.of_sites.index);
    map_init(&search.of_groups.index);
    enum ttd_status status = usual_sort(usual, reach);
    if (status == TTD_OK)
        status = usual_count_blocks(&search);
    if (status == TTD_OK)
        usual_decide_all(&search);
    usual_free_pairs(&search.of_sites);
    usual_free_pairs(&search.of_groups);
    return status;
}

void usual_offsets_free(struct usual_offsets *usual)
{
    free(usual->first);
    free(usual->offsets);
    free(usual->are_started);
    free(usual->sites);
    free(usual->groups);
    map_free(&usual->site_index);
    map_free(&usual->group_index);
    *usual = (struct usual_offsets){.first = NULL};
}

/* Whether a pointer points behind a header of the block, or at the record at its end. */
static bool usual_is_beside_record(const struct usual_site *site, uint64_t size, uint32_t offset)
{
    for (int i = 0; i < HEAP_HEADERS; i++) {
        if (offset && site->headers[i] == offset)
            return true;
    }
    return site->trailer && size >= site->trailer && offset == size - site->trailer;
}

bool usual_offsets_have(const struct usual_offsets *usual, const struct heap_reach *reach,
                        uint32_t node, uint32_t offset)
{
    const struct heap_nodes *nodes = &reach->nodes;
    const struct usual_site *site =
        &usual->sites[map_get(&usual->site_index, heap_nodes_stack(nodes, node), 0)];
    unsigned layouts = site->layouts;
    if (usual_is_beside_record(site, heap_nodes_size(nodes, node), offset))
        return true;
    if (site->has_instances && usual_has_pointer(reach, node, offset))
        return true;
    for (int i = 0; i < USUAL_GROUPS; i++) {
        if (site->groups[i] == NO_GROUP)
            continue;
        const struct usual_group *group = &usual->groups[site->groups[i]];
        if (group->has_usual && usual_has(group, offset))
            return true;
        layouts |= group->layouts;
    }
    for (int layout = 0; layout < USUAL_LAYOUTS; layout++) {
        if (layouts & 1U << layout &&
            usual_fits((enum usual_layout)layout, heap_nodes_size(nodes, node), offset))
            return true;
    }
    return false;
}
