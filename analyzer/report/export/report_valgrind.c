/* SPDX-License-Identifier: MIT */
/* Profiles in the formats of valgrind's tools: callgrind and massif. Both are lines of text. */
#include "report/export/export_reports.h"

#include <stdlib.h>

#include "base/grow.h"
#include "report/sections/say.h"
#include "report/sections/sections.h"

/* Longer names are cut. */
#define VALGRIND_NAME_MAX 4096

static struct ttd_string valgrind_cut(struct ttd_string text)
{
    if (text.size > VALGRIND_NAME_MAX)
        text.size = VALGRIND_NAME_MAX;
    return text;
}

/* callgrind: for each frame the blocks that it allocates itself, and the blocks of its calls. A
 * frame is a line of a function, so that costs are shown beside the source. */

#define CALL_NONE UINT32_MAX

/** The calls from a frame to a function. */
struct callgrind_call {
    uint32_t callee;
    /** The frame's next call. */
    uint32_t next;
    struct heap_amount amount;
    /** 1 more than the index of the last group that was added: a recursion counts once. */
    size_t latest;
};

struct callgrind_frame {
    uint32_t function;
    uint32_t calls;
    struct heap_amount self;
};

struct callgrind {
    struct profile_table table;
    /** By number of a frame in the table, as far as they were met. */
    struct callgrind_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct callgrind_call *calls;
    size_t call_count;
    size_t call_capacity;
    /** Numbers of calls by frame and callee, of functions by name and file, of functions without a
     * name by module and offset. */
    struct hash_map by_call;
    struct hash_map functions;
    struct hash_map nameless;
    uint32_t function_count;
    /** Whether a function or a file was written with its name, by number. */
    struct hash_map written;
    struct hash_map files;
    uint32_t file_count;
};

static enum ttd_status callgrind_find_function(struct callgrind *callgrind,
                                               const struct frame *frame, uint32_t *function)
{
    bool is_named = frame->function.size;
    struct hash_map *map = is_named ? &callgrind->functions : &callgrind->nameless;
    uint64_t a = is_named ? frame->name : frame->module_id;
    uint64_t b = is_named           ? (frame->file.size ? (uint64_t)(uintptr_t)frame->file.data : 0)
                 : frame->module_id ? frame->offset
                                    : frame->address;
    *function = map_get(map, a, b);
    if (*function != MAP_NONE)
        return TTD_OK;
    *function = callgrind->function_count++;
    return map_set(map, a, b, *function);
}

/* Adds the frames that the table has got since the last time. */
static enum ttd_status callgrind_add_frames(struct callgrind *callgrind)
{
    size_t count = callgrind->table.frame_count;
    enum ttd_status status = grow_array((void **)&callgrind->frames, &callgrind->frame_capacity,
                                        count, sizeof *callgrind->frames);
    for (; callgrind->frame_count < count && status == TTD_OK; callgrind->frame_count++) {
        struct callgrind_frame *frame = &callgrind->frames[callgrind->frame_count];
        *frame = (struct callgrind_frame){.calls = CALL_NONE};
        status = callgrind_find_function(
            callgrind, &callgrind->table.frames[callgrind->frame_count], &frame->function);
    }
    return status;
}

static void callgrind_add_amount(struct heap_amount *sum, const struct heap_group *group)
{
    sum->bytes = heap_add(sum->bytes, group->bytes);
    sum->count = heap_add(sum->count, group->blocks);
}

static enum ttd_status callgrind_add_call(struct callgrind *callgrind, size_t caller,
                                          uint32_t callee, const struct heap_group *group,
                                          size_t number)
{
    struct callgrind_frame *frame = &callgrind->frames[caller];
    /* A function that calls itself would have its costs twice. */
    if (frame->function == callee)
        return TTD_OK;
    uint32_t index = map_get(&callgrind->by_call, caller, callee + UINT64_C(1));
    if (index == MAP_NONE) {
        index = (uint32_t)callgrind->call_count;
        enum ttd_status status = grow_array((void **)&callgrind->calls, &callgrind->call_capacity,
                                            callgrind->call_count + 1, sizeof *callgrind->calls);
        if (status == TTD_OK)
            status = map_set(&callgrind->by_call, caller, callee + UINT64_C(1), index);
        if (status != TTD_OK)
            return status;
        callgrind->calls[callgrind->call_count++] =
            (struct callgrind_call){.callee = callee, .next = frame->calls};
        frame->calls = index;
    }
    struct callgrind_call *call = &callgrind->calls[index];
    if (call->latest != number + 1)
        callgrind_add_amount(&call->amount, group);
    call->latest = number + 1;
    return TTD_OK;
}

static enum ttd_status callgrind_add_group(struct callgrind *callgrind,
                                           const struct heap_group *group, size_t number,
                                           struct heap_amount *no_stack)
{
    struct profile_table *table = &callgrind->table;
    enum ttd_status status = profile_walk(table, group->key.stack);
    if (status == TTD_OK)
        status = callgrind_add_frames(callgrind);
    uint32_t callee = CALL_NONE;
    for (size_t i = 0; i < table->path_count && status == TTD_OK; i++) {
        const struct profile_site *site = &table->sites[table->path[i]];
        for (size_t j = 0; j < site->count && status == TTD_OK; j++) {
            struct callgrind_frame *frame = &callgrind->frames[site->first + j];
            if (callee == CALL_NONE)
                callgrind_add_amount(&frame->self, group);
            else
                status = callgrind_add_call(callgrind, site->first + j, callee, group, number);
            callee = frame->function;
        }
    }
    if (callee == CALL_NONE)
        callgrind_add_amount(no_stack, group);
    return status;
}

/* Writes a file by its key, with its name at the first use of the key only. */
static void callgrind_write_file(struct callgrind *callgrind, const char *key,
                                 const struct frame *frame)
{
    struct text_output *output = callgrind->table.report->output;
    uint64_t file = frame->file.size ? (uint64_t)(uintptr_t)frame->file.data : 0;
    uint32_t number = map_get(&callgrind->files, file, 1);
    bool is_new = number == MAP_NONE;
    if (is_new)
        number = ++callgrind->file_count;
    say(output, key, "=(", number(number), ")");
    if (is_new) {
        out_char(output, ' ');
        escape_text(output, frame->file.size ? valgrind_cut(frame->file) : escape_string("???"));
        if (map_set(&callgrind->files, file, 1, number) != TTD_OK)
            callgrind->table.report->status = TTD_ERROR_NO_MEMORY;
    }
    out_char(output, '\n');
}

static void callgrind_write_function(struct callgrind *callgrind, const char *key,
                                     uint32_t function, const struct frame *frame)
{
    struct text_output *output = callgrind->table.report->output;
    say(output, key, "=(", number(function + UINT64_C(1)), ")");
    if (map_get(&callgrind->written, function, 0) == MAP_NONE) {
        out_char(output, ' ');
        if (frame->function.size) {
            escape_text(output, valgrind_cut(frame->function));
        } else {
            escape_text(output, valgrind_cut(frame->module));
            say(output, frame->module.size ? "+" : "",
                hex(frame->module.size ? frame->offset : frame->address));
        }
        if (map_set(&callgrind->written, function, 0, 1) != TTD_OK)
            callgrind->table.report->status = TTD_ERROR_NO_MEMORY;
    }
    out_char(output, '\n');
}

static void callgrind_write_cost(struct text_output *output, uint32_t line,
                                 const struct heap_amount *amount)
{
    say(output, number(line), " ", number(amount->bytes), " ", number(amount->count), "\n");
}

/* Writes a frame; `firsts` has a frame of each function. */
static void callgrind_write_frame(struct callgrind *callgrind, size_t index, const uint32_t *firsts)
{
    struct text_output *output = callgrind->table.report->output;
    const struct callgrind_frame *frame = &callgrind->frames[index];
    const struct frame *names = &callgrind->table.frames[index];
    if (!frame->self.count && frame->calls == CALL_NONE)
        return;
    callgrind_write_file(callgrind, "fl", names);
    callgrind_write_function(callgrind, "fn", frame->function, names);
    if (frame->self.count)
        callgrind_write_cost(output, names->line, &frame->self);
    for (uint32_t i = frame->calls; i != CALL_NONE; i = callgrind->calls[i].next) {
        const struct callgrind_call *call = &callgrind->calls[i];
        const struct frame *callee = &callgrind->table.frames[firsts[call->callee]];
        callgrind_write_file(callgrind, "cfi", callee);
        callgrind_write_function(callgrind, "cfn", call->callee, callee);
        say(output, "calls=", number(call->amount.count), " 0\n");
        callgrind_write_cost(output, names->line, &call->amount);
    }
    out_char(output, '\n');
}

static void callgrind_write_frames(struct callgrind *callgrind)
{
    uint32_t *firsts = calloc(callgrind->function_count + (size_t)1, sizeof *firsts);
    if (!firsts) {
        callgrind->table.report->status = TTD_ERROR_NO_MEMORY;
        return;
    }
    for (size_t i = callgrind->frame_count; i > 0; i--)
        firsts[callgrind->frames[i - 1].function] = (uint32_t)(i - 1);
    for (size_t i = 0; i < callgrind->frame_count; i++)
        callgrind_write_frame(callgrind, i, firsts);
    free(firsts);
}

/* Writes the description that both formats have. */
static void valgrind_write_description(struct report *report, const char *blocks)
{
    struct text_output *output = report->output;
    say(output, "desc: ", blocks, "\n");
    for (size_t i = 0; i < report->certainty.count; i++) {
        out_text(output, "desc: Uncertain: ");
        escape_comment(output, escape_string(report->certainty.reasons[i]));
        out_char(output, '\n');
    }
    out_text(output, "cmd: ");
    escape_comment(output, escape_string(report->path));
    out_char(output, '\n');
}

static void callgrind_write(struct callgrind *callgrind, const struct report_profile *data,
                            const struct heap_amount *no_stack)
{
    struct text_output *output = callgrind->table.report->output;
    struct heap_amount total = {.bytes = data->groups->bytes, .count = data->groups->blocks};
    say(output, "# callgrind format\nversion: 1\ncreator: ttdanalyze\n");
    valgrind_write_description(callgrind->table.report, report_measure_words(data->measure));
    say(output, "positions: line\nevents: Bytes Blocks\nsummary: ", number(total.bytes), " ",
        number(total.count), "\n\n");
    callgrind_write_frames(callgrind);
    if (no_stack->count) {
        say(output, "fl=???\nfn=[no stack]\n");
        callgrind_write_cost(output, 0, no_stack);
    }
    say(output, "totals: ", number(total.bytes), " ", number(total.count), "\n");
}

void report_profile_callgrind(struct report *report, const struct report_profile *data)
{
    struct callgrind callgrind = {.table = {.report = report}};
    struct hash_map *maps[] = {&callgrind.table.by_address, &callgrind.by_call,
                               &callgrind.functions,        &callgrind.nameless,
                               &callgrind.written,          &callgrind.files};
    struct heap_amount no_stack = {.count = 0};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
        map_init(maps[i]);
    for (size_t i = 0; i < data->groups->count && report->status == TTD_OK; i++)
        report->status = callgrind_add_group(&callgrind, &data->groups->items[i], i, &no_stack);
    if (report->status == TTD_OK)
        callgrind_write(&callgrind, data, &no_stack);
    for (size_t i = 1; i < sizeof maps / sizeof maps[0]; i++)
        map_free(maps[i]);
    profile_free(&callgrind.table);
    free(callgrind.frames);
    free(callgrind.calls);
}

/* massif: snapshots in the course of time, and the tree of the blocks at the peak. */

/* Nodes with a smaller share of the bytes are summed up. */
#define MASSIF_SHARE 200

static bool massif_has_node(const struct view_tree *tree, const struct view_node *node)
{
    return node->total.bytes >= tree->nodes[0].total.bytes / MASSIF_SHARE;
}

static void massif_write_name(struct report *report, const struct view_label *label)
{
    struct text_output *output = report->output;
    struct ttd_string name = report_label_name(report, label);
    bool has_offset = !name.size && label->kind != LABEL_NONE;
    out_hex(output, has_offset ? label->number : 0);
    out_text(output, ": ");
    if (label->kind == LABEL_NONE)
        out_text(output, "[no stack]");
    else
        escape_comment(output, name.size ? valgrind_cut(name) : escape_string("???"));
    if (label->module.size) {
        out_text(output, " (in ");
        escape_comment(output, valgrind_cut(label->module));
        out_char(output, ')');
    }
}

/* Writes a node, and before the nodes below it one that sums up those that are left out. */
static void massif_write_node(struct report *report, const struct view_tree *tree, uint32_t index)
{
    const struct view_node *node = &tree->nodes[index];
    struct text_output *output = report->output;
    uint32_t level = index ? node->depth + 1 : 0, shown = 0, left_out = 0;
    uint64_t bytes = 0;
    for (uint32_t i = node->first; i != VIEW_NO_NODE; i = tree->nodes[i].next) {
        bool has_node = massif_has_node(tree, &tree->nodes[i]);
        shown += has_node;
        left_out += !has_node;
        bytes = has_node ? bytes : heap_add(bytes, tree->nodes[i].total.bytes);
    }
    out_format(output, "%*sn%u: ", (int)level, "", (unsigned)(shown + (left_out != 0)));
    say(output, number(node->total.bytes), " ");
    if (index)
        massif_write_name(report, view_tree_label(tree, node));
    else
        out_text(output, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
    out_char(output, '\n');
    if (left_out) {
        /* A sum that was too large is smaller than its parts. */
        out_format(output, "%*sn0: ", (int)level + 1, "");
        say(output, number(bytes < node->total.bytes ? bytes : node->total.bytes), " in ",
            number(left_out), " places, all below the threshold of 0.5%\n");
    }
}

static void massif_write_tree(struct report *report, const struct view_tree *tree)
{
    massif_write_node(report, tree, 0);
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        if (massif_has_node(tree, &tree->nodes[i]))
            massif_write_node(report, tree, i);
    }
}

/* The point in whose stretch the peak was: the last one that begins by then. */
static size_t massif_peak_of(const struct report_course *data)
{
    size_t peak = 0;
    for (size_t i = 0; i < data->timeline->count; i++) {
        if (ttd_position_compare(data->timeline->points[i].position, data->peak) <= 0)
            peak = i;
    }
    return peak;
}

/* Times are milliseconds with a fraction: a short program has many points in one. */
static void massif_write_snapshot(struct report *report, const struct report_course *data,
                                  size_t index, bool is_peak)
{
    const struct heap_timeline *timeline = data->timeline;
    struct text_output *output = report->output;
    const struct heap_point *point = timeline->count ? &timeline->points[index] : NULL;
    uint64_t bytes = is_peak ? data->tree->nodes[0].total.bytes
                     : point ? heap_sum_value(point->peak)
                             : 0;
    uint64_t time = !point            ? 0
                    : data->has_times ? point->begin
                                      : timeline->first + (uint64_t)index * timeline->width;
    say(output, "#-----------\nsnapshot=", number(index),
        "\n#-----------\ntime=", number(data->has_times ? time / 1000000 : time));
    if (data->has_times)
        out_format(output, ".%06u", (unsigned)(time % 1000000));
    say(output, "\nmem_heap_B=", number(bytes), "\nmem_heap_extra_B=0\nmem_stacks_B=0\n",
        is_peak ? "heap_tree=peak\n" : "heap_tree=empty\n");
    if (is_peak)
        massif_write_tree(report, data->tree);
}

void report_profile_massif(struct report *report, const struct report_course *data)
{
    size_t peak = massif_peak_of(data);
    valgrind_write_description(report, "ttdanalyze; each snapshot has the most until the next");
    say(report->output, "time_unit: ", data->has_times ? "ms" : "i", "\n");
    for (size_t i = 0; i < data->timeline->count || !i; i++)
        massif_write_snapshot(report, data, i, i == peak);
}
