/* SPDX-License-Identifier: MIT */
#include "view/runtime_judge.h"

#include <string.h>

#include "view/function_names.h"

/* Frames that show a block of thread-local storage: the frames of an allocator's caller in the
 * dynamic linker. */
#define JUDGED_FRAMES 4

/* Frames that include the allocating functions, behind wrappers of allocators. */
#define CALLER_FRAMES 16

/* Frames that mostly include them, and their callers. */
#define FEW_FRAMES 6

/* GLib's header before a closure. */
#define CLOSURE_HEADER 32

static bool judge_keeps_stack(void *context, ttd_id stack)
{
    struct runtime_judge *judge = context;
    struct frame_list *frames = &judge->frames;
    uint32_t judged = map_get(&judge->judged, stack, 0);
    if (judged != MAP_NONE)
        return judged;
    enum ttd_status status = frame_list_begin(frames, judge->definitions, stack, JUDGED_FRAMES);
    bool keeps = status == TTD_OK && runtime_is_thread_storage(frames);
    if (status == TTD_OK)
        status = map_set(&judge->judged, stack, 0, keeps);
    if (status != TTD_OK)
        judge->status = status;
    return keeps;
}

/* Facts about a function, by its name: bits. */
enum judge_trait {
    JUDGE_WRAPS = 1,
    JUDGE_SDS = 2,
    JUDGE_HASH_TABLE = 4,
    JUDGE_INSTANCE = 8,
    JUDGE_CLOSURE = 16,
    JUDGE_SLICE = 32
};

static const char slice_function[] = "g_slice_alloc";

/* Parts of symbols. */
static const struct {
    const char *part;
    enum judge_trait trait;
} judge_parts[] = {{"sdsnew", JUDGE_SDS},
                   {"sdsMakeRoomFor", JUDGE_SDS},
                   {"hashbrown", JUDGE_HASH_TABLE},
                   {"g_type_create_instance", JUDGE_INSTANCE},
                   {"g_closure_new_simple", JUDGE_CLOSURE},
                   {slice_function, JUDGE_SLICE}};

static bool judge_has_part(struct ttd_string name, const char *part)
{
    return name.size && memmem(name.data, name.size, part, strlen(part));
}

static uint32_t judge_traits(struct runtime_judge *judge, const struct frame *frame)
{
    if (!frame->function.size)
        return 0;
    uint32_t traits = map_get(&judge->functions, frame->name, 0);
    if (traits != MAP_NONE)
        return traits;
    traits = allocators_have(frame->function) ||
                     allocators_wrap(definitions_canonical(judge->definitions, frame->name))
                 ? JUDGE_WRAPS
                 : 0;
    for (size_t i = 0; i < sizeof judge_parts / sizeof judge_parts[0]; i++) {
        if (judge_has_part(frame->symbol, judge_parts[i].part))
            traits |= judge_parts[i].trait;
    }
    enum ttd_status status = map_set(&judge->functions, frame->name, 0, traits);
    if (status != TTD_OK)
        judge->status = status;
    return traits;
}

/* Whether a stack may have functions of GLib's slices: all of its first frames are read then. */
static bool judge_may_have_slices(struct runtime_judge *judge)
{
    const struct definitions *definitions = judge->definitions;
    for (size_t i = 0; i < definitions->frame_count && !judge->knows_slices; i++) {
        if (judge_has_part(definitions_text(definitions, definitions->frames[i].function),
                           slice_function))
            judge->has_slices = judge->knows_slices = true;
    }
    judge->knows_slices = true;
    return judge->has_slices;
}

/* Sets `first` to the number of the first frames that wrap allocators. */
static bool judge_read_frames(struct runtime_judge *judge, ttd_id stack, size_t max_count,
                              size_t *first)
{
    struct frame_list *frames = &judge->frames;
    if (frame_list_begin(frames, judge->definitions, stack, max_count) != TTD_OK)
        return false;
    *first = 0;
    while (*first < frames->count && judge_traits(judge, &frames->frames[*first]) & JUDGE_WRAPS)
        ++*first;
    return true;
}

/* A list is shorter, or empty, if memory or steps are short: then less is inferred from it. */
static void judge_list_callers(void *context, ttd_id stack, struct heap_callers *callers)
{
    struct runtime_judge *judge = context;
    struct frame_list *frames = &judge->frames;
    size_t max_count = judge_may_have_slices(judge) ? CALLER_FRAMES : FEW_FRAMES;
    size_t first;
    if (!judge_read_frames(judge, stack, max_count, &first))
        return;
    if (frames->count >= max_count && first + HEAP_CALLERS > frames->count &&
        !judge_read_frames(judge, stack, CALLER_FRAMES, &first))
        return;
    if (first)
        callers->wrapper = (struct heap_caller){frames->frames[0].module_id,
                                                frames->frames[0].offset, frames->frames[0].name};
    for (size_t i = first; i < frames->count && callers->count < HEAP_CALLERS; i++) {
        const struct frame *frame = &frames->frames[i];
        callers->items[callers->count++] =
            (struct heap_caller){frame->module_id, frame->offset, frame->name};
    }
    uint32_t traits = callers->count ? judge_traits(judge, &frames->frames[first]) : 0;
    callers->is_sds = traits & JUDGE_SDS;
    callers->is_hash_table = traits & JUDGE_HASH_TABLE;
    callers->is_instance = traits & JUDGE_INSTANCE;
    callers->header = traits & JUDGE_CLOSURE ? CLOSURE_HEADER : 0;
    /* A slice of its own comes from a wrapper only. */
    for (size_t i = first + 1; i < frames->count && !callers->is_slice_page; i++)
        callers->is_slice_page = judge_traits(judge, &frames->frames[i]) & JUDGE_SLICE;
}

void runtime_judge_init(struct runtime_judge *judge, struct definitions *definitions)
{
    *judge = (struct runtime_judge){.definitions = definitions};
    map_init(&judge->judged);
    map_init(&judge->functions);
}

void runtime_judge_free(struct runtime_judge *judge)
{
    frame_list_free(&judge->frames);
    map_free(&judge->judged);
    map_free(&judge->functions);
}

void runtime_judge_attach(struct runtime_judge *judge, struct heap_trace *trace)
{
    trace->hook.callers = (struct heap_stack_callers){judge, judge_list_callers};
    if (runtime_has_thread_storage(judge->definitions))
        trace->hook.judge = (struct heap_stack_judge){judge, judge_keeps_stack};
}

/* Mismatches that are none. */

static bool judge_is_operator(const struct heap_call *call)
{
    static const char word[] = "operator";
    const char *name = ttd_api_name(call->api);
    return name && strncmp(name, word, sizeof word - 1) == 0;
}

/* Whether a call of malloc() or free() may come from an operator that is inlined in the frame:
 * nothing says which ones are. */
static bool judge_may_be_inlined(const struct heap_call *call, const struct frame *frame)
{
    return !judge_is_operator(call) && call->action != TTD_ACTION_REALLOC &&
           frame->file.size == 0 && !runtime_has_module(frame->module);
}

enum ttd_status finding_pairs_operators(struct definitions *definitions,
                                        struct heap_finding *finding, bool *pairs)
{
    const struct heap_call *calls[] = {&finding->call, &finding->allocated};
    struct frame_list frames = {0};
    enum ttd_status status = TTD_OK;
    *pairs = false;
    if (finding->kind != HEAP_ERROR_MISMATCHED_FREE)
        return TTD_OK;
    bool has_operator = judge_is_operator(calls[0]) != judge_is_operator(calls[1]);
    for (size_t i = 0; i < 2 && status == TTD_OK; i++) {
        status = frame_list_begin(&frames, definitions,
                                  heap_call_is_known(calls[i]) ? calls[i]->stack : TTD_NONE, 1);
        if (status != TTD_OK || !frames.count)
            continue;
        *pairs |= allocators_are_operator(frames.frames[0].function);
        finding->may_be_inlined |=
            has_operator && judge_may_be_inlined(calls[i], &frames.frames[0]);
    }
    finding->is_certain &= !finding->may_be_inlined;
    frame_list_free(&frames);
    return status;
}
