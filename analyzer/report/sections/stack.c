/* SPDX-License-Identifier: MIT */
/* Sections that most commands share: stacks, calls, certainty, counts. */
#include "report/sections/sections.h"

#include <string.h>

#include "report/writers/out.h"
#include "symbols/frames.h"
#include "view/function_names.h"

void report_expand(struct report *report, ttd_id stack)
{
    /* The stacks of a report cost no steps: the limits on groups bound their number. */
    report->frames.count = 0;
    if (report->output->error)
        return;
    uint64_t *steps = report->definitions->stacks.steps;
    report->definitions->stacks.steps = NULL;
    enum ttd_status status = frame_list_expand(&report->frames, report->definitions, stack);
    report->definitions->stacks.steps = steps;
    if (status == TTD_OK) {
        struct frame_list *list = &report->frames;
        size_t skipped = view_skipped(report->view, list);
        list->count -= skipped;
        if (skipped)
            memmove(list->frames, list->frames + skipped, list->count * sizeof *list->frames);
        return;
    }
    report->frames.count = 0;
    report->status = status;
}

#define INLINED_COLUMNS (sizeof " (inlined)" - 1)

/* The parts of a frame that are written. */
struct frame_layout {
    size_t function;
    bool has_folder;
    bool has_module;
};

static struct frame_layout stack_frame_fit(const struct report *report, const struct frame *frame)
{
    const struct text_output *output = report->output;
    struct frame_layout layout = {SIZE_MAX, true, true};
    if (!output->width || !frame->function.size)
        return layout;
    /* Within a line (broken near the frame) the folder says too little. */
    bool is_within = output->column >= output->width / 4;
    size_t room = is_within ? output->width - 2 * 4 : output->width - output->column;
    size_t module = glob_base_name(frame->module).size;
    size_t others = (frame->is_inlined ? INLINED_COLUMNS : 0) + (module ? module + 4 : 0);
    size_t file = frame->file.size ? frame->file.size + sizeof " (:12345)" - 1 : 0;
    size_t name = report_function_columns(report, frame->function);
    if (!is_within && name + file + others <= room)
        return layout;
    layout.has_folder = false;
    if (frame->file.size)
        file -= frame->file.size - glob_base_name(frame->file).size;
    if (name + file + others > room && frame->file.size) {
        layout.has_module = false;
        others -= module ? module + 4 : 0;
    }
    if (name + file + others > room)
        layout.function =
            room > file + others + REPORT_FUNCTION_MIN ? room - file - others : REPORT_FUNCTION_MIN;
    return layout;
}

static void stack_frame_place_text(struct report *report, const struct frame *frame,
                                   const struct frame_layout *layout)
{
    struct text_output *output = report->output;
    if (!frame->file.size)
        return;
    say(output, " (", layout->has_folder ? frame->file : glob_base_name(frame->file));
    if (frame->line)
        out_format(output, ":%u", frame->line);
    out_char(output, ')');
}

void report_frame_text(struct report *report, const struct frame *frame)
{
    struct text_output *output = report->output;
    struct ttd_string module = glob_base_name(frame->module);
    struct frame_layout layout = stack_frame_fit(report, frame);
    if (!frame->function.size) {
        if (module.size)
            escape_text(output, module);
        else
            out_text(output, frame->module_id ? "?" : "");
        if (frame->module_id)
            out_char(output, '+');
        out_hex(output, frame->offset);
        module.size = 0;
    } else {
        report_function_cut(report, frame->function, layout.function);
    }
    stack_frame_place_text(report, frame, &layout);
    if (module.size && layout.has_module)
        say(output, " in ", module);
    if (frame->is_inlined)
        out_text(output, " (inlined)");
}

bool report_stack_is_cut(struct report *report)
{
    const struct frame_list *list = &report->frames;
    enum runtime_reach reach = RUNTIME_NO_FRAME;
    for (size_t i = list->count; i-- > 0 && reach != RUNTIME_WHOLE;)
        reach = runtime_reach_next(reach, runtime_traits(&list->frames[i]));
    if (reach == RUNTIME_NO_FRAME || reach == RUNTIME_WHOLE)
        return false;
    if (!report->knows_beginning)
        report->has_beginning = runtime_has_beginning(report->definitions);
    report->knows_beginning = true;
    return report->has_beginning;
}

/* Frames of one round of a recursion at most, and the smallest number of rounds that is folded. */
enum { ROUND_MAX = 8, ROUNDS_FOLDED = 4 };

static bool stack_are_same_calls(const struct frame *x, const struct frame *y)
{
    return x->address == y->address && x->is_inlined == y->is_inlined &&
           x->function.size == y->function.size &&
           (!x->function.size || memcmp(x->function.data, y->function.data, x->function.size) == 0);
}

/* Counts how often the `size` frames at the begin are repeated at once. */
static size_t stack_count_rounds(const struct frame *frames, size_t count, size_t size)
{
    size_t same = 0;
    while (size + same < count && stack_are_same_calls(&frames[same], &frames[size + same]))
        same++;
    return same / size;
}

/* Returns how many frames make a round of a recursion that goes on long enough to be folded, and
 * sets how often it is repeated; 0 if there is no such recursion here. */
static size_t stack_find_recursion(const struct frame *frames, size_t count, size_t *rounds)
{
    for (size_t size = 1; size <= ROUND_MAX && size < count; size++) {
        *rounds = stack_count_rounds(frames, count, size);
        if (*rounds >= ROUNDS_FOLDED)
            return size;
    }
    return 0;
}

bool report_frame_is_foreign(const struct report *report, const struct frame *frame)
{
    struct ttd_string canonical = definitions_canonical(report->definitions, frame->name);
    bool is_mixed = false;
    return allocators_have(frame->function) || allocators_wrap(canonical) ||
           runtime_has_function(canonical, &is_mixed) || runtime_has_module(frame->module) ||
           runtime_is_rust(frame);
}

/* Writes a frame with its number, or how many frames were not recorded there. Returns how many
 * frames it is. */
static uint64_t stack_text_frame(struct report *report, const struct frame *frame, uint64_t number)
{
    struct text_output *output = report->output;
    uint64_t left_out = frame->module_id ? 0 : TTD_FRAMES_LEFT_OUT_COUNT(frame->offset);
    if (left_out) {
        say(output, "    … ", counted(left_out, "frame"),
            left_out == 1 ? " was not recorded\n" : " were not recorded\n");
        return left_out;
    }
    bool is_dim =
        output->has_color && report->definitions && report_frame_is_foreign(report, frame);
    if (is_dim)
        out_dim(output);
    out_format(output, "    #%-2llu ", (unsigned long long)number);
    report_frame_text(report, frame);
    if (is_dim)
        out_plain(output);
    out_char(output, '\n');
    return 1;
}

/* Frames of a deep stack that are written at its innermost end, and those at the other end; and the
 * smallest number of frames that is left out. */
enum { HEAD_FRAMES = 8, TAIL_FRAMES = 4, ELIDED_MIN = 3 };

/* The shape of a stack: whether it is deep, so that some frames are left out; and the frames in the
 * middle that are written as well: the innermost one that is the program's own, and the innermost
 * one of the module that the stack began in. */
struct stack_shape {
    size_t count;
    bool is_deep;
    size_t own;
    size_t began;
};

static struct stack_shape stack_find_shape(const struct report *report, size_t count)
{
    const struct frame *frames = report->frames.frames;
    struct stack_shape shape = {count, false, count, count};
    shape.is_deep = count >= HEAD_FRAMES + TAIL_FRAMES + ELIDED_MIN && !report->shows_all;
    for (size_t i = shape.is_deep && report->definitions ? count : 0; i-- > 0;) {
        if (report_frame_is_foreign(report, &frames[i]))
            continue;
        shape.own = i;
        if (frames[i].module_id == frames[count - 1].module_id)
            shape.began = i;
    }
    return shape;
}

/* Whether a frame of a deep stack is left out for sure: within other code, whose innermost frame is
 * written only if it is the first of all, and whose outermost one the program called. */
static bool stack_is_within_foreign(const struct report *report, const struct stack_shape *shape,
                                    size_t index)
{
    const struct frame *frames = report->frames.frames;
    return report->definitions && index && index + TAIL_FRAMES < shape->count &&
           frames[index].module_id && report_frame_is_foreign(report, &frames[index]) &&
           report_frame_is_foreign(report, &frames[index + 1]);
}

/* Returns how many frames are left out at an index, when so many were written: none if they are
 * few. A place where frames were not recorded is always written. */
static size_t stack_count_elided(const struct report *report, const struct stack_shape *shape,
                                 size_t index, size_t written)
{
    size_t end = index;
    if (!shape->is_deep)
        return 0;
    while (stack_is_within_foreign(report, shape, end))
        end++;
    if (end - index >= ELIDED_MIN)
        return end - index;
    end = index;
    while (written >= HEAD_FRAMES && end + TAIL_FRAMES < shape->count && end != shape->own &&
           end != shape->began && report->frames.frames[end].module_id)
        end++;
    return end - index < ELIDED_MIN ? 0 : end - index;
}

/* Writes how many frames of a recursion follow. */
static void stack_text_rounds(struct report *report, const struct frame *frame, size_t size,
                              size_t rounds)
{
    out_format(report->output, "    … %zu × ", rounds);
    if (size == 1)
        report_function_text(report, frame->function);
    else
        out_format(report->output, "the %zu frames above", size);
    out_char(report->output, '\n');
}

/* Writes frames; frames of a recursion only once, and of a deep stack its two ends, without most of
 * the other code there. */
static void stack_text_frames(struct report *report, size_t count)
{
    const struct frame *frames = report->frames.frames;
    struct stack_shape shape = stack_find_shape(report, count);
    size_t rounds = 0, size = 0, written = 0;
    uint64_t number = 0;
    for (size_t i = 0, folded_at = count; i < count; i++) {
        if (folded_at == count && !report->shows_all &&
            (size = stack_find_recursion(&frames[i], count - i, &rounds)))
            folded_at = i + size;
        if (i == folded_at) {
            stack_text_rounds(report, &frames[i], size, rounds);
            i += rounds * size;
            number += rounds * size;
            folded_at = count;
        }
        size_t elided = folded_at == count ? stack_count_elided(report, &shape, i, written++) : 0;
        if (elided)
            say(report->output, "    … ", counted(elided, "frame"), "\n");
        i += elided;
        number += elided;
        if (i < count)
            number += stack_text_frame(report, &frames[i], number);
    }
}

/* Says why the last frame has no caller: most often its module was built without unwind data. */
static void stack_text_cut(struct report *report)
{
    struct text_output *output = report->output;
    struct ttd_string module =
        glob_base_name(report->frames.frames[report->frames.count - 1].module);
    if (!module.size) {
        out_text(output, "    (callers unknown: code of no module, or a stack of its own)\n");
        return;
    }
    say(output, "    (callers unknown: no unwind data in ", module,
        ", which gcc and\n    clang write with -fasynchronous-unwind-tables, or a stack of its "
        "own)\n");
}

void report_frames_text(struct report *report, bool is_cut)
{
    size_t count = report->frames.count;
    /* Frames below main(), or below the first function of a thread, are those of the runtimes, the
     * same in every stack. */
    size_t shown_count = report->shows_all ? count : runtime_begin_of(&report->frames) + 1;
    stack_text_frames(report, shown_count < count ? shown_count : count);
    if (shown_count < count) {
        const struct frame *outermost = &report->frames.frames[shown_count - 1];
        say(report->output, "    … ", counted(count - shown_count, "frame"), " below ");
        if (runtime_is_main(outermost))
            out_text(report->output, "main");
        else if (outermost->function.size)
            report_function_text(report, outermost->function);
        else
            out_text(report->output, "it");
        out_char(report->output, '\n');
    }
    if (!count)
        out_text(report->output, "    (no stack was recorded)\n");
    if (is_cut)
        stack_text_cut(report);
}

void report_stack_text(struct report *report, ttd_id stack)
{
    report_expand(report, stack);
    report_frames_text(report, report_stack_is_cut(report));
}

static void row_stack_number(struct row *row, const char *key, ttd_id stack)
{
    const struct report_stacks *stacks = &row->report->stacks;
    uint64_t number = 0;
    enum ttd_status status = stacks->find(stacks->context, stack, &number);
    if (status != TTD_OK)
        row->report->status = status;
    row_unsigned(row, key, number);
}

void row_stack(struct row *row, const char *key, ttd_id stack)
{
    if (row_is_skipped(row))
        return;
    if (row->report->stacks.find) {
        row_stack_number(row, key, stack);
        return;
    }
    if (!row->is_header)
        report_expand(row->report, stack);
    row_frames(row, key, !row->is_header && report_stack_is_cut(row->report));
}

/* Writes the frames as one field, such as "malloc;f;main". */
static void stack_row_frames_field(struct row *row, const char *key, bool is_cut)
{
    static const char unknown[] = "(callers unknown)";
    const struct frame_list *list = &row->report->frames;
    if (!row_begin_field(row, key))
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct frame *frame = &list->frames[i];
        struct ttd_string name =
            frame->function.size ? frame->function : glob_base_name(frame->module);
        row_field_text(row, name, !i);
        if (frame->function.size)
            continue;
        if (name.size)
            out_char(row->output, '+');
        out_hex(row->output, frame->offset);
    }
    if (is_cut && list->count)
        row_field_text(row, (struct ttd_string){unknown, sizeof unknown - 1}, false);
    row_end_field(row);
}

void row_frames(struct row *row, const char *key, bool is_cut)
{
    const struct frame_list *list = &row->report->frames;
    if (!row->is_json) {
        stack_row_frames_field(row, key, is_cut);
        return;
    }
    row_begin_array(row, key);
    for (size_t i = 0; i < list->count; i++) {
        const struct frame *frame = &list->frames[i];
        row_begin_object(row, NULL);
        row_name(row, "function", frame->function);
        row_name(row, "file", frame->file);
        row_unsigned_if(row, "line", frame->line, frame->line);
        row_name(row, "module", frame->module);
        row_hex(row, "offset", frame->offset);
        row_hex(row, "address", frame->address);
        row_bool(row, "inlined", frame->is_inlined);
        if (is_cut && i + 1 == list->count)
            row_bool(row, "callers_unknown", true);
        row_end_object(row);
    }
    row_end_array(row);
}

void row_call(struct row *row, const char *key, const struct heap_call *call)
{
    if (!heap_call_is_known(call)) {
        row_null(row, key);
        return;
    }
    row_begin_object(row, key);
    row_position(row, "position", call->position);
    row_text(row, "action", ttd_action_name((enum ttd_action)call->action));
    row_text(row, "api", ttd_api_name(call->api));
    row_unsigned(row, "thread", call->thread);
    row_unsigned(row, "stack_id", call->stack);
    row_stack(row, "stack", call->stack);
    row_bool(row, "returned", !call->is_unfinished);
    row_end_object(row);
}

void report_position_text(struct report *report, struct ttd_position position)
{
    char text[32];
    out_position(report->output, position);
    if (report->clock.time && report->clock.time(report->clock.context, position, text))
        out_format(report->output, " (%s)", text);
}

void report_call_text(struct report *report, const char *label, const struct heap_call *call)
{
    if (!heap_call_is_known(call))
        return;
    say(report->output, "  ", label, " by ", ttd_api_name(call->api), "() at ",
        moment(report, call->position), " in thread ", number(call->thread),
        call->is_unfinished ? ", which never returned" : "", "\n");
    report_stack_text(report, call->stack);
}

static void stack_row_init(struct row *row, struct report *report, bool is_indented)
{
    if (report->sink)
        row_init_sink(row, report->output, report->sink);
    else if (report->form == REPORT_CSV)
        row_init_csv(row, report->output);
    else
        row_init_json(row, report->output, is_indented);
    row->report = report;
    row->has_verdict = true;
    row->is_certain = !report->certainty.count;
}

void row_open(struct row *row, struct report *report)
{
    stack_row_init(row, report, true);
    row_begin_object(row, NULL);
}

void row_open_line(struct row *row, struct report *report, bool is_header)
{
    stack_row_init(row, report, false);
    row->is_header = is_header;
    row_begin_record(row);
}

void row_close_line(struct row *row)
{
    row_end_record(row);
    if (row->is_json)
        out_char(row->output, '\n');
}

bool row_open_only(struct row *row, struct report *report)
{
    stack_row_init(row, report, true);
    row->has_verdict = false;
    if (!row_begin_header(row))
        row_begin_record(row);
    return true;
}

bool row_close_only(struct row *row)
{
    bool was_header = row->is_header;
    row_end_record(row);
    if (was_header)
        row_begin_record(row);
    return was_header;
}

void row_certainty(struct row *row)
{
    const struct certainty *certainty = &row->report->certainty;
    row_bool(row, "certain", !certainty->count);
    row_begin_array(row, "reasons");
    for (size_t i = 0; i < certainty->count; i++)
        row_text(row, NULL, certainty->reasons[i]);
    row_end_array(row);
}

void report_certainty_text(const struct report *report)
{
    for (size_t i = 0; i < report->certainty.count; i++)
        say(report->output, ALARM, "Uncertain", PLAIN, ": ", report->certainty.reasons[i], "\n");
}

void report_folded_begin(struct text_output *output, bool is_certain)
{
    /* Folded stacks have nothing but frames: the verdict is one, below all others. */
    if (!is_certain)
        out_text(output, "[uncertain];");
}

void report_count(struct text_output *output, uint64_t count, const char *unit)
{
    /* Sums stop at this value, so it is a lower bound. */
    if (count == UINT64_MAX)
        out_text(output, "at least ");
    say(output, grouped(count), " ", unit);
    size_t size = strlen(unit);
    if (count != 1)
        out_text(output, size && unit[size - 1] == 's' ? "es" : "s");
}

/* Exact sizes of more digits cannot be read at a glance. */
#define SIZE_EXACT UINT64_C(100000)

void report_size(struct text_output *output, uint64_t size)
{
    bool is_rounded = size >= SIZE_EXACT && size != UINT64_MAX;
    if (is_rounded)
        say(output, rounded(size), " (");
    report_count(output, size, "byte");
    if (is_rounded)
        out_char(output, ')');
}
