/* SPDX-License-Identifier: MIT */
/* Groups by stack, as text that leads with functions: each with its share, and below it the stacks
 * by which it has most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/sections/sections.h"
#include "report/writers/escape.h"
#include "view/glob.h"

/* Stacks that are shown below a function. */
#define FUNCTION_STACKS 3

/* Groups of one function. They are linked by their indices, in their order. */
struct function_groups {
    uint64_t weight;
    uint64_t bytes;
    uint64_t count;
    size_t stacks;
    size_t first;
    size_t last;
};

struct functions {
    /** By label; those without stacks are of no group. */
    struct function_groups *items;
    size_t count;
    size_t capacity;
    /** By group: the next one of the same function. */
    size_t *next;
    uint64_t weight;
};

const struct frame *report_function_frame(struct report *report, ttd_id stack,
                                          const struct view_label *function)
{
    report_expand(report, stack);
    for (size_t i = 0; i < report->frames.count; i++) {
        struct view_label label = label_of_frame(LABEL_FUNCTION, &report->frames.frames[i]);
        if (label.name.size == function->name.size && label.name.data == function->name.data)
            return &report->frames.frames[i];
    }
    return NULL;
}

void report_function_place_text(struct report *report, ttd_id stack,
                                const struct view_label *function, size_t columns)
{
    struct text_output *output = report->output;
    char line[24] = "";
    const struct frame *frame = report_function_frame(report, stack, function);
    struct ttd_string file = {"", 0};
    if (frame && frame->file.size) {
        file = glob_base_name(frame->file);
        snprintf(line, sizeof line, ":%u", frame->line);
    }
    size_t place = file.size ? file.size + strlen(line) + strlen(" ()") : 0;
    if (function->name.size)
        report_function_cut(report, function->name, columns > place ? columns - place : 0);
    else
        report_label_text(report, function);
    if (file.size) {
        out_text(output, " (");
        escape_text(output, file);
        out_text(output, line);
        out_char(output, ')');
    }
}

/* Finds the function of a group, and adds the group to its others. */
static enum ttd_status functions_add(struct functions *functions, struct view *view,
                                     const struct report_amounts *groups, size_t index,
                                     bool is_by_count)
{
    struct report_amount amount = groups->at(groups->context, index);
    struct heap_key key = amount.key;
    enum ttd_status status = view_find_key(view, &key);
    size_t count = functions->count;
    if (status == TTD_OK && key.property >= count)
        status = grow_array((void **)&functions->items, &functions->capacity,
                            (size_t)key.property + 1, sizeof *functions->items);
    if (status != TTD_OK)
        return status;
    for (; count <= key.property; count++)
        functions->items[count] = (struct function_groups){.stacks = 0};
    functions->count = count;
    struct function_groups *function = &functions->items[key.property];
    uint64_t weight = is_by_count ? amount.count : amount.bytes;
    functions->next[index] = SIZE_MAX;
    if (function->stacks++)
        functions->next[function->last] = index;
    else
        function->first = index;
    function->last = index;
    function->bytes = heap_add(function->bytes, amount.bytes);
    function->count = heap_add(function->count, amount.count);
    function->weight = heap_add(function->weight, weight);
    functions->weight = heap_add(functions->weight, weight);
    return TTD_OK;
}

static int functions_compare(const void *a, const void *b)
{
    const struct function_groups *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Moves the functions of groups to the front, the largest first. Returns how many they are. */
static size_t functions_sort(struct functions *functions)
{
    size_t used = 0;
    for (size_t i = 0; i < functions->count; i++)
        if (functions->items[i].stacks)
            functions->items[used++] = functions->items[i];
    if (used)
        qsort(functions->items, used, sizeof *functions->items, functions_compare);
    return used;
}

static void functions_text_one(struct report *report, const struct report_functions *data,
                               const struct functions *functions,
                               const struct function_groups *function)
{
    struct text_output *output = report->output;
    struct heap_key key = data->groups->at(data->groups->context, function->first).key;
    ttd_id stack = key.stack;
    double share = functions->weight ? (double)function->weight / (double)functions->weight : 0;
    out_char(output, '\n');
    out_bold(output);
    if (data->is_by_count) {
        report_count(output, function->count, data->unit);
        out_format(output, " (%.0f %%), ", 100 * share);
        out_size(output, function->bytes);
    } else {
        out_size(output, function->bytes);
        out_format(output, " (%.0f %%) in ", 100 * share);
        report_count(output, function->count, data->unit);
    }
    out_text(output, " by ");
    if (view_find_key(report->functions, &key) == TTD_OK) {
        size_t room = output->width > output->column ? output->width - output->column : 0;
        report_function_place_text(report, stack, view_find_label(report->functions, key),
                                   !output->width               ? SIZE_MAX
                                   : room < REPORT_FUNCTION_MIN ? output->width - 8
                                                                : room);
    }
    out_plain(output);
    out_char(output, '\n');
    size_t shown = data->limit == SIZE_MAX ? SIZE_MAX : FUNCTION_STACKS;
    size_t index = function->first;
    for (size_t i = 0; i < shown && index != SIZE_MAX; i++, index = functions->next[index]) {
        out_text(output, "  ");
        data->amounts(report, data->groups->context, index);
        report_stack_text(report, data->groups->at(data->groups->context, index).key.stack);
    }
    if (function->stacks > shown) {
        out_text(output, "  … and ");
        report_count(output, function->stacks - shown, "stack");
        out_text(output, " more of it (--by stack)\n");
    }
}

void report_functions_text(struct report *report, const struct report_functions *data)
{
    struct functions functions = {.items = NULL};
    enum ttd_status status = TTD_OK;
    functions.next = malloc((data->groups->count + 1) * sizeof *functions.next);
    if (!functions.next)
        status = TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < data->groups->count && status == TTD_OK; i++)
        status = functions_add(&functions, report->functions, data->groups, i, data->is_by_count);
    if (status == TTD_OK) {
        size_t count = functions_sort(&functions);
        size_t shown = report_shown(count, data->limit);
        for (size_t i = 0; i < shown; i++)
            functions_text_one(report, data, &functions, &functions.items[i]);
        if (count > shown) {
            out_text(report->output, "\n… and ");
            report_count(report->output, count - shown, "function");
            out_text(report->output, " more (--limit 0 for all)\n");
        }
    } else {
        report->status = status;
    }
    free(functions.next);
    free(functions.items);
}
