/* SPDX-License-Identifier: MIT */
/* Questions about the whole trace: moves, errors, the history of addresses; and frames. */
#include <stdlib.h>
#include <string.h>

#include "analyses/activity/moves.h"
#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"
#include "analyses/state/history.h"
#include "base/grow.h"
#include "library/named_groups.h"

_Static_assert((int)TTDHEAP_GROWTH_UNKNOWN == (int)HEAP_GROWTH_UNKNOWN &&
                   (int)TTDHEAP_GROWTH_SHRINKING == (int)HEAP_GROWTH_SHRINKING &&
                   (int)TTDHEAP_GROWTH_SAME == (int)HEAP_GROWTH_SAME &&
                   (int)TTDHEAP_GROWTH_LINEAR == (int)HEAP_GROWTH_LINEAR &&
                   (int)TTDHEAP_GROWTH_GEOMETRIC == (int)HEAP_GROWTH_GEOMETRIC &&
                   (int)TTDHEAP_GROWTH_IRREGULAR == (int)HEAP_GROWTH_IRREGULAR,
               "growth");

/* ---- Frames ---- */

enum ttd_status ttdheap_frames(struct ttdheap *heap, ttd_id stack, struct ttdheap_frames *frames,
                               struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct certainty certainty = {.count = 0};
    struct frame_list list = {.count = 0};
    struct ttdheap_frame *items = NULL;
    memset(frames, 0, sizeof *frames);
    enum ttd_status status = named_need(heap, &why);
    if (status == TTD_OK)
        status = frame_list_expand(&list, &heap->names->definitions, stack);
    if (status == TTD_OK && !(items = malloc((list.count + !list.count) * sizeof *items)))
        status = TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < list.count && status == TTD_OK; i++) {
        const struct frame *frame = &list.frames[i];
        items[i] = (struct ttdheap_frame){.function = frame->function,
                                          .symbol = frame->symbol,
                                          .file = frame->file,
                                          .module = frame->module,
                                          .offset = frame->offset,
                                          .address = frame->address,
                                          .line = frame->line,
                                          .is_inlined = frame->is_inlined};
    }
    size_t count = list.count;
    frame_list_free(&list);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    if (!count && stack != TTD_NONE)
        certainty_add_reason(&certainty, "the stack is not in the trace");
    status = handle_judge_names(heap, &certainty);
    if (status == TTD_OK)
        status = handle_answer(&frames->answer, &certainty, ttd_position_min(), items);
    else
        free(items);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    frames->count = count;
    frames->items = items;
    return TTD_OK;
}

/* ---- Moves ---- */

struct move_list {
    struct ttdheap_move *items;
    size_t count;
    size_t capacity;
};

static enum ttd_status question_add_moves(struct move_list *list, struct view *view,
                                          struct heap_move_table *table, bool is_inferred)
{
    struct heap_site_table sites = heap_move_site_table(table);
    enum ttd_status status = view_group(view, &sites);
    if (status == TTD_OK)
        status = grow_array((void **)&list->items, &list->capacity, list->count + table->count,
                            sizeof *list->items);
    for (size_t i = 0; i < table->count && status == TTD_OK; i++) {
        const struct heap_move_group *group = &table->groups[i];
        const struct heap_move_counts *counts = &group->counts;
        struct ttdheap_move move = {.stack = group->key.stack,
                                    .calls = counts->reallocs,
                                    .moved = counts->moved,
                                    .in_place = counts->in_place,
                                    .failed = counts->failed,
                                    .copied = counts->copies.bytes,
                                    .copied_at_most = counts->copies.bytes_at_most,
                                    .avoidable = heap_move_avoidable(counts),
                                    .smallest = group->smallest,
                                    .largest = group->largest,
                                    .is_inferred = is_inferred};
        move.growth = (uint32_t)heap_move_growth(group, &move.measure);
        list->items[list->count++] = move;
    }
    return status;
}

static enum ttd_status question_list_moves(struct ttdheap *heap, struct heap_moves *found,
                                           struct move_list *list)
{
    struct view view;
    struct view_options options = {.by = VIEW_BY_STACK};
    view_init(&view, &options, &heap->names->definitions);
    enum ttd_status status = question_add_moves(list, &view, &found->reallocs, false);
    if (status == TTD_OK)
        status = question_add_moves(list, &view, &found->regrown, true);
    view_free(&view);
    return status;
}

enum ttd_status ttdheap_moves(struct ttdheap *heap, struct ttdheap_moves *moves,
                              struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct certainty certainty = {.count = 0};
    struct move_list list = {.count = 0};
    struct heap_moves_options options = {.chains = 0};
    struct heap_moves found;
    memset(moves, 0, sizeof *moves);
    enum ttd_status status = named_need(heap, &why);
    if (status == TTD_OK) {
        struct heap_trace trace = handle_trace(heap);
        status = heap_moves_find(&trace, &options, &found, &why);
    }
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    status = question_list_moves(heap, &found, &list);
    if (status == TTD_OK)
        status = handle_judge(heap, &found.outcome, ttd_position_max(), &certainty);
    if (status == TTD_OK)
        status = handle_answer(&moves->answer, &certainty, found.outcome.position, list.items);
    else
        free(list.items);
    heap_moves_free(&found);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    moves->count = list.count;
    moves->items = list.items;
    return TTD_OK;
}

/* ---- Calls of answers ---- */

static struct ttdheap_call question_call(const struct heap_call *call)
{
    return (struct ttdheap_call){.position = call->position,
                                 .stack = call->stack,
                                 .thread = call->thread,
                                 .action = call->action,
                                 .api = call->api,
                                 .is_unfinished = call->is_unfinished};
}

/* ---- Errors ---- */

/* Merges findings whose stacks differ only in modules that were loaded more than once, and drops
 * mismatches that are none. */
static enum ttd_status question_judge_findings(struct ttdheap *heap, struct heap_errors *errors)
{
    struct view view;
    struct view_options options = {.by = VIEW_BY_STACK};
    bool has_same = false;
    size_t kept = 0;
    view_init(&view, &options, &heap->names->definitions);
    enum ttd_status status = errors->count > 1 ? view_has_same(&view, &has_same) : TTD_OK;
    if (status == TTD_OK && has_same)
        status = heap_errors_merge(errors, view_find_same, &view);
    view_free(&view);
    errors->calls = errors->omitted;
    for (size_t i = 0; i < errors->count && status == TTD_OK; i++) {
        bool pairs = false;
        struct heap_finding *finding = &errors->findings[i];
        status = finding_pairs_operators(&heap->names->definitions, finding, &pairs);
        if (pairs)
            continue;
        errors->calls += finding->count;
        errors->findings[kept++] = *finding;
    }
    errors->count = kept;
    return status;
}

static struct ttdheap_finding question_finding(const struct heap_finding *finding, bool is_intact)
{
    return (struct ttdheap_finding){.kind = heap_error_name(finding->kind),
                                    .call = question_call(&finding->call),
                                    .address = finding->address,
                                    .size = finding->size,
                                    .heap = finding->heap,
                                    .is_certain = finding->is_certain && is_intact,
                                    .count = finding->count,
                                    .last = finding->last,
                                    .block_address = finding->block_address,
                                    .block_size = finding->block_size,
                                    .allocated = question_call(&finding->allocated),
                                    .released = question_call(&finding->released)};
}

static enum ttd_status question_answer_findings(struct ttdheap *heap, struct heap_errors *errors,
                                                struct ttdheap_findings *findings)
{
    struct certainty certainty = {.count = 0};
    enum ttd_status status = question_judge_findings(heap, errors);
    if (status == TTD_OK)
        status = handle_judge(heap, &errors->outcome, ttd_position_max(), &certainty);
    if (status != TTD_OK)
        return status;
    struct ttdheap_finding *items = malloc((errors->count + !errors->count) * sizeof *items);
    if (!items)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < errors->count; i++)
        items[i] = question_finding(&errors->findings[i], handle_is_sound(heap));
    status = handle_answer(&findings->answer, &certainty, errors->outcome.position, items);
    if (status != TTD_OK)
        return status;
    findings->count = errors->count;
    findings->items = items;
    findings->calls = errors->calls;
    return TTD_OK;
}

enum ttd_status ttdheap_errors(struct ttdheap *heap, struct ttdheap_findings *findings,
                               struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct heap_fatal fatal;
    struct heap_errors errors;
    struct heap_trace trace = handle_trace(heap);
    struct heap_errors_options options = {.remembered = HEAP_FREED_DEFAULT,
                                          .fatal = &fatal,
                                          .has_choice = trace.choice.is_made,
                                          .is_merged = trace.choice.is_merged};
    memset(findings, 0, sizeof *findings);
    enum ttd_status status = named_need(heap, &why);
    if (status == TTD_OK)
        status = heap_fatal_find(&trace, &fatal, &why);
    if (status == TTD_OK)
        status = heap_errors_find(&trace, &options, &errors, &why);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    status = question_answer_findings(heap, &errors, findings);
    heap_errors_free(&errors);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &why);
}

/* ---- History ---- */

static struct ttdheap_owner question_owner(const struct heap_owner *owner)
{
    return (struct ttdheap_owner){.block = handle_block(&owner->block, ttd_position_min()),
                                  .ordinal = owner->ordinal,
                                  .previous_address = owner->previous_address,
                                  .released = question_call(&owner->released),
                                  .is_overlapped = owner->overlapped};
}

enum ttd_status ttdheap_history(struct ttdheap *heap, uint64_t first, uint64_t last, size_t max,
                                struct ttdheap_history *history, struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct certainty certainty = {.count = 0};
    struct heap_history_options options = {.first = first, .last = last, .max = max};
    struct heap_history found;
    memset(history, 0, sizeof *history);
    if (last < first)
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT, "no addresses");
    struct heap_trace trace = handle_trace(heap);
    enum ttd_status status = heap_history_find(&trace, &options, &found, &why);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    struct ttdheap_owner *items = NULL;
    status = handle_judge(heap, &found.outcome, ttd_position_max(), &certainty);
    if (status == TTD_OK && !(items = malloc((found.count + !found.count) * sizeof *items)))
        status = TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < found.count && status == TTD_OK; i++)
        items[i] = question_owner(&found.owners[i]);
    for (size_t i = 0; i < found.count && status == TTD_OK; i++)
        items[i].block.is_unknown =
            !ttd_position_is_valid(items[i].released.position) &&
            heap_is_unknown(items[i].block.allocated, found.outcome.unknown_before);
    if (status == TTD_OK)
        status = handle_answer(&history->answer, &certainty, found.outcome.position, items);
    if (status == TTD_OK) {
        history->count = found.count;
        history->items = items;
        history->total = found.total;
    }
    heap_history_free(&found);
    return status == TTD_OK ? TTD_OK : handle_fail(heap, error, status, &why);
}
