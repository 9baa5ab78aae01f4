/* SPDX-License-Identifier: MIT */
/* Functions that look like a wrapper of an allocator, by their shape: many stacks go through them.
 */
#include <stdbool.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "symbols/frames.h"
#include "view/function_names.h"

/* Groups that are looked at, the first of the report; candidates among their functions; and the
 * smallest number of callers that makes a function a wrapper. */
enum { GROUPS_LOOKED_AT = 256, CANDIDATES = 32, CALLERS = 3 };

/* The longest name that is written twice into one line. */
enum { NAME_OF_A_LINE = 16 };

/* The innermost function of the program in some stacks. */
struct wrapper_candidate {
    ttd_id name;
    uint64_t address; /* of its call of the allocator */
    size_t groups;
    uint64_t bytes;
    uint64_t size; /* of a block of the first group, rounded down */
    bool has_one_call;
    bool has_sizes; /* blocks of several sizes: a constructor has one */
    ttd_id callers[CALLERS];
    size_t caller_count;
};

/* Whether a frame is of functions that reports look through anyway. */
static bool wrapper_is_known(struct report *report, const struct frame *frame)
{
    bool is_mixed;
    struct ttd_string name = definitions_canonical(report->definitions, frame->name);
    return allocators_have(frame->function) || allocators_wrap(name) ||
           runtime_has_module(frame->module) || runtime_has_function(name, &is_mixed);
}

/* Returns the innermost frame of the program that has a caller, both with names; NULL if there is
 * none. */
static const struct frame *wrapper_frame(struct report *report)
{
    const struct frame_list *list = &report->frames;
    size_t i = 0;
    while (i < list->count && wrapper_is_known(report, &list->frames[i]))
        i++;
    if (i + 1 >= list->count || !list->frames[i].function.size ||
        !list->frames[i + 1].function.size || list->frames[i].name == list->frames[i + 1].name ||
        runtime_is_main(&list->frames[i]))
        return NULL;
    return &list->frames[i];
}

static void wrapper_count(struct wrapper_candidate *candidate, const struct frame *frame,
                          const struct report_amount *group)
{
    uint64_t size = group->count ? group->bytes / group->count : 0;
    size_t i = 0;
    candidate->has_one_call &= candidate->address == frame->address;
    candidate->has_sizes |= candidate->size != size;
    candidate->groups++;
    candidate->bytes = heap_add(candidate->bytes, group->bytes);
    while (i < candidate->caller_count && candidate->callers[i] != frame[1].name)
        i++;
    if (i == candidate->caller_count && i < CALLERS)
        candidate->callers[candidate->caller_count++] = frame[1].name;
}

bool report_find_wrapper(struct report *report, const struct report_amounts *groups,
                         struct report_wrapper *wrapper)
{
    struct wrapper_candidate candidates[CANDIDATES];
    size_t count = 0, looked_at = 0;
    uint64_t bytes = 0;
    if (report->stacks.find)
        return false;
    for (; looked_at < groups->count && looked_at < GROUPS_LOOKED_AT; looked_at++) {
        const struct report_amount amount = groups->at(groups->context, looked_at);
        const struct report_amount *group = &amount;
        size_t i = 0;
        report_expand(report, group->key.stack);
        bytes = heap_add(bytes, group->bytes);
        const struct frame *frame = wrapper_frame(report);
        while (frame && i < count && candidates[i].name != frame->name)
            i++;
        if (!frame || i == CANDIDATES)
            continue;
        if (i == count)
            candidates[count++] =
                (struct wrapper_candidate){.name = frame->name,
                                           .address = frame->address,
                                           .size = group->count ? group->bytes / group->count : 0,
                                           .has_one_call = true};
        wrapper_count(&candidates[i], frame, group);
    }
    for (size_t i = 0; i < count; i++) {
        const struct wrapper_candidate *candidate = &candidates[i];
        if (candidate->caller_count < CALLERS || !candidate->has_one_call ||
            !candidate->has_sizes || candidate->groups <= looked_at / 2 ||
            candidate->bytes <= bytes / 2)
            continue;
        wrapper->name = candidate->name;
        wrapper->function = definitions_canonical(report->definitions, candidate->name);
        wrapper->groups = candidate->groups;
        wrapper->bytes = candidate->bytes;
        return true;
    }
    return false;
}

/* Whether a shell takes a name for more than one word. */
static bool wrapper_needs_quotes(struct ttd_string name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == ':';
        if (!is_plain)
            return true;
    }
    return false;
}

void report_skip_text(struct text_output *output, const struct report_wrapper *wrapper)
{
    const char *quote = wrapper_needs_quotes(wrapper->function) ? "'" : "";
    say(output, "--skip ", quote, wrapper->function, quote, " shows its callers\n");
}

/* Groups of other keys than stacks do not begin with a function. */
static bool wrapper_find_of_stacks(struct report *report, const struct report_amounts *groups,
                                   struct report_wrapper *wrapper)
{
    return report->view->options.by == VIEW_BY_STACK &&
           report_find_wrapper(report, groups, wrapper);
}

void report_wrapper_text(struct report *report, const struct report_amounts *groups)
{
    struct report_wrapper wrapper;
    if (!wrapper_find_of_stacks(report, groups, &wrapper))
        return;
    say(report->output, "Most of these come through ", wrapper.function,
        wrapper.function.size > NAME_OF_A_LINE ? "():\n" : "(): ");
    report_skip_text(report->output, &wrapper);
}

void row_wrapper(struct row *row, const struct report_amounts *groups)
{
    struct report_wrapper wrapper;
    if (row_is_skipped(row))
        return;
    if (!wrapper_find_of_stacks(row->report, groups, &wrapper)) {
        row_null(row, "wrapper");
        return;
    }
    row_begin_object(row, "wrapper");
    row_string(row, "function", wrapper.function);
    row_unsigned(row, "groups", wrapper.groups);
    row_unsigned(row, "bytes", wrapper.bytes);
    row_end_object(row);
}
