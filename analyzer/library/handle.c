/* SPDX-License-Identifier: MIT */
#include "library/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "travel/heap_cursor.h"
#include "travel/position_text.h"

/* ---- Failures ---- */

enum ttd_status handle_fail(const struct ttdheap *heap, struct ttdheap_error *error,
                            enum ttd_status status, const struct ttd_error *why)
{
    if (!error)
        return status;
    bool has_reason = why && why->status == status && why->what && *why->what;
    error->detail =
        has_reason ? *why : (struct ttd_error){.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE};
    error->detail.status = status;
    if (!has_reason)
        error->detail.what = ttd_status_text(status);
    const char *system = error->detail.system_error ? strerror(error->detail.system_error) : "";
    char place[64] = "";
    if (error->detail.offset != TTD_NOWHERE)
        snprintf(place, sizeof place, ", at offset %llu", (unsigned long long)error->detail.offset);
    snprintf(error->text, sizeof error->text, "%.300s: %s%s%s%s", heap->path, error->detail.what,
             *system ? ": " : "", system, place);
    return status;
}

enum ttd_status handle_fail_with(const struct ttdheap *heap, struct ttdheap_error *error,
                                 enum ttd_status status, const char *what)
{
    struct ttd_error why = {status, 0, TTD_NOWHERE, TTD_NOWHERE, what};
    return handle_fail(heap, error, status, &why);
}

/* ---- Opening ---- */

struct ttdheap_options ttdheap_options_default(void)
{
    return (struct ttdheap_options){.size = sizeof(struct ttdheap_options),
                                    .steps_max = TTDHEAP_STEPS_MAX,
                                    .reads_ahead = true};
}

enum ttd_status handle_make(const char *name, const struct ttdheap_options *options,
                            struct ttdheap **result)
{
    struct ttdheap *heap = calloc(1, sizeof *heap);
    char *copy = strdup(name);
    if (!heap || !copy) {
        free(heap);
        free(copy);
        return TTD_ERROR_NO_MEMORY;
    }
    *heap = (struct ttdheap){.path = copy, .options = *options, .at = ttd_position_max()};
    /* Pointers to the caller's tables are not kept. */
    heap->options.input = NULL;
    heap->options.allocator = NULL;
    heap->options.index = NULL;
    if (!heap->options.steps_max)
        heap->options.steps_max = TTDHEAP_STEPS_MAX;
    *result = heap;
    return TTD_OK;
}

static int handle_read_at(void *context, uint64_t offset, void *data, size_t size, size_t *got)
{
    const struct ttdheap *heap = context;
    uint64_t left = offset < heap->size ? heap->size - offset : 0;
    return heap->input.read_at(heap->input.context, offset, data, size < left ? size : (size_t)left,
                               got);
}

static int handle_size(void *context, uint64_t *size)
{
    const struct ttdheap *heap = context;
    *size = heap->size;
    return heap->size_error;
}

static void handle_close_input(void *context)
{
    const struct ttdheap *heap = context;
    if (heap->input.close)
        heap->input.close(heap->input.context);
}

enum ttd_status handle_open(struct ttdheap *heap, const struct ttd_input *input,
                            const struct ttd_allocator *allocator, struct ttd_error *error)
{
    struct ttd_input as_opened = {heap, handle_read_at, handle_size, handle_close_input};
    struct ttd_reader_options options = ttd_reader_options_default();
    heap->input = *input;
    /* The reader refuses an input without its functions. */
    bool has_functions = input->read_at && input->size;
    if (has_functions)
        heap->size_error = input->size(input->context, &heap->size);
    options.tolerant = true;
    options.lazy_stacks = true;
    options.event_batches = heap->options.reads_ahead ? heap_prefetch_batches() : 1;
    enum ttd_status status = ttd_reader_open(has_functions ? &as_opened : input, &options,
                                             allocator, &heap->reader, error);
    if (status != TTD_OK)
        return status;
    status = ttd_reader_end(heap->reader, &heap->end);
    heap->is_closed = status == TTD_OK;
    if (status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY)
        return status;
    return heap_choice_read(heap->reader, &heap->choice, error);
}

void handle_forget_state(struct ttdheap *heap)
{
    if (heap->has_state)
        heap_state_free(&heap->state);
    heap->has_state = false;
}

void handle_refute_index(struct ttdheap *heap)
{
    if (heap->has_keyframes)
        heap_keyframes_close(&heap->keyframes);
    heap->has_keyframes = false;
    heap->is_judged = false;
}

void ttdheap_close(struct ttdheap *heap)
{
    if (!heap)
        return;
    handle_forget_state(heap);
    if (heap->names)
        heap->free_names(heap->names);
    handle_refute_index(heap);
    ttd_reader_close(heap->reader);
    free(heap->path);
    free(heap);
    /* Pages of tables are kept for other tables of the process; handles to come need few
     * beside the memory that the program may want back. */
    table_give_back_kept();
}

enum ttd_status ttdheap_go(struct ttdheap *heap, struct ttd_position position)
{
    if (!heap)
        return TTD_ERROR_ARGUMENT;
    if (ttd_position_compare(position, heap->at) != 0)
        handle_forget_state(heap);
    heap->at = position;
    return TTD_OK;
}

/* ---- The trace of a query ---- */

static enum ttd_status handle_show_progress(const struct ttdheap *heap, uint64_t done)
{
    bool goes_on =
        !heap->options.progress ||
        heap->options.progress(heap->options.context, done, ttd_reader_size(heap->reader)) == 0;
    return goes_on ? TTD_OK : TTD_ERROR_CANCELLED;
}

static enum ttd_status handle_see_batch(void *context, const struct ttd_batch *batch)
{
    struct ttdheap *heap = context;
    heap->is_damaged |= batch->kind == TTD_KIND_LOSSES && batch->synthetic;
    return handle_show_progress(heap, batch->chunk.offset);
}

static enum ttd_status handle_see_net(void *context, const struct ttd_chunk *chunk,
                                      const struct ttd_netted *netted)
{
    const struct ttdheap *heap = context;
    (void)netted;
    /* The chunks come from the last to the first. */
    return handle_show_progress(heap, ttd_reader_size(heap->reader) - chunk->offset);
}

struct heap_trace handle_trace(struct ttdheap *heap)
{
    return (struct heap_trace){
        .reader = heap->reader,
        .choice = heap->choice,
        .hook = {.context = heap, .batch = handle_see_batch, .net = handle_see_net}};
}

struct heap_trace handle_trace_to(struct ttdheap *heap, struct ttd_position position)
{
    struct heap_trace trace = handle_trace(heap);
    bool is_start = ttd_position_compare(position, ttd_position_min()) == 0;
    bool is_end = heap_is_end(position);
    if (heap->has_keyframes && !is_start && !is_end)
        trace.keyframes = &heap->keyframes;
    return trace;
}

/* ---- Certainty ---- */

static void handle_note_end(struct ttdheap *heap, const struct ttd_error *ended)
{
    heap->is_given_up |= ended->status == TTD_ERROR_LIMIT;
    heap->is_truncated |= ended->status != TTD_OK && ended->status != TTD_ERROR_LIMIT;
}

/* Whether damage was met. */
static bool handle_is_bad(const struct ttdheap *heap)
{
    return !heap->is_closed || heap->is_damaged || heap->is_truncated || heap->is_given_up;
}

/* Checks the trace as a certain answer needs it, once. Reads all of it unless a query has. */
static enum ttd_status handle_check(struct ttdheap *heap)
{
    if (heap->is_judged || handle_is_bad(heap))
        return TTD_OK;
    if (!heap->has_keyframes && !ttd_reader_is_intact(heap->reader)) {
        struct ttd_error ended;
        struct heap_trace trace = handle_trace(heap);
        enum ttd_status status = certainty_check_all(&trace, &ended);
        if (status != TTD_OK)
            return status;
        handle_note_end(heap, &ended);
    }
    enum ttd_status status = TTD_OK;
    heap->is_intact = heap->has_keyframes || ttd_reader_is_intact(heap->reader);
    if (heap->is_intact)
        status = certainty_find_patch(heap->reader, &heap->is_patched);
    heap->is_judged = status == TTD_OK;
    return status;
}

bool handle_is_sound(const struct ttdheap *heap)
{
    return heap->is_intact && !heap->is_patched && !handle_is_bad(heap) &&
           (!heap->is_unchanged || heap->is_unchanged(heap));
}

enum ttd_status handle_judge(struct ttdheap *heap, const struct heap_outcome *outcome,
                             struct ttd_position position, struct certainty *certainty)
{
    if (outcome->truncated)
        handle_note_end(heap, &outcome->error);
    enum ttd_status status = handle_check(heap);
    if (status != TTD_OK)
        return status;
    bool is_part = ttd_position_compare(position, heap->part_position) == 0;
    struct certainty_facts facts = {.trace = ttd_reader_trace(heap->reader),
                                    .is_closed = heap->is_closed,
                                    .is_intact = handle_is_sound(heap),
                                    .is_patched = heap->is_patched,
                                    .rests_on_index = heap->has_keyframes,
                                    .is_truncated = heap->is_truncated,
                                    .is_given_up = heap->is_given_up,
                                    .outcome = outcome,
                                    .at = position,
                                    .part_of = is_part ? heap->part_of : 0};
    certainty_judge(certainty, &facts);
    certainty_add_choice(certainty, &heap->choice);
    return TTD_OK;
}

enum ttd_status handle_judge_names(struct ttdheap *heap, struct certainty *certainty)
{
    bool is_patched = heap->is_patched;
    enum ttd_status status =
        heap->is_judged ? TTD_OK : certainty_find_patch(heap->reader, &is_patched);
    bool is_changed = heap->is_unchanged && !heap->is_unchanged(heap);
    if (!heap->is_closed || heap->is_truncated || heap->is_given_up)
        certainty_add_reason(certainty, "the trace was not closed cleanly: names may be missing");
    else if (heap->is_damaged || is_patched || is_changed)
        certainty_add_reason(certainty, "the file is not intact, or was changed meanwhile: names "
                                        "may be missing");
    return status;
}

/* ---- Answers ---- */

struct ttdheap_block handle_block(const struct heap_block *block,
                                  struct ttd_position unknown_before)
{
    return (struct ttdheap_block){.address = block->address,
                                  .size = block->size,
                                  .event = block->event,
                                  .allocated = block->allocated,
                                  .thread = block->thread,
                                  .stack = block->stack,
                                  .heap = block->heap,
                                  .api = block->api,
                                  .is_unknown = heap_is_unknown(block->allocated, unknown_before)};
}

/* The memory of an answer: one block for the reasons, and the array. */
struct answer_memory {
    void *items;
    const char *reasons[CERTAINTY_REASONS_MAX];
    char texts[];
};

enum ttd_status handle_answer(struct ttdheap_answer *answer, const struct certainty *certainty,
                              struct ttd_position position, void *items)
{
    size_t size = 0;
    for (size_t i = 0; i < certainty->count; i++)
        size += strlen(certainty->reasons[i]) + 1;
    struct answer_memory *memory = malloc(sizeof *memory + size);
    if (!memory) {
        free(items);
        return TTD_ERROR_NO_MEMORY;
    }
    memory->items = items;
    char *text = memory->texts;
    for (size_t i = 0; i < certainty->count; i++) {
        size_t length = strlen(certainty->reasons[i]) + 1;
        memory->reasons[i] = memcpy(text, certainty->reasons[i], length);
        text += length;
    }
    *answer = (struct ttdheap_answer){.is_certain = !certainty->count,
                                      .reason_count = certainty->count,
                                      .reasons = memory->reasons,
                                      .position = position,
                                      .memory = memory};
    return TTD_OK;
}

void ttdheap_free(struct ttdheap_answer *answer)
{
    if (!answer)
        return;
    struct answer_memory *memory = answer->memory;
    if (memory)
        free(memory->items);
    free(memory);
    *answer = (struct ttdheap_answer){.is_certain = false};
}

/* ---- Positions ---- */

static enum ttd_status handle_find(struct ttdheap *heap, const char *text,
                                   enum position_purpose purpose, struct ttd_position *position,
                                   struct ttdheap_error *error)
{
    struct position_spec spec;
    struct ttd_error why = {.status = TTD_OK};
    struct position_found found = {.part_of = 0};
    if (!position_spec_parse(text, &spec))
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT, "the text is no position");
    struct heap_trace trace = handle_trace(heap);
    enum ttd_status status = position_spec_find(&trace, heap->is_closed ? &heap->end : NULL, &spec,
                                                purpose, &found, &why);
    handle_note_end(heap, &found.ended);
    if (found.part_of || ttd_position_compare(found.position, heap->part_position) == 0) {
        heap->part_of = found.part_of;
        heap->part_position = found.position;
    }
    if (status == TTD_END)
        return handle_fail_with(heap, error, status, "no mark has this text");
    if (status == TTD_ERROR_MISUSE)
        return handle_fail_with(heap, error, status, "wall times are not known");
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    *position = found.position;
    return TTD_OK;
}

enum ttd_status ttdheap_find(struct ttdheap *heap, const char *text, struct ttd_position *position,
                             struct ttdheap_error *error)
{
    return handle_find(heap, text, POSITION_FOR_STATE, position, error);
}

enum ttd_status ttdheap_find_range(struct ttdheap *heap, const char *from_text, const char *to_text,
                                   struct ttd_position *from, struct ttd_position *to,
                                   struct ttdheap_error *error)
{
    struct ttd_position begin, end;
    enum ttd_status status = handle_find(heap, from_text, POSITION_FOR_ORDER, &begin, error);
    if (status == TTD_OK)
        status = handle_find(heap, to_text, POSITION_FOR_ORDER, &end, error);
    if (status != TTD_OK)
        return status;
    if (ttd_position_compare(end, begin) <= 0)
        return handle_fail_with(heap, error, TTD_ERROR_ARGUMENT, "the range is empty");
    *from = begin;
    *to = end;
    return TTD_OK;
}

/* ---- Calls ---- */

static enum ttd_status handle_add_call(struct call_list *list, const struct ttd_event *event)
{
    enum ttd_status status =
        grow_array((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status == TTD_OK && event->parameter_count)
        status =
            grow_array((void **)&list->parameters, &list->parameter_capacity,
                       list->parameter_count + event->parameter_count, sizeof *list->parameters);
    if (status != TTD_OK)
        return status;
    struct ttd_event *call = &list->items[list->count++];
    *call = *event;
    /* They are the batch's. */
    call->parameters = NULL;
    for (uint32_t i = 0; i < event->parameter_count; i++)
        list->parameters[list->parameter_count++] = event->parameters[i];
    return TTD_OK;
}

/* Adds calls of a batch. TTD_END once no later call is wanted. */
static enum ttd_status handle_add_calls(struct call_list *list, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        struct ttd_position position = ttd_event_position(event);
        if (ttd_position_compare(position, list->range.to) >= 0)
            return TTD_END;
        if (event->number < list->range.first ||
            ttd_position_compare(position, list->range.from) < 0)
            continue;
        if (list->count == list->range.max) {
            list->next = event->number;
            return TTD_END;
        }
        enum ttd_status status = handle_add_call(list, event);
        if (status != TTD_OK)
            return status;
    }
    return TTD_OK;
}

enum ttd_status handle_read_calls(struct ttdheap *heap, struct call_list *list,
                                  struct ttd_error *error)
{
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_rewind(heap->reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    if (status == TTD_OK)
        status = list->range.first ? ttd_reader_seek_event(heap->reader, list->range.first, error)
                                   : ttd_reader_seek(heap->reader, list->range.from, error);
    while (status == TTD_OK) {
        status = ttd_reader_next(heap->reader, &batch, error);
        if (status == TTD_OK)
            status = handle_see_batch(heap, &batch);
        if (status == TTD_OK && batch.kind == TTD_KIND_EVENTS)
            status = handle_add_calls(list, &batch);
    }
    if (status != TTD_END && heap_is_over(status))
        handle_note_end(heap, error);
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status handle_see_losses(void *context, const struct ttd_batch *batch)
{
    struct call_list *list = context;
    heap_losses_add(&list->losses, batch);
    return TTD_OK;
}

/* Puts the arguments behind the calls, into the same block of memory. */
static enum ttd_status handle_place_parameters(struct call_list *list)
{
    size_t calls = list->count * sizeof *list->items;
    size_t size = list->parameter_count * sizeof *list->parameters;
    if (!size)
        return TTD_OK;
    void *block = realloc(list->items, calls + size);
    if (!block)
        return TTD_ERROR_NO_MEMORY;
    list->items = block;
    uint64_t *parameters = memcpy((char *)block + calls, list->parameters, size);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].parameter_count)
            list->items[i].parameters = parameters;
        parameters += list->items[i].parameter_count;
    }
    return TTD_OK;
}

/* Judges the list, and makes its calls the answer. */
static enum ttd_status handle_answer_calls(struct ttdheap *heap, struct call_list *list,
                                           struct ttdheap_answer *answer)
{
    struct certainty certainty = {.count = 0};
    struct ttd_position last =
        list->count ? ttd_event_position(&list->items[list->count - 1]) : list->range.from;
    struct heap_outcome outcome = {.losses = list->losses,
                                   .position = last,
                                   .since = list->range.from,
                                   .reached_end = list->next == UINT64_MAX};
    enum ttd_status status = handle_judge(heap, &outcome, list->range.to, &certainty);
    if (status == TTD_OK)
        status = handle_place_parameters(list);
    if (status == TTD_OK)
        return handle_answer(answer, &certainty, last, list->items);
    free(list->items);
    return status;
}

enum ttd_status ttdheap_calls(struct ttdheap *heap, const struct ttdheap_range *range,
                              struct ttdheap_calls *calls, struct ttdheap_error *error)
{
    struct ttd_error why = {.status = TTD_OK};
    struct call_list list = {.range = *range, .next = UINT64_MAX};
    memset(calls, 0, sizeof *calls);
    enum ttd_status status = handle_read_calls(heap, &list, &why);
    if (status == TTD_OK)
        status = heap_losses_read(heap->reader, handle_see_losses, &list, &why);
    if (status == TTD_OK)
        status = handle_answer_calls(heap, &list, &calls->answer);
    else
        free(list.items);
    free(list.parameters);
    if (status != TTD_OK)
        return handle_fail(heap, error, status, &why);
    calls->count = list.count;
    calls->items = list.items;
    calls->next = list.next;
    return TTD_OK;
}
