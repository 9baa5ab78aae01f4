/* SPDX-License-Identifier: MIT */
/*
 * Reports on one snapshot agree, whatever the trace: the dominator tree has the blocks that are
 * held, no root retains more than it leads to, a block has a path from a root if and only if a root
 * holds it, and every address of memory is described once.
 */
#include <stdlib.h>

#include "analyses/memory/heap_memory.h"
#include "analyses/reachability/referrers.h"
#include "analyses/reachability/retained.h"
#include "heap/site_table.h"
#include "../target.h"

enum { ADDRESSES_MAX = 16 };

static bool is_complete(enum ttd_status status)
{
    target_require(status == TTD_OK || status == TTD_ERROR_CORRUPT ||
                       status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_UNSUPPORTED,
                   "documented status of an analysis");
    return status == TTD_OK;
}

static void check_items(const struct heap_retained *retained,
                        const struct heap_retained_options *options)
{
    const struct heap_held *held = &retained->held;
    uint64_t blocks = 0;
    for (size_t i = 0; i < retained->count; i++) {
        const struct heap_retainer *retainer = &retained->records[i];
        blocks += retainer->blocks;
        target_require(retainer->retained_blocks <= held->blocks - held->unheld_blocks,
                       "nothing retains more than is held");
        if (options->depth) {
            target_require(retainer->depth <= (i ? retained->records[i - 1].depth + 1 : 0),
                           "a branch hangs on the one before it");
            target_require(retainer->depth + 1 < options->depth || !retainer->others,
                           "all branches");
        } else if (options->by == HEAP_RETAINED_BY_ROOT) {
            target_require(retainer->retained_blocks <= retainer->reachable_blocks &&
                               retainer->blocks <= retainer->reachable_blocks &&
                               retainer->retained_bytes <= retainer->reachable_bytes,
                           "a root leads to what it retains");
        } else {
            target_require(retainer->retained_blocks >= retainer->blocks &&
                               retainer->retained_bytes >= retainer->bytes,
                           "blocks retain themselves");
        }
        target_require(options->depth || !i ||
                           retainer[-1].retained_bytes >= retainer->retained_bytes,
                       "the largest come first");
    }
    if (options->depth || options->by != HEAP_RETAINED_BY_ROOT)
        target_require(blocks == held->blocks - held->unheld_blocks, "all that is held is told");
}

static void check_retained(struct ttd_reader *reader, enum heap_retained_by by, size_t depth)
{
    struct heap_retained retained;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_retained_options options = {
        .at = ttd_position_max(), .by = by, .limit = SIZE_MAX, .depth = depth};
    if (!is_complete(heap_retained_find(&trace, &options, &retained, &error)))
        return;
    check_items(&retained, &options);
    heap_retained_free(&retained);
}

static void check_tree(const struct heap_referrers *referrers, bool is_held)
{
    bool has_root = false;
    bool is_cut = false;
    target_require((referrers->distance != GRAPH_NONE) == is_held,
                   "a path leads to what is held, and to nothing else");
    for (size_t i = 0; i < referrers->count; i++) {
        const struct heap_referrer *retainer = &referrers->lines[i];
        target_require(retainer->depth <= (i ? retainer[-1].depth + 1 : 0),
                       "a word points at the block before it");
        target_require((retainer->kind == HEAP_REFERRER_MORE) <= (retainer->count > 0),
                       "more are some");
        has_root |= retainer->kind == HEAP_REFERRER_ROOT;
        is_cut |= retainer->is_too_deep;
    }
    target_require(is_held ? has_root || is_cut : !has_root, "what is held is held by a root");
}

static void check_referrers(struct ttd_reader *reader)
{
    struct heap_held held;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    if (!is_complete(heap_held_find(&trace, ttd_position_max(), &held, &error)))
        return;
    uint32_t step = 1 + held.reach.nodes.count / ADDRESSES_MAX;
    for (uint32_t node = 0; node < held.reach.nodes.count; node += step) {
        struct heap_referrers referrers;
        struct heap_referrers_options options = {.at = ttd_position_max(),
                                                 .address =
                                                     heap_nodes_address(&held.reach.nodes, node),
                                                 .depth = 64,
                                                 .width = 3};
        if (!is_complete(heap_referrers_find(&trace, &options, &referrers, &error)))
            continue;
        if (referrers.target == node)
            check_tree(&referrers, graph_retained_blocks(&held.dominators, node) > 0);
        heap_referrers_free(&referrers);
    }
    heap_held_free(&held);
}

static void check_memory(struct ttd_reader *reader)
{
    struct heap_memory memory;
    struct contents_part part;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_memory_options options = {.at = ttd_position_max(), .last = UINT64_MAX};
    uint64_t next = 0;
    bool is_over = false;
    if (!is_complete(heap_memory_find(&trace, &options, &memory, &error)))
        return;
    struct contents_cursor cursor =
        contents_cursor_begin(&memory.extents, &memory.pages, 0, UINT64_MAX);
    while (contents_cursor_next(&cursor, &part, &error) == TTD_OK) {
        target_require(!is_over && part.first == next && part.last >= part.first,
                       "every address comes once, in order");
        target_require((part.data != NULL) == (part.state == CONTENTS_BYTES), "bytes are there");
        is_over = part.last == UINT64_MAX;
        next = part.last + 1;
    }
    target_require(is_over, "every address comes");
    heap_memory_free(&memory);
}

static void check_search(struct ttd_reader *reader)
{
    static const uint8_t pattern[] = {0x01};
    struct heap_search search;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_search_options options = {.at = ttd_position_max(),
                                          .pattern = pattern,
                                          .pattern_size = sizeof pattern,
                                          .limit = ADDRESSES_MAX};
    if (!is_complete(heap_search_find(&trace, &options, &search, &error)))
        return;
    target_require(search.count <= search.total && search.count <= ADDRESSES_MAX, "places");
    for (size_t i = 1; i < search.count; i++)
        target_require(search.matches[i - 1].address < search.matches[i].address,
                       "places are in the order of addresses");
    heap_search_free(&search);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_reader *reader = target_open(bytes, size, 1);
    if (reader) {
        check_retained(reader, HEAP_RETAINED_BY_BLOCK, 0);
        check_retained(reader, HEAP_RETAINED_BY_STACK, 0);
        check_retained(reader, HEAP_RETAINED_BY_CLASS, 0);
        check_retained(reader, HEAP_RETAINED_BY_ROOT, 0);
        check_retained(reader, HEAP_RETAINED_BY_BLOCK, HEAP_RETAINED_DEPTH_MAX);
        check_referrers(reader);
        check_memory(reader);
        check_search(reader);
    }
    ttd_reader_close(reader);
    free(bytes);
    return 0;
}
