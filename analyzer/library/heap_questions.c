/* SPDX-License-Identifier: MIT */
/* Questions about the heap at a position. */
#include <stdlib.h>
#include <string.h>

#include "analyses/reachability/leaks.h"
#include "analyses/state/diff.h"
#include "library/named_groups.h"
#include "reach/reach.h"

_Static_assert((int)TTDHEAP_AIFI == (int)HEAP_AIFI && (int)TTDHEAP_AIFO == (int)HEAP_AIFO &&
                   (int)TTDHEAP_AOFI == (int)HEAP_AOFI && (int)TTDHEAP_AOFO == (int)HEAP_AOFO,
               "quadrants");
_Static_assert((int)TTDHEAP_DEFINITELY_LOST == (int)HEAP_DEFINITELY_LOST &&
                   (int)TTDHEAP_POSSIBLY_LOST == (int)HEAP_POSSIBLY_LOST &&
                   (int)TTDHEAP_INDIRECTLY_LOST == (int)HEAP_INDIRECTLY_LOST &&
                   (int)TTDHEAP_HELD_BY_STALE == (int)HEAP_HELD_BY_STALE &&
                   (int)TTDHEAP_HELD_WEAKLY == (int)HEAP_HELD_WEAKLY &&
                   (int)TTDHEAP_REACHABLE == (int)HEAP_REACHABLE &&
                   (int)TTDHEAP_NOT_SEEN == (int)HEAP_NOT_SEEN &&
                   (int)TTDHEAP_UNKNOWN == (int)HEAP_UNKNOWN,
               "leaks");

/* ---- The state ---- */

/* Whether blocks can lie in blocks of other heaps. */
static bool question_has_nested(const struct definitions *definitions)
{
    const struct idtable *heaps = &definitions->heaps;
    for (size_t i = 0; i < heaps->run_count; i++) {
        const struct definition_heap *records = heaps->runs[i].records;
        for (size_t j = 0; j < heaps->runs[i].count; j++) {
            if (records[j].parent != TTD_NONE)
                return true;
        }
    }
    return false;
}

/* Finds the heap at the handle's position, unless it is known with this split and, if they are
 * needed, with its blocks. A state with classes is not kept. */
static enum ttd_status question_need_state(struct ttdheap *heap, enum heap_split split,
                                           bool needs_blocks,
                                           const struct heap_block_classes *classes,
                                           struct ttd_error *why)
{
    if (heap->has_state && heap->split == split && split != HEAP_SPLIT_CLASS &&
        (!needs_blocks || heap->has_blocks))
        return TTD_OK;
    handle_forget_state(heap);
    enum ttd_status status = named_need(heap, why);
    if (status != TTD_OK)
        return status;
    struct heap_trace trace = named_trace(heap, heap->at);
    struct heap_state_options options = {.at = heap->at,
                                         .split = split,
                                         .classes = classes,
                                         .tells_runtime = true,
                                         .counts_nested =
                                             question_has_nested(&heap->names->definitions),
                                         .keeps_blocks = needs_blocks,
                                         .confirms_blocks = true};
    status = heap_state_find(&trace, &options, &heap->state, why);
    if (status != TTD_OK)
        return status;
    heap->has_state = true;
    heap->has_blocks = needs_blocks;
    heap->split = split;
    if (heap->state.outcome.has_refuted_index)
        handle_refute_index(heap);
    return named_judged(heap);
}

/* Sums up the blocks that lie in no others: the blocks of heaps without a parent. */
static void question_count_live(const struct definitions *definitions,
                                const struct heap_groups *by_heap, struct ttdheap_info *info)
{
    for (size_t i = 0; i < by_heap->count; i++) {
        const struct heap_group *group = &by_heap->items[i];
        const struct definition_heap *heap = definitions_heap(definitions, group->key.property);
        if (heap && heap->parent != TTD_NONE)
            continue;
        info->live_blocks += group->blocks;
        info->live_bytes = heap_add(info->live_bytes, group->bytes);
    }
}

enum ttd_status ttdheap_info(struct ttdheap *heap, struct ttdheap_info *info,
                             struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct certainty certainty = {.count = 0};
    struct heap_state state;
    struct heap_trace trace = handle_trace(heap);
    struct heap_state_options options = {.at = ttd_position_max()};
    memset(info, 0, sizeof *info);
    enum ttd_status status = named_need(heap, &why);
    if (status == TTD_OK)
        status = heap_state_find(&trace, &options, &state, &why);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    /* The counts are of all calls, not of the live blocks alone. */
    state.outcome.since = ttd_position_min();
    const struct heap_outcome *outcome = &state.outcome;
    const struct heap_counts *counts = &outcome->counts;
    status = handle_judge(heap, outcome, ttd_position_max(), &certainty);
    if (status == TTD_OK)
        status = handle_answer(&info->answer, &certainty, outcome->position, NULL);
    if (status == TTD_OK) {
        info->trace = *ttd_reader_trace(heap->reader);
        info->is_closed = heap->is_closed;
        info->end = heap->end;
        info->has_index = heap->has_keyframes;
        info->is_choice = heap->choice.is_made || heap->choice.is_live_only;
        info->events = counts->events;
        info->lost_events = outcome->losses.events;
        info->lost_unknown = outcome->losses.unknown;
        memcpy(info->calls, counts->actions, sizeof counts->actions);
        info->failed = counts->failed;
        info->unfinished = counts->unfinished;
        question_count_live(&heap->names->definitions, &state.tables.by[HEAP_BY_HEAP], info);
    }
    heap_state_free(&state);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &why);
}

/* ---- Blocks ---- */

/* Answers with `count` blocks of the state from number `first` on. */
static enum ttd_status question_answer_blocks(struct ttdheap *heap, size_t first, size_t count,
                                              struct ttdheap_blocks *blocks)
{
    const struct heap_state *state = &heap->state;
    struct certainty certainty = {.count = 0};
    struct ttdheap_block *items = malloc((count + !count) * sizeof *items);
    if (!items)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        items[i] = handle_block(&state->blocks[first + i], state->outcome.unknown_before);
    enum ttd_status status = handle_judge(heap, &state->outcome, heap->at, &certainty);
    if (status != TTD_OK) {
        free(items);
        return status;
    }
    status = handle_answer(&blocks->answer, &certainty, state->outcome.position, items);
    if (status != TTD_OK)
        return status;
    blocks->count = count;
    blocks->items = items;
    return TTD_OK;
}

enum ttd_status ttdheap_blocks(struct ttdheap *heap, struct ttdheap_blocks *blocks,
                               struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    memset(blocks, 0, sizeof *blocks);
    enum ttd_status status = question_need_state(heap, HEAP_SPLIT_NONE, true, NULL, &why);
    if (status == TTD_OK)
        status = question_answer_blocks(heap, 0, heap->state.block_count, blocks);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &why);
}

enum ttd_status ttdheap_block_at(struct ttdheap *heap, uint64_t address,
                                 struct ttdheap_blocks *blocks, struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    memset(blocks, 0, sizeof *blocks);
    enum ttd_status status = question_need_state(heap, HEAP_SPLIT_NONE, true, NULL, &why);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    /* Blocks are sorted by address, and a block comes after the one that it lies in. */
    size_t found = heap->state.block_count;
    for (size_t i = 0; i < heap->state.block_count; i++) {
        if (heap_block_covers(&heap->state.blocks[i], address, address))
            found = i;
    }
    bool is_there = found < heap->state.block_count;
    status = question_answer_blocks(heap, is_there ? found : 0, is_there, blocks);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &why);
}

/* ---- Groups ---- */

/* A question that is answered by groups. */
struct group_question {
    struct ttdheap *heap;
    /** Positions of the heap that it is about, for its classes and for its certainty. */
    struct ttd_position at;
    struct view view;
    struct heap_block_classes classes;
    struct group_list list;
    struct certainty certainty;
    struct ttd_error why;
};

/* Begins a question: reads the names, and the classes if they are needed. */
static enum ttd_status group_question_begin(struct group_question *question, struct ttdheap *heap,
                                            enum view_key key, struct ttd_position at)
{
    *question = (struct group_question){.heap = heap, .at = at};
    enum ttd_status status = named_need(heap, &question->why);
    if (status != TTD_OK)
        return status;
    struct view_options options = {.by = key, .is_by_given = true};
    view_init(&question->view, &options, &heap->names->definitions);
    if (key != VIEW_BY_CLASS)
        return TTD_OK;
    struct heap_trace trace = named_trace(heap, at);
    status = heap_classes_find(&trace, at, &question->classes, &question->why);
    question->view.classes = &question->classes;
    if (status != TTD_OK || question->classes.snapshot.number)
        return status;
    question->why = (struct ttd_error){TTD_ERROR_MISUSE, 0, TTD_NOWHERE, TTD_NOWHERE,
                                       "no snapshot of references at the position or before"};
    return TTD_ERROR_MISUSE;
}

/* Judges a question that succeeded so far, makes its groups the answer, and releases everything. */
static enum ttd_status group_question_end(struct group_question *question, enum ttd_status status,
                                          const struct heap_outcome *outcome,
                                          const struct heap_runtime *runtime,
                                          struct ttdheap_groups *groups,
                                          struct ttdheap_error *error)
{
    struct ttdheap *heap = question->heap;
    struct certainty reasons = {.count = 0};
    if (status == TTD_OK)
        status = handle_judge(heap, outcome, question->at, &reasons);
    if (status == TTD_OK) {
        for (size_t i = 0; i < question->certainty.count; i++)
            certainty_add_reason(&reasons, question->certainty.reasons[i]);
        certainty_add_snapshot(&reasons, &question->classes.snapshot, question->classes.misplaced);
        status = named_answer(groups, &question->list, &reasons, outcome->position, runtime);
    } else {
        free(question->list.items);
    }
    if (question->view.definitions)
        view_free(&question->view);
    heap_block_classes_free(&question->classes);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &question->why);
}

/* Copies groups, since views change them. */
static enum ttd_status question_copy_groups(struct heap_groups *copy,
                                            const struct heap_groups *groups)
{
    enum ttd_status status = TTD_OK;
    heap_groups_init_like(copy, groups);
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++)
        status = heap_groups_add_sum(copy, &groups->items[i]);
    return status == TTD_OK ? heap_groups_sort(copy) : status;
}

static enum ttd_status question_add_state(struct group_question *question)
{
    struct ttdheap *heap = question->heap;
    struct heap_groups copy;
    enum ttd_status status = question_need_state(heap, view_split(&question->view.options), false,
                                                 question->view.classes, &question->why);
    if (status != TTD_OK)
        return status;
    status = question_copy_groups(&copy, &heap->state.tables.by[HEAP_BY_STACK]);
    if (status == TTD_OK)
        status = named_add_groups(&question->list, &question->view, &copy, 0);
    heap_groups_free(&copy);
    return status;
}

enum ttd_status ttdheap_groups(struct ttdheap *heap, enum ttdheap_by by,
                               struct ttdheap_groups *groups, struct ttdheap_error *error)
{
    enum view_key key = VIEW_BY_STACK;
    struct group_question question;
    memset(groups, 0, sizeof *groups);
    if (by != TTDHEAP_BY_SIZE && !named_view_key(by, &key))
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT, "unknown property");
    enum ttd_status status = group_question_begin(&question, heap, key, heap->at);
    if (status == TTD_OK && by == TTDHEAP_BY_SIZE) {
        status = question_need_state(heap, HEAP_SPLIT_NONE, false, NULL, &question.why);
        if (status == TTD_OK)
            status = named_add_sizes(&question.list, &heap->state.tables.by[HEAP_BY_SIZE]);
    } else if (status == TTD_OK) {
        status = question_add_state(&question);
    }
    status = group_question_end(&question, status, &heap->state.outcome, &heap->state.runtime,
                                groups, error);
    /* Its classes are gone. */
    if (by == TTDHEAP_BY_CLASS)
        handle_forget_state(heap);
    return status;
}

/* ---- Differences ---- */

enum ttd_status ttdheap_diff(struct ttdheap *heap, struct ttd_position from, struct ttd_position to,
                             enum ttdheap_by by, struct ttdheap_groups *groups,
                             struct ttdheap_error *error)
{
    enum view_key key;
    struct group_question question;
    struct heap_diff diff = {.runtime = {.list = HEAP_RUNTIME_UNKNOWN}};
    bool is_end = heap_is_end(to);
    memset(groups, 0, sizeof *groups);
    if (by == TTDHEAP_BY_CLASS || !named_view_key(by, &key))
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT,
                                "a difference has no groups by this property");
    if (ttd_position_compare(to, from) <= 0)
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT, "the range is empty");
    struct ttd_position last = is_end ? to : heap_position_before(to);
    enum ttd_status status = group_question_begin(&question, heap, key, last);
    if (status != TTD_OK)
        return group_question_end(&question, status, NULL, NULL, groups, error);
    struct heap_trace trace = named_trace(heap, from);
    struct heap_diff_options options = {
        .from = from, .last = last, .split = view_split(&question.view.options)};
    status = heap_diff_find(&trace, &options, &diff, &question.why);
    if (status != TTD_OK)
        return group_question_end(&question, status, NULL, NULL, groups, error);
    if (diff.outcome.has_refuted_index)
        handle_refute_index(heap);
    diff.outcome.since = from;
    status = named_judged(heap);
    for (uint32_t i = 0; i < HEAP_QUADRANTS && status == TTD_OK; i++)
        status = named_add_groups(&question.list, &question.view, &diff.quadrants[i], i);
    status = group_question_end(&question, status, &diff.outcome, &diff.runtime, groups, error);
    heap_diff_free(&diff);
    return status;
}

/* ---- Leaks ---- */

enum ttd_status ttdheap_leaks(struct ttdheap *heap, enum ttdheap_by by,
                              struct ttdheap_groups *groups, struct ttdheap_error *error)
{
    enum view_key key;
    struct group_question question;
    struct heap_leaks leaks;
    memset(groups, 0, sizeof *groups);
    if (!named_view_key(by, &key))
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT,
                                "leaks have no groups by this property");
    enum ttd_status status = group_question_begin(&question, heap, key, heap->at);
    if (status != TTD_OK)
        return group_question_end(&question, status, NULL, NULL, groups, error);
    struct heap_trace trace = named_trace(heap, heap->at);
    struct heap_leaks_options options = {.at = heap->at,
                                         .split = view_split(&question.view.options),
                                         .classes = question.view.classes};
    status = heap_leaks_find(&trace, &options, &leaks, &question.why);
    if (status != TTD_OK)
        return group_question_end(&question, status, NULL, NULL, groups, error);
    if (leaks.outcome.has_refuted_index)
        handle_refute_index(heap);
    certainty_add_snapshot(&question.certainty, &leaks.snapshot, leaks.misplaced);
    question.classes.snapshot.number = 0;
    status = named_judged(heap);
    for (uint32_t i = 0; i < HEAP_LEAK_KINDS && status == TTD_OK; i++)
        status = named_add_groups(&question.list, &question.view, &leaks.kinds[i], i);
    status = group_question_end(&question, status, &leaks.outcome, &leaks.runtime, groups, error);
    heap_leaks_free(&leaks);
    return status;
}
