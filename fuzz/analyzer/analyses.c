/* SPDX-License-Identifier: MIT */
/*
 * The analyses of a trace agree, whatever the trace: the same blocks are live at its end, sums
 * equal those of their parts, the peak is the highest point of the timeline, and a heap compared
 * with itself has not changed.
 */
#include <stdlib.h>

#include "analyses/state/diff.h"
#include "analyses/errors/errors.h"
#include "analyses/state/history.h"
#include "analyses/reachability/leaks.h"
#include "analyses/activity/moves.h"
#include "analyses/state/peak.h"
#include "analyses/state/state.h"
#include "analyses/activity/timeline.h"
#include "../target.h"

enum { POINTS = 12, CHAINS = 4, ADDRESSES_MAX = 16 };

static bool is_complete(enum ttd_status status)
{
    target_require(status == TTD_OK || status == TTD_ERROR_CORRUPT ||
                       status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_UNSUPPORTED,
                   "documented status of an analysis");
    return status == TTD_OK;
}

static bool is_sum(struct heap_sum sum, uint64_t bytes)
{
    return heap_sum_value(sum) == bytes;
}

static void check_groups(const struct heap_groups *groups)
{
    uint64_t blocks = 0;
    struct heap_sum bytes = {0, 0};
    for (size_t i = 0; i < groups->count; i++) {
        blocks += groups->items[i].blocks;
        heap_sum_add(&bytes, groups->items[i].bytes);
    }
    target_require(blocks == groups->blocks, "blocks of groups");
    target_require(is_sum(bytes, groups->bytes), "bytes of groups");
}

/* ---- The end ---- */

/* By address; where several heaps have one, by heap. */
static bool is_before(const struct heap_block *a, const struct heap_block *b)
{
    return a->address < b->address || (a->address == b->address && a->heap < b->heap);
}

static void check_state(const struct heap_state *state)
{
    struct heap_sum bytes = {0, 0};
    for (size_t i = 0; i < state->block_count; i++) {
        heap_sum_add(&bytes, state->blocks[i].size);
        target_require(!i || is_before(&state->blocks[i - 1], &state->blocks[i]), "by address");
    }
    for (unsigned i = 0; i < HEAP_TABLES; i++) {
        const struct heap_groups *groups = &state->tables.by[i];
        check_groups(groups);
        target_require(groups->blocks == state->block_count, "blocks of a table");
        target_require(is_sum(bytes, groups->bytes), "bytes of a table");
    }
}

static void check_leaks(struct ttd_reader *reader, const struct heap_state *state)
{
    struct heap_leaks leaks;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_leaks_options options = {.at = ttd_position_max(), .tells_when = true};
    if (!is_complete(heap_leaks_find(&trace, &options, &leaks, &error)))
        return;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        check_groups(&leaks.kinds[kind]);
    check_groups(&leaks.runtime.groups);
    target_require(heap_leaks_blocks(&leaks) + leaks.runtime.groups.blocks == state->block_count,
                   "leaks and what the runtimes keep are all that is live");
    heap_leaks_free(&leaks);
}

/* Whether a live block is among the owners of its address. */
static bool has_owner(const struct heap_history *history, const struct heap_block *block)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct heap_owner *owner = &history->owners[i];
        if (owner->block.event == block->event && owner->block.size == block->size &&
            !ttd_position_is_valid(owner->released.position))
            return true;
    }
    return history->count < history->total;
}

static void check_history(struct ttd_reader *reader, const struct heap_state *state)
{
    size_t step = 1 + state->block_count / ADDRESSES_MAX;
    for (size_t i = 0; i < state->block_count; i += step) {
        uint64_t address = state->blocks[i].address;
        struct heap_trace trace = {.reader = reader};
        struct heap_history history;
        struct heap_history_options options = {.first = address, .last = address, .max = 8};
        struct ttd_error error;
        if (!is_complete(heap_history_find(&trace, &options, &history, &error)))
            continue;
        target_require(has_owner(&history, &state->blocks[i]), "a live block owns its address");
        target_require(history.count <= history.total && history.count <= options.max, "owners");
        heap_history_free(&history);
    }
}

/* A live block's address has a live owner, the one that was acquired last. */
static void check_owners(struct ttd_reader *reader, const struct heap_state *state)
{
    size_t step = 1 + state->block_count / ADDRESSES_MAX;
    for (size_t i = 0; i < state->block_count; i += step) {
        const struct heap_block *block = &state->blocks[i];
        struct heap_trace trace = {.reader = reader};
        struct heap_owners_options options = {block->address, ttd_position_max()};
        struct heap_owners owners;
        struct ttd_error error;
        if (!is_complete(heap_owners_find(&trace, &options, &owners, &error)))
            continue;
        target_require(owners.has_live && !owners.has_after, "a live block is its address's owner");
        target_require(ttd_position_compare(owners.live.block.allocated, block->allocated) >= 0 &&
                           heap_block_covers(&owners.live.block, block->address, block->address),
                       "the owner acquired last");
    }
}

/* ---- Over time ---- */

/* Reads which heaps lie in blocks of others. */
static void read_parents(struct ttd_reader *reader, struct heap_parents *parents)
{
    struct ttd_batch batch;
    if (ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_HEAP_PARENTS)) != TTD_OK)
        return;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
        target_require(heap_parents_add(parents, &batch) == TTD_OK, "a parent is added");
}

/* Adds the sums of groups by heap, without blocks that lie in others: those are counted once. */
static void add_outer(struct ttd_reader *reader, const struct heap_groups *by_heap,
                      uint64_t *blocks, struct heap_sum *bytes)
{
    struct heap_parents parents = {.by_heap = {0}};
    read_parents(reader, &parents);
    for (size_t i = 0; i < by_heap->count; i++) {
        const struct heap_group *group = &by_heap->items[i];
        if (heap_parents_get(&parents, group->key.property) != TTD_NONE)
            continue;
        *blocks += group->blocks;
        heap_sum_add(bytes, group->bytes);
    }
    heap_parents_free(&parents);
}

static void check_timeline(struct ttd_reader *reader, enum heap_axis axis,
                           const struct heap_state *state, const struct heap_peak *peak)
{
    struct heap_timeline timeline;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_timeline_options options = {.axis = axis, .max = POINTS};
    if (!is_complete(heap_timeline_find(&trace, &options, &timeline, &error)))
        return;
    target_require(timeline.count <= POINTS, "as many points as there may be");
    struct heap_sum highest = {0, 0};
    for (size_t i = 0; i < timeline.count; i++) {
        const struct heap_point *point = &timeline.points[i];
        target_require(!heap_sum_is_less(point->peak, point->live.bytes),
                       "no more is live at the end of a point than at its peak");
        if (heap_sum_is_less(highest, point->peak))
            highest = point->peak;
    }
    if (timeline.count) {
        const struct heap_total *last = &timeline.points[timeline.count - 1].live;
        uint64_t blocks = 0;
        struct heap_sum bytes = {0, 0};
        add_outer(reader, &state->tables.by[HEAP_BY_HEAP], &blocks, &bytes);
        target_require(last->blocks == blocks, "blocks at the end of the timeline");
        target_require(is_sum(last->bytes, heap_sum_value(bytes)),
                       "bytes at the end of the timeline");
    }
    target_require(highest.high == peak->bytes.high && highest.low == peak->bytes.low,
                   "the peak is the highest point");
    heap_timeline_free(&timeline);
}

static void check_peak(struct ttd_reader *reader, const struct heap_state *state)
{
    struct heap_peak_state peak_state;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_peak_state_options options = {.split = HEAP_SPLIT_HEAP};
    if (!is_complete(heap_peak_state_find(&trace, &options, &peak_state, &error)))
        return;
    check_groups(&peak_state.groups);
    check_groups(&peak_state.runtime.groups);
    uint64_t blocks = 0;
    struct heap_sum bytes = {0, 0};
    add_outer(reader, &peak_state.groups, &blocks, &bytes);
    add_outer(reader, &peak_state.runtime.groups, &blocks, &bytes);
    target_require(blocks == peak_state.peak.blocks, "whose the peak is, is all of it");
    check_timeline(reader, HEAP_AXIS_TIME, state, &peak_state.peak);
    check_timeline(reader, HEAP_AXIS_POSITION, state, &peak_state.peak);
    heap_peak_state_free(&peak_state);
}

/* ---- Calls ---- */

static void check_errors(struct ttd_reader *reader)
{
    struct heap_errors errors;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_errors_options options = {.remembered = 4};
    if (!is_complete(heap_errors_find(&trace, &options, &errors, &error)))
        return;
    uint64_t calls = 0;
    for (size_t i = 0; i < errors.count; i++) {
        const struct heap_finding *finding = &errors.findings[i];
        calls += finding->count;
        target_require(finding->count > 0, "a finding has a call");
        target_require(heap_error_name(finding->kind) != NULL, "a finding has a name");
    }
    target_require(errors.calls == calls, "calls of all findings");
    heap_errors_free(&errors);
}

static uint64_t sum_of(const struct heap_move_counts *counts)
{
    return counts->moved + counts->in_place + counts->from_null + counts->to_zero + counts->failed +
           counts->unfinished;
}

static void check_table(const struct heap_move_table *table)
{
    uint64_t reallocs = 0;
    for (size_t i = 0; i < table->count; i++)
        reallocs += table->groups[i].counts.reallocs;
    target_require(reallocs == table->total.reallocs, "reallocations of groups");
}

static void check_moves(struct ttd_reader *reader)
{
    struct heap_moves moves;
    struct ttd_error error;
    struct heap_trace trace = {.reader = reader};
    struct heap_moves_options options = {.chains = CHAINS};
    if (!is_complete(heap_moves_find(&trace, &options, &moves, &error)))
        return;
    check_table(&moves.reallocs);
    check_table(&moves.regrown);
    target_require(sum_of(&moves.reallocs.total) == moves.reallocs.total.reallocs,
                   "all reallocations are of some kind");
    target_require(moves.worst_count <= CHAINS, "as many chains as were asked for");
    for (size_t i = 1; i < moves.worst_count; i++)
        target_require(moves.worst[i - 1].avoidable >= moves.worst[i].avoidable,
                       "the worst chain comes first");
    heap_moves_free(&moves);
}

/* ---- Two heaps ---- */

static void check_comparison(const struct heap_groups *groups)
{
    struct heap_comparison comparison;
    heap_comparison_init(&comparison);
    for (int side = HEAP_OLD; side < HEAP_SIDES; side++)
        for (size_t i = 0; i < groups->count; i++)
            target_require(heap_comparison_add(&comparison, (enum heap_side)side, i, 1,
                                               &groups->items[i]) == TTD_OK,
                           "a group is added");
    heap_comparison_sort(&comparison);
    target_require(comparison.kinds[HEAP_CHANGE_SAME] == comparison.count &&
                       comparison.count == groups->count,
                   "nothing has changed");
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < comparison.count; i++) {
        blocks += comparison.changes[i].blocks[HEAP_OLD];
        bytes = heap_add(bytes, comparison.changes[i].bytes[HEAP_NEW]);
    }
    target_require(blocks == groups->blocks && bytes == groups->bytes, "sums of a comparison");
    heap_comparison_free(&comparison);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct ttd_input input = target_input(bytes, size);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.lazy_stacks = true;
    struct ttd_reader *reader = NULL;
    if (ttd_reader_open(&input, &options, &target_allocator, &reader, NULL) == TTD_OK) {
        struct heap_state state;
        struct ttd_error error;
        struct heap_trace trace = {.reader = reader};
        struct heap_state_options blocks = {.at = ttd_position_max(), .keeps_blocks = true};
        if (is_complete(heap_state_find(&trace, &blocks, &state, &error))) {
            check_state(&state);
            check_leaks(reader, &state);
            check_history(reader, &state);
            check_owners(reader, &state);
            check_peak(reader, &state);
            check_comparison(&state.tables.by[HEAP_BY_STACK]);
            heap_state_free(&state);
        }
        check_errors(reader);
        check_moves(reader);
        ttd_reader_close(reader);
    }
    free(bytes);
    return 0;
}
