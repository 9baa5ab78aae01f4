/* SPDX-License-Identifier: MIT */
/* What the reports of several commands have in common: stacks, doubts, counts. */
#include "report/format.h"

#include <string.h>

#include "report/escape.h"
#include "symbols/runtime.h"

/* Leaves out the frames that the options skip. */
static void skip(struct frame_list *list, size_t count)
{
    list->count -= count;
    if (count)
        memmove(list->items, list->items + count, list->count * sizeof *list->items);
}

void report_expand(struct report *to, ttd_id stack)
{
    /* Stacks that are shown were asked for: their steps are not counted. */
    to->frames.count = 0;
    if (to->output->error)
        return;
    uint64_t *steps = to->names->stacks.steps;
    to->names->stacks.steps = NULL;
    enum ttd_status status = frame_list_expand(&to->frames, to->names, stack);
    to->names->stacks.steps = steps;
    if (status == TTD_OK) {
        skip(&to->frames, view_skipped(to->view, &to->frames));
        return;
    }
    to->frames.count = 0;
    to->status = status;
}

static struct ttd_string base_name(struct ttd_string path)
{
    for (size_t i = path.size; i > 0; i--) {
        if (path.data[i - 1] == '/')
            return (struct ttd_string){path.data + i, path.size - i};
    }
    return path;
}

/* `function (file:line) in module`, or `module+0xoffset` when there are no names. */
static void frame_text(struct report *to, const struct frame *item)
{
    struct out *output = to->output;
    struct ttd_string module = base_name(item->module);
    if (!item->function.size) {
        if (module.size)
            escape_text(output, module);
        else
            out_text(output, item->module_id ? "?" : "");
        if (item->module_id)
            out_char(output, '+');
        out_hex(output, item->offset);
        return;
    }
    report_function_text(to, item->function);
    if (item->file.size) {
        out_text(output, " (");
        escape_text(output, item->file);
        if (item->line)
            out_format(output, ":%u", item->line);
        out_char(output, ')');
    }
    if (module.size) {
        out_text(output, " in ");
        escape_text(output, module);
    }
    if (item->is_inlined)
        out_text(output, " (inlined)");
}

void report_stack_text(struct report *to, ttd_id stack)
{
    report_expand(to, stack);
    size_t count = to->frames.count;
    size_t shown = to->shows_all ? count : runtime_main_of(&to->frames) + 1;
    for (size_t i = 0; i < count && i < shown; i++) {
        out_format(to->output, "    #%-2zu ", i);
        frame_text(to, &to->frames.items[i]);
        out_char(to->output, '\n');
    }
    if (shown < count) {
        out_text(to->output, "    … ");
        report_count(to->output, count - shown, "frame");
        out_text(to->output, " below main\n");
    }
    if (!count)
        out_text(to->output, "    (no stack was recorded)\n");
}

void report_stack_json(struct report *to, struct json *writer, const char *key, ttd_id stack)
{
    report_expand(to, stack);
    json_begin_array(writer, key);
    for (size_t i = 0; i < to->frames.count; i++) {
        const struct frame *item = &to->frames.items[i];
        json_begin_object(writer, NULL);
        json_name(writer, "function", item->function);
        json_name(writer, "file", item->file);
        if (item->line)
            json_unsigned(writer, "line", item->line);
        else
            json_null(writer, "line");
        json_name(writer, "module", item->module);
        json_hex(writer, "offset", item->offset);
        json_hex(writer, "address", item->address);
        json_bool(writer, "inlined", item->is_inlined);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void report_stack_csv(struct report *to, struct csv *writer, ttd_id stack)
{
    report_expand(to, stack);
    csv_list_begin(writer);
    for (size_t i = 0; i < to->frames.count; i++) {
        const struct frame *item = &to->frames.items[i];
        struct ttd_string name = item->function.size ? item->function : base_name(item->module);
        csv_list_item(writer, name, !i);
        if (item->function.size)
            continue;
        if (name.size)
            out_char(to->output, '+');
        out_hex(to->output, item->offset);
    }
    csv_list_end(writer);
}

void report_place_json(struct report *to, struct json *writer, const char *key,
                       const struct heap_call *place)
{
    if (!heap_call_is_known(place)) {
        json_null(writer, key);
        return;
    }
    json_begin_object(writer, key);
    json_position(writer, "position", place->position);
    json_text(writer, "action", ttd_action_name((enum ttd_action)place->action));
    json_text(writer, "api", ttd_api_name(place->api));
    json_unsigned(writer, "thread", place->thread);
    json_unsigned(writer, "stack_id", place->stack);
    report_stack_json(to, writer, "stack", place->stack);
    json_bool(writer, "returned", !place->is_unfinished);
    json_end_object(writer);
}

void report_position_text(struct report *to, struct ttd_position position)
{
    char text[32];
    out_position(to->output, position);
    if (to->clock.time && to->clock.time(to->clock.context, position, text))
        out_format(to->output, " (%s)", text);
}

void report_place_text(struct report *to, const char *what, const struct heap_call *place)
{
    if (!heap_call_is_known(place))
        return;
    out_format(to->output, "  %s by %s() at ", what, ttd_api_name(place->api));
    report_position_text(to, place->position);
    out_format(to->output, " in thread %u%s\n", place->thread,
               place->is_unfinished ? ", which never returned" : "");
    report_stack_text(to, place->stack);
}

void report_doubts_json(const struct report *to, struct json *writer)
{
    json_bool(writer, "certain", !to->doubts.count);
    json_begin_array(writer, "reasons");
    for (size_t i = 0; i < to->doubts.count; i++)
        json_text(writer, NULL, to->doubts.reasons[i]);
    json_end_array(writer);
}

void report_doubts_text(const struct report *to)
{
    for (size_t i = 0; i < to->doubts.count; i++) {
        out_alarm(to->output);
        out_text(to->output, "Uncertain");
        out_plain(to->output);
        out_text(to->output, ": ");
        out_text(to->output, to->doubts.reasons[i]);
        out_char(to->output, '\n');
    }
}

void report_csv_begin(const struct report *to, struct csv *writer)
{
    csv_init(writer, to->output);
    writer->has_verdict = true;
    writer->is_certain = !to->doubts.count;
}

void report_folded_begin(struct out *output, bool is_certain)
{
    if (!is_certain)
        out_text(output, "[uncertain];");
}

void report_count(struct out *output, uint64_t count, const char *unit)
{
    /* Sums stop at this value. */
    if (count == UINT64_MAX)
        out_text(output, "at least ");
    out_grouped(output, count);
    out_char(output, ' ');
    out_text(output, unit);
    size_t size = strlen(unit);
    if (count != 1)
        out_text(output, size && unit[size - 1] == 's' ? "es" : "s");
}
