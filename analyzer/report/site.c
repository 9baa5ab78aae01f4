/* SPDX-License-Identifier: MIT */
/* What rows are about: a stack, or what they are grouped by. */
#include "report/escape.h"
#include "report/format.h"
#include "view/glob.h"

static bool is_by_stack(const struct report *to)
{
    return to->view->options.by == VIEW_BY_STACK;
}

struct ttd_string report_label_name(const struct report *to, const struct view_label *name)
{
    if (name->kind == LABEL_THREAD) {
        const struct definition_thread *thread =
            definitions_thread(to->names, (ttd_id)name->number);
        return definitions_text(to->names, thread ? thread->name : TTD_NONE);
    }
    if (name->kind == LABEL_HEAP) {
        const struct definition_heap *heap = definitions_heap(to->names, (ttd_id)name->number);
        return definitions_text(to->names, heap ? heap->name : TTD_NONE);
    }
    return name->name;
}

static uint64_t handle_of(const struct report *to, const struct view_label *name)
{
    const struct definition_heap *heap = definitions_heap(to->names, (ttd_id)name->number);
    return heap ? heap->handle : 0;
}

static void text_function(struct report *to, const struct view_label *name)
{
    struct out *output = to->output;
    struct ttd_string module = glob_base_name(name->module);
    if (name->name.size) {
        report_function_text(to, name->name);
        if (module.size)
            out_text(output, " in ");
        escape_text(output, module);
        return;
    }
    if (!module.size && !name->number) {
        out_text(output, "(in no module)");
        return;
    }
    escape_text(output, module);
    if (module.size)
        out_char(output, '+');
    out_hex(output, name->number);
}

static void text_owner(struct report *to, const char *kind, const struct view_label *name)
{
    struct ttd_string text = report_label_name(to, name);
    out_format(to->output, "%s %u ", kind, (unsigned)name->number);
    if (text.size)
        escape_text(to->output, text);
    else if (name->kind == LABEL_HEAP && definitions_heap(to->names, (ttd_id)name->number))
        out_hex(to->output, handle_of(to, name));
}

void report_label_text(struct report *to, const struct view_label *name)
{
    struct out *output = to->output;
    switch (name->kind) {
    case LABEL_NONE:
        out_text(output, "(no stack was recorded)");
        break;
    case LABEL_FUNCTION:
        text_function(to, name);
        break;
    case LABEL_FILE:
        if (name->name.size) {
            escape_text(output, name->name);
            break;
        }
        out_text(output, name->module.size ? "(no file is known) in " : "(no file is known)");
        escape_text(output, glob_base_name(name->module));
        break;
    case LABEL_MODULE:
        if (name->name.size)
            escape_text(output, name->name);
        else
            out_text(output, "(in no module)");
        break;
    case LABEL_THREAD:
        text_owner(to, "thread", name);
        break;
    case LABEL_HEAP:
        text_owner(to, "heap", name);
        break;
    }
}

void report_label_json(struct report *to, struct json *writer, const struct view_label *name)
{
    switch (name->kind) {
    case LABEL_NONE:
    case LABEL_FUNCTION:
        json_name(writer, "function", name->name);
        json_name(writer, "module", name->module);
        if (name->number)
            json_hex(writer, "offset", name->number);
        else
            json_null(writer, "offset");
        break;
    case LABEL_FILE:
        json_name(writer, "file", name->name);
        json_name(writer, "module", name->module);
        break;
    case LABEL_MODULE:
        json_name(writer, "module", name->name);
        break;
    case LABEL_THREAD:
        json_unsigned(writer, "thread", name->number);
        json_name(writer, "name", report_label_name(to, name));
        break;
    case LABEL_HEAP:
        json_unsigned(writer, "heap_id", name->number);
        json_hex(writer, "heap", handle_of(to, name));
        json_name(writer, "name", report_label_name(to, name));
        break;
    }
}

void report_site_text(struct report *to, struct heap_key key)
{
    if (is_by_stack(to)) {
        report_stack_text(to, key.stack);
        return;
    }
    out_text(to->output, "    ");
    report_label_text(to, view_find_label(to->view, key));
    out_char(to->output, '\n');
}

/* What has no stack has the members that others of its kind have. */
static struct view_label label_of(const struct report *to, struct heap_key key)
{
    static const enum label_kind kinds[] = {LABEL_NONE,   LABEL_FUNCTION, LABEL_FILE,
                                            LABEL_MODULE, LABEL_THREAD,   LABEL_HEAP};
    struct view_label name = *view_find_label(to->view, key);
    if (name.kind == LABEL_NONE)
        name = (struct view_label){.kind = kinds[to->view->options.by]};
    return name;
}

void report_site_json(struct report *to, struct json *writer, struct heap_key key)
{
    if (is_by_stack(to)) {
        json_unsigned(writer, "stack_id", key.stack);
        report_stack_json(to, writer, "stack", key.stack);
        return;
    }
    struct view_label name = label_of(to, key);
    report_label_json(to, writer, &name);
}

void report_site_header(struct report *to, struct csv *writer, const char *names)
{
    static const char *const fields[] = {",stack_id,stack", ",function,module,offset",
                                         ",file,module",    ",module",
                                         ",thread,name",    ",heap_id,heap,name"};
    out_text(to->output, names);
    csv_header(writer, fields[to->view->options.by]);
}

static void csv_label(struct report *to, struct csv *writer, const struct view_label *name)
{
    switch (name->kind) {
    case LABEL_NONE:
        break;
    case LABEL_FUNCTION:
        csv_string(writer, name->name);
        csv_string(writer, name->module);
        if (name->number)
            csv_hex(writer, name->number);
        else
            csv_empty(writer);
        break;
    case LABEL_FILE:
        csv_string(writer, name->name);
        csv_string(writer, name->module);
        break;
    case LABEL_MODULE:
        csv_string(writer, name->name);
        break;
    case LABEL_THREAD:
        csv_unsigned(writer, name->number);
        csv_string(writer, report_label_name(to, name));
        break;
    case LABEL_HEAP:
        csv_unsigned(writer, name->number);
        csv_hex(writer, handle_of(to, name));
        csv_string(writer, report_label_name(to, name));
        break;
    }
}

void report_site_csv(struct report *to, struct csv *writer, struct heap_key key)
{
    if (is_by_stack(to)) {
        csv_unsigned(writer, key.stack);
        report_stack_csv(to, writer, key.stack);
        return;
    }
    struct view_label name = label_of(to, key);
    csv_label(to, writer, &name);
}

void report_site_count(struct report *to, size_t count)
{
    report_count(to->output, count, view_key_name(to->view->options.by));
}

void report_site_more(struct report *to, size_t count)
{
    if (!count)
        return;
    out_text(to->output, "\n… and ");
    report_site_count(to, count);
    out_text(to->output, " more (--limit 0 for all)\n");
}
