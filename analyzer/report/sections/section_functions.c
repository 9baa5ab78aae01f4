/* SPDX-License-Identifier: MIT */
/* Functions: their names in text, and groups by function. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sort.h"
#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "symbols/frames.h"
#include "view/function_names.h"

/* Groups by stack, as text that leads with functions: each with its share, and below it its
 * heaviest stacks. */

/* Stacks that are shown below a function. */
#define FUNCTION_STACKS 3

/* Smallest shares, in percent: of a function whose share a table shows as a number, not as "<1 %";
 * and of a function that has stacks below the table. The first functions of it always have. */
#define SHARE_MIN         0.5
#define SHARE_WITH_STACKS 4.5

/* Columns of the longest name of a module that is not cut where names are missing. */
#define NAMES_MODULE_COLUMNS 28

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
    /** By group: its label; then, once it is added, the next one of the same function. */
    size_t *next;
    uint64_t weight;
};

const struct frame *report_function_frame(struct report *report, ttd_id stack,
                                          const struct view_label *function)
{
    report_expand(report, stack);
    for (size_t i = 0; i < report->frames.count; i++) {
        struct view_label label = label_of_frame(LABEL_FUNCTION, &report->frames.frames[i]);
        if (label.name.size == function->name.size && label.name.data == function->name.data &&
            label.number == function->number)
            return &report->frames.frames[i];
    }
    return NULL;
}

/* Writes a function without a name, and the next one outward that has a name and that the program
 * or a library defines: "libxml2.so.2+0x1316be, below xmlParseElement". */
static void functions_text_nameless(struct report *report, const struct frame *frame,
                                    const struct view_label *function, size_t columns)
{
    struct text_output *output = report->output;
    size_t begin = output->column;
    report_label_text(report, function);
    if (!frame)
        return;
    const struct frame *end = report->frames.frames + report->frames.count;
    while (frame < end && (!frame->function.size || runtime_traits(frame) & RUNTIME_IS_BEGINNING))
        frame++;
    size_t used = output->column - begin + strlen(", below ");
    if (frame == end || columns < used + REPORT_FUNCTION_MIN)
        return;
    out_text(output, ", below ");
    report_function_cut(report, frame->function, columns - used);
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
        functions_text_nameless(report, frame, function, columns);
    if (file.size)
        say(output, " (", file, line, ")");
}

/* Finds the labels of all groups. In the order of their stacks, since neighbours have most callers
 * in common: in the order of amounts, each would be looked up in other memory. */
static enum ttd_status functions_find_labels(struct functions *functions, struct view *view,
                                             const struct report_amounts *groups)
{
    struct sort_key *keys = malloc((2 * groups->count + 1) * sizeof *keys);
    enum ttd_status status = keys ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < groups->count && keys; i++) {
        struct heap_key key = groups->at(groups->context, i).key;
        keys[i] = (struct sort_key){(uint64_t)key.stack << 32 | key.property, (uint32_t)i};
    }
    if (keys)
        sort_keys(keys, keys + groups->count, groups->count);
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        struct heap_key key = {(ttd_id)(keys[i].value >> 32), (ttd_id)keys[i].value};
        status = view_find_key(view, &key);
        functions->next[keys[i].index] = key.property;
    }
    free(keys);
    return status;
}

/* Adds a group to the others of its function. */
static enum ttd_status functions_add(struct functions *functions,
                                     const struct report_amounts *groups, size_t index,
                                     bool is_by_count)
{
    struct report_amount amount = groups->at(groups->context, index);
    size_t label = functions->next[index];
    size_t count = functions->count;
    enum ttd_status status = TTD_OK;
    if (label >= count)
        status = grow_array((void **)&functions->items, &functions->capacity, label + 1,
                            sizeof *functions->items);
    if (status != TTD_OK)
        return status;
    for (; count <= label; count++)
        functions->items[count] = (struct function_groups){.stacks = 0};
    functions->count = count;
    struct function_groups *function = &functions->items[label];
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

static double functions_share(const struct functions *functions,
                              const struct function_groups *function)
{
    return functions->weight ? 100 * (double)function->weight / (double)functions->weight : 0;
}

void report_key_function_text(struct report *report, struct heap_key key)
{
    struct text_output *output = report->output;
    ttd_id stack = key.stack;
    if (view_find_key(report->functions, &key) != TTD_OK)
        return;
    size_t room = output->width > output->column ? output->width - output->column : 0;
    report_function_place_text(report, stack, view_find_label(report->functions, key),
                               !output->width               ? SIZE_MAX
                               : room < REPORT_FUNCTION_MIN ? output->width - 8
                                                            : room);
}

/* Writes the function of groups, and the file and line of its largest stack. */
static void functions_text_name(struct report *report, const struct report_functions *data,
                                const struct function_groups *function)
{
    report_key_function_text(report, data->groups->at(data->groups->context, function->first).key);
}

size_t report_count_columns(uint64_t count, const char *unit)
{
    int digits = snprintf(NULL, 0, "%llu", (unsigned long long)count);
    return (size_t)digits + (size_t)(digits - 1) / 3 + strlen(" ") + strlen(unit) + strlen("s");
}

/* Columns of a table of functions. */
enum { COLUMN_BYTES = 9, COLUMN_COUNT = 20 };

/* Writes a line for each function, so that all of them are seen at once. */
static void functions_text_table(struct report *report, const struct report_functions *data,
                                 const struct functions *functions, size_t count)
{
    struct text_output *output = report->output;
    size_t shown = report_shown(count, data->limit);
    size_t column_name = 0;
    for (size_t i = 0; i < shown; i++) {
        size_t end = COLUMN_COUNT + report_count_columns(functions->items[i].count, data->unit) + 2;
        column_name = end > column_name ? end : column_name;
    }
    say(output, "\n", data->title ? data->title : "");
    for (size_t i = 0; i < shown; i++) {
        const struct function_groups *function = &functions->items[i];
        double share = functions_share(functions, function);
        if (share < SHARE_MIN)
            out_text(output, "   <1 %");
        else
            out_format(output, "%5.0f %%", share);
        say(output, tab(COLUMN_BYTES), rounded(function->bytes), tab(COLUMN_COUNT),
            counted(function->count, data->unit), tab(column_name));
        functions_text_name(report, data, function);
        out_char(output, '\n');
    }
    if (count > shown)
        say(output, tab(COLUMN_BYTES), "… and ", counted(count - shown, "function"),
            " more (--limit 0 for all)\n");
}

/* Writes a function with its share, and its heaviest stacks. */
static void functions_text_one(struct report *report, const struct report_functions *data,
                               const struct functions *functions,
                               const struct function_groups *function)
{
    struct text_output *output = report->output;
    double share = functions_share(functions, function);
    say(output, "\n", BOLD);
    if (data->is_by_count) {
        say(output, counted(function->count, data->unit), " (", percent(share), "), ",
            rounded(function->bytes));
    } else {
        say(output, rounded(function->bytes), " (", percent(share), ") in ",
            counted(function->count, data->unit));
    }
    out_text(output, " by ");
    functions_text_name(report, data, function);
    say(output, PLAIN, "\n");
    size_t shown = data->limit == SIZE_MAX ? SIZE_MAX : FUNCTION_STACKS;
    size_t index = function->first;
    for (size_t i = 0; i < shown && index != SIZE_MAX; i++, index = functions->next[index]) {
        out_text(output, "  ");
        data->amounts(report, data->groups->context, index);
        report_stack_text(report, data->groups->at(data->groups->context, index).key.stack);
    }
    if (function->stacks > shown)
        say(output, "  … and ", counted(function->stacks - shown, "stack"),
            " more of it (--by stack)\n");
}

void report_names_text(struct report *report, struct ttd_string module, size_t column)
{
    struct text_output *output = report->output;
    report_middle_cut(output, glob_base_name(module), NAMES_MODULE_COLUMNS);
    say(output, ": install its debug symbols,\n", tab(column),
        "or set DEBUGINFOD_URLS; then ttdrecord symbolize ", escape_string(report->path), "\n");
}

bool report_key_names_text(struct report *report, struct heap_key key)
{
    if (report->has_named || view_find_key(report->functions, &key) != TTD_OK)
        return report->has_named;
    const struct view_label *label = view_find_label(report->functions, key);
    if (label->kind != LABEL_FUNCTION || label->name.size || !label->module.size)
        return false;
    out_text(report->output, "\nNames are missing in ");
    report_names_text(report, label->module, 0);
    report->has_named = true;
    return true;
}

/* Says how to get names if a function with a share worth a look has none. */
static void functions_text_names(struct report *report, const struct report_functions *data,
                                 const struct functions *functions, size_t shown)
{
    for (size_t i = 0; i < shown; i++) {
        const struct function_groups *function = &functions->items[i];
        struct report_amount largest = data->groups->at(data->groups->context, function->first);
        if (functions_share(functions, function) < SHARE_WITH_STACKS ||
            report_key_names_text(report, largest.key))
            return;
    }
}

/* Writes the functions, the largest first: many of them as a table, and the stacks of those with a
 * share worth a look. */
static void functions_text_all(struct report *report, const struct report_functions *data,
                               const struct functions *functions, size_t count)
{
    struct text_output *output = report->output;
    while (!data->amounts && count && !functions->items[count - 1].weight)
        count--;
    size_t shown = report_shown(count, data->limit);
    bool has_table = shown && (data->amounts ? shown : data->groups->count) > REPORT_WITHOUT_TABLE;
    size_t detailed = 0;
    if (has_table)
        functions_text_table(report, data, functions, count);
    for (; detailed < shown && data->amounts; detailed++) {
        if (detailed >= REPORT_WITHOUT_TABLE && data->limit != SIZE_MAX &&
            functions_share(functions, &functions->items[detailed]) < SHARE_WITH_STACKS)
            break;
        functions_text_one(report, data, functions, &functions->items[detailed]);
    }
    if (data->amounts && detailed < shown)
        say(output, "\nStacks of functions with less than 5 %: --by stack, or --limit 0\n");
    else if (data->amounts && !has_table && count > shown)
        say(output, "\n… and ", counted(count - shown, "function"), " more (--limit 0 for all)\n");
    functions_text_names(report, data, functions, shown);
}

void report_functions_text(struct report *report, const struct report_functions *data)
{
    struct functions functions = {.items = NULL};
    functions.next = malloc((data->groups->count + 1) * sizeof *functions.next);
    enum ttd_status status =
        functions.next ? functions_find_labels(&functions, report->functions, data->groups)
                       : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < data->groups->count && status == TTD_OK; i++)
        status = functions_add(&functions, data->groups, i, data->is_by_count);
    if (status == TTD_OK)
        functions_text_all(report, data, &functions, functions_sort(&functions));
    else
        report->status = status;
    free(functions.next);
    free(functions.items);
}

/* Names of functions in text. Names of C++ functions consist mostly of template arguments; the long
 * ones are left out. */

/* Longer template arguments are left out. */
#define ARGUMENTS_MAX 24

/* Columns of the longest name that keeps its long parameters. */
#define COLUMNS_MAX 56

static bool functions_stands_at(struct ttd_string name, size_t offset, const char *word)
{
    size_t size = strlen(word);
    return name.size - offset >= size && memcmp(name.data + offset, word, size) == 0;
}

/* Returns the size of an operator with '<' in its name that begins at an offset; 0 if there is
 * none. */
static size_t functions_operator_size(struct ttd_string name, size_t offset)
{
    static const char *const names[] = {"operator<=>", "operator<<=", "operator<<",
                                        "operator<=", "operator<"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (functions_stands_at(name, offset, names[i]))
            return strlen(names[i]);
    }
    return 0;
}

/* Returns the size of the bracketed part at an offset: up to the end if nothing closes it. */
static size_t functions_arguments_size(struct ttd_string name, size_t offset)
{
    size_t depth = 0;
    for (size_t i = offset; i < name.size; i++) {
        char c = name.data[i];
        bool is_arrow = c == '>' && i > offset && name.data[i - 1] == '-';
        if (c == '<' || c == '(')
            depth++;
        else if ((c == '>' || c == ')') && !is_arrow && --depth == 0)
            return i + 1 - offset;
    }
    return name.size - offset;
}

/* Copies a name without parameters of more characters than these. */
static size_t functions_drop_parameters(struct ttd_string name, char *text, size_t longest)
{
    static const char *const kept[] = {"(anonymous namespace)", "()"};
    size_t size = 0;
    for (size_t i = 0; i < name.size;) {
        bool is_kept = name.data[i] != '(' || functions_stands_at(name, i, kept[0]) ||
                       functions_stands_at(name, i, kept[1]);
        size_t left_out = is_kept ? 0 : functions_arguments_size(name, i);
        if (left_out > longest) {
            memcpy(text + size, "(…)", strlen("(…)"));
            size += strlen("(…)");
            i += left_out;
            continue;
        }
        text[size++] = name.data[i++];
    }
    return size;
}

static size_t functions_columns_of(struct ttd_string text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

static size_t functions_shorten(struct ttd_string name, char *text)
{
    static const char string[] =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    size_t size = 0;
    for (size_t i = 0; i < name.size;) {
        size_t copied = functions_operator_size(name, i);
        size_t left_out = 0;
        const char *replacement = "<…>";
        if (functions_stands_at(name, i, string)) {
            left_out = sizeof string - 1;
            replacement = "std::string";
        } else if (!copied && i && name.data[i] == '<') {
            /* At the begin stands a type of Rust, such as "<Map<I, F> as Iterator>::fold". */
            left_out = functions_arguments_size(name, i);
        }
        if (left_out > ARGUMENTS_MAX) {
            memcpy(text + size, replacement, strlen(replacement));
            size += strlen(replacement);
            i += left_out;
            continue;
        }
        copied += !copied;
        memcpy(text + size, name.data + i, copied);
        size += copied;
        i += copied;
    }
    return size;
}

/* Returns a name without long arguments, in memory that the caller frees. */
static struct ttd_string function_shorten(const struct report *report, struct ttd_string name,
                                          char **text)
{
    *text = NULL;
    if (!report->shows_all && name.size > ARGUMENTS_MAX && memchr(name.data, '<', name.size))
        *text = malloc(name.size);
    if (*text)
        name = (struct ttd_string){*text, functions_shorten(name, *text)};
    /* Never longer: the text may be shortened in its place. */
    if (*text && functions_columns_of(name) > COLUMNS_MAX)
        name.size = functions_drop_parameters(name, *text, ARGUMENTS_MAX);
    return name;
}

void report_function_text(struct report *report, struct ttd_string name)
{
    char *text;
    escape_text(report->output, function_shorten(report, name, &text));
    free(text);
}

size_t report_function_columns(const struct report *report, struct ttd_string name)
{
    char *text;
    size_t columns = functions_columns_of(function_shorten(report, name, &text));
    free(text);
    return columns;
}

/* Returns the size of the longest beginning of a text that is written in so many columns. */
static size_t function_head(struct ttd_string text, size_t columns)
{
    size_t head = 0;
    for (size_t next = 0; next < text.size; head = next) {
        size_t needed = escape_columns(text, &next);
        if (needed > columns)
            break;
        columns -= needed;
    }
    return head;
}

/* Returns the columns in which escape_text() writes a text. */
static size_t function_escaped_columns(struct ttd_string text)
{
    size_t columns = 0;
    for (size_t offset = 0; offset < text.size;)
        columns += escape_columns(text, &offset);
    return columns;
}

void report_middle_cut(struct text_output *output, struct ttd_string text, size_t columns)
{
    size_t count = function_escaped_columns(text);
    if (count <= columns || columns < 3) {
        escape_text(output, text);
        return;
    }
    size_t room = columns - 1 - (columns - 1) / 2;
    size_t head = function_head(text, (columns - 1) / 2);
    size_t tail = 0;
    while (count > room)
        count -= escape_columns(text, &tail);
    say(output, ((struct ttd_string){text.data, head}), "…",
        ((struct ttd_string){text.data + tail, text.size - tail}));
}

void report_function_cut(struct report *report, struct ttd_string name, size_t columns)
{
    char *text, *copy = NULL;
    name = function_shorten(report, name, &text);
    if (functions_columns_of(name) > columns && memchr(name.data, '(', name.size))
        copy = malloc(name.size);
    if (copy)
        name = (struct ttd_string){copy, functions_drop_parameters(name, copy, strlen("(…)"))};
    report_middle_cut(report->output, name, columns);
    free(copy);
    free(text);
}
