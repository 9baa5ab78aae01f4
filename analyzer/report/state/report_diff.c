/* SPDX-License-Identifier: MIT */
/* The reports of `diff`: of a range, of two heaps. */
#include "report/sections/sections.h"
#include "report/state/state_reports.h"
#include "symbols/fingerprint.h"

/* The report of `diff` over a range: blocks by whether they were allocated and released in it. */

static const char *diff_quadrant_text(enum heap_quadrant quadrant)
{
    switch (quadrant) {
    case HEAP_AIFI:
        return "allocated inside the range, freed inside";
    case HEAP_AIFO:
        return "allocated inside the range, not freed in it";
    case HEAP_AOFI:
        return "allocated before the range, freed inside";
    default:
        return "allocated before the range, not freed in it";
    }
}

/* Writes one quadrant: blocks that were both, or neither, allocated and released in the range. */
static void diff_text_quadrant(struct report *report, const struct report_diff *data,
                               enum heap_quadrant quadrant)
{
    struct text_output *output = report->output;
    static const char *const titles[HEAP_QUADRANTS] = {"AIFI", "AIFO", "AOFI", "AOFO"};
    const struct heap_groups *groups = &data->diff->quadrants[quadrant];
    say(output, BOLD, titles[quadrant], PLAIN, ", ", diff_quadrant_text(quadrant), ": ",
        blocks(groups->blocks), ", ", sized(groups->bytes));
}

/* Counts the blocks of a quadrant that lie in others, as far as filters have left them. */
static struct report_nested diff_count_nested(const struct heap_groups *groups)
{
    struct report_nested nested = {0, 0};
    heap_groups_count_nested(groups, &nested.blocks, &nested.bytes);
    return nested;
}

/* Writes the lost blocks among those that the range has added. */
static void diff_text_lost(struct report *report, const struct heap_leaks *lost)
{
    struct text_output *output = report->output;
    if (!lost->snapshot.number)
        return;
    out_text(output, "    Of these, by ");
    report_snapshot_why_text(report, &lost->snapshot);
    out_text(output, ":\n");
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        if (!lost->kinds[kind].blocks)
            continue;
        out_text(output, "    ");
        report_sums_text(output, &lost->kinds[kind]);
        out_format(output, " %s\n", report_leak_kinds[kind].text);
    }
}

/* Order of the quadrants: the additions of the range come first. */
static const enum heap_quadrant quadrant_order[HEAP_QUADRANTS] = {HEAP_AIFO, HEAP_AIFI, HEAP_AOFI,
                                                                  HEAP_AOFO};

static void diff_text_compare_signed(struct text_output *output, uint64_t old, uint64_t new,
                                     const char *unit)
{
    bool has_grown = old <= new;
    out_char(output, has_grown ? '+' : '-');
    report_count(output, has_grown ? new - old : old - new, unit);
}

/* The net change: blocks that were allocated in the range and stay, less those that it released. */
static void diff_text_net(struct report *report, const struct heap_diff *diff)
{
    const struct heap_groups *added = &diff->quadrants[HEAP_AIFO];
    const struct heap_groups *released = &diff->quadrants[HEAP_AOFI];
    struct text_output *output = report->output;
    /* Sums end there. */
    if (added->bytes == UINT64_MAX || released->bytes == UINT64_MAX)
        return;
    say(output, BOLD, "Change: ");
    diff_text_compare_signed(output, released->bytes, added->bytes, "byte");
    out_text(output, ", ");
    diff_text_compare_signed(output, released->blocks, added->blocks, "block");
    say(output, PLAIN, "\n");
}

/* Says what the range is: a percentage is one of the events, and not of the time. */
static void diff_text_range(struct report *report, const struct report_diff *data)
{
    struct text_output *output = report->output;
    if (ttd_position_compare(data->from, ttd_position_min()) == 0)
        out_text(output, "From the start");
    else
        say(output, "From ", moment(report, data->from));
    if (heap_is_end(data->last))
        out_text(output, " to the end\n");
    else
        say(output, " to ", moment(report, heap_position_after(data->last)), "\n");
}

static void text_diff(struct report *report, const struct report_diff *data)
{
    diff_text_net(report, data->diff);
    diff_text_range(report, data);
    for (int n = 0; n < HEAP_QUADRANTS; n++) {
        enum heap_quadrant i = quadrant_order[n];
        diff_text_quadrant(report, data, i);
        out_char(report->output, '\n');
        report_nested_text(report->output, "    ", diff_count_nested(&data->diff->quadrants[i]));
        if (i == HEAP_AIFO)
            diff_text_lost(report, data->lost);
    }
    report_unknown_text(report, &data->diff->unknown);
    report_runtime_text(report);
    report_certainty_text(report);
    for (int n = 0; n < HEAP_QUADRANTS; n++) {
        enum heap_quadrant i = quadrant_order[n];
        if (!data->diff->quadrants[i].count)
            continue;
        out_char(report->output, '\n');
        diff_text_quadrant(report, data, i);
        out_text(report->output, ":\n");
        report_function_groups_text(report, &data->diff->quadrants[i]);
    }
    report_runtime_groups_text(report, false);
}

static void diff_row_quadrant(struct row *row, enum heap_quadrant quadrant,
                              const struct heap_groups *groups)
{
    struct report_nested nested = diff_count_nested(groups);
    row_begin_object(row, heap_quadrant_name(quadrant));
    row_unsigned(row, "blocks", groups->blocks);
    row_unsigned(row, "bytes", groups->bytes);
    row_unsigned(row, "nested_blocks", nested.blocks);
    row_unsigned(row, "nested_bytes", nested.bytes);
    row_unsigned(row, "total_groups", groups->count);
    row_groups(row, "groups", groups, "quadrant", heap_quadrant_name(quadrant));
    row_end_object(row);
}

void report_diff(struct report *report, const struct report_diff *data)
{
    const struct heap_leaks *lost = data->lost;
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_diff(report, data);
        return;
    }
    row_open(&row, report);
    row_position(&row, "position", data->diff->outcome.position);
    row_certainty(&row);
    row_unknown(&row, &data->diff->unknown);
    row_runtime(&row, &report->runtime);
    row_snapshot(&row, "snapshot", lost->snapshot.number ? &lost->snapshot : NULL);
    row_classes(&row, lost);
    row_text(&row, "by", view_key_name(report->view->options.by));
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        diff_row_quadrant(&row, (enum heap_quadrant)i, &data->diff->quadrants[i]);
    row_runtime_groups(&row);
    row_end_object(&row);
}

/* The list of changes between two heaps, in all formats. */

/* Parts of a comparison of two heaps that the list of changes and the tree share. */

/** Whether both heaps are certain. */
static inline bool report_compare_is_certain(const struct report_compare *data)
{
    return !data->sides[HEAP_OLD].certainty->count && !data->sides[HEAP_NEW].certainty->count;
}

/* Trees of calls of the difference of two heaps. */

/* Columns where the numbers of the text end. */
#define END_CHANGE 16
#define END_BLOCKS 27
#define END_OLD    43
#define END_NEW    59

/* Amounts of a node, by heap. */
struct node_sides {
    uint64_t bytes[HEAP_SIDES];
    uint64_t blocks[HEAP_SIDES];
};

static const char *const side_names[HEAP_SIDES] = {"old", "new"};

static const char *diff_kind_name(enum heap_change_kind kind)
{
    static const char *const names[HEAP_CHANGE_KINDS] = {"new", "gone", "grown", "shrunk", "same"};
    return names[kind];
}

/* Number of changes that are asked for. Unchanged groups come last. */
static size_t diff_wanted(const struct report_compare *data)
{
    const struct heap_comparison *comparison = data->comparison;
    size_t same = data->has_same ? 0 : comparison->kinds[HEAP_CHANGE_SAME];
    return comparison->count - same;
}

/* Returns the key of a change, and switches the report to the definitions that it refers to: those
 * of the new heap if the group is there, else of the old one. */
static struct heap_key diff_use_side(struct report *report, const struct report_compare *data,
                                     const struct heap_change *change)
{
    enum heap_side side = change->blocks[HEAP_NEW] ? HEAP_NEW : HEAP_OLD;
    report->definitions = data->sides[side].definitions;
    report->view = data->sides[side].view;
    return change->keys[side];
}

static struct fingerprint diff_fingerprint_of(struct report *report,
                                              struct fingerprinter *fingerprinter, ttd_id stack)
{
    struct fingerprint result = {0, 0};
    enum ttd_status status = fingerprint_stack(fingerprinter, report->definitions, stack, &result);
    if (status != TTD_OK)
        report->status = status;
    return result;
}

static void diff_text_change(struct report *report, const struct report_compare *data,
                             const struct heap_change *change)
{
    struct text_output *output = report->output;
    say(output, "\n", BOLD);
    diff_text_compare_signed(output, change->bytes[HEAP_OLD], change->bytes[HEAP_NEW], "byte");
    out_text(output, ", ");
    diff_text_compare_signed(output, change->blocks[HEAP_OLD], change->blocks[HEAP_NEW], "block");
    say(output, PLAIN, ", ", diff_kind_name(heap_change_kind_of(change)));
    if (change->blocks[HEAP_OLD] && change->blocks[HEAP_NEW])
        say(output, ": from ", bytes(change->bytes[HEAP_OLD]), " in ",
            blocks(change->blocks[HEAP_OLD]), " to ", bytes(change->bytes[HEAP_NEW]), " in ",
            blocks(change->blocks[HEAP_NEW]));
    out_char(output, '\n');
    report_site_text(report, diff_use_side(report, data, change));
}

/** Writes the sums of both heaps and their difference, without ending the last line. */
static void diff_text_compare_sums(struct report *report, const struct report_compare *data)
{
    const struct report_live *old = &data->sides[HEAP_OLD].live;
    const struct report_live *new = &data->sides[HEAP_NEW].live;
    struct text_output *output = report->output;
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct report_live *live = &data->sides[i].live;
        say(output, i == HEAP_OLD ? "Old: " : "New: ", sized(live->bytes), " in ",
            blocks(live->blocks), " at ", data->sides[i].position, "\n");
        report_live_nested_text(output, "    ", live);
    }
    say(output, BOLD, "Change: ");
    diff_text_compare_signed(output, old->bytes, new->bytes, "byte");
    out_text(output, ", ");
    diff_text_compare_signed(output, old->blocks, new->blocks, "block");
    out_plain(output);
}

static void diff_text_kinds(struct report *report, const struct heap_comparison *comparison)
{
    struct text_output *output = report->output;
    out_format(output, "; %ss:", view_key_name(report->view->options.by));
    for (int i = 0; i < HEAP_CHANGE_KINDS; i++)
        say(output, i ? ", " : " ", grouped(comparison->kinds[i]), " ",
            diff_kind_name((enum heap_change_kind)i));
    out_char(output, '\n');
}

/** Writes, for each heap, the sums of the blocks that the runtimes keep; they are not counted. */
static void diff_text_compare_runtime(struct report *report, const struct report_compare *data)
{
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct report_runtime *runtime = data->sides[i].runtime;
        if (!runtime->groups || !runtime->groups->blocks)
            continue;
        out_format(report->output, "Of the %s heap, ", side_names[i]);
        report_runtime_sums(report->output, runtime);
        out_text(report->output, " (--show-runtime to count)\n");
    }
}

/** Writes a line for each reason why one of the heaps is uncertain. */
static void diff_text_compare_certainty(struct report *report, const struct report_compare *data)
{
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct certainty *certainty = data->sides[i].certainty;
        for (size_t k = 0; k < certainty->count; k++)
            say(report->output, ALARM, "Uncertain", PLAIN, ", of the ", side_names[i],
                " heap: ", certainty->reasons[k], "\n");
    }
}

static struct node_sides diff_sides_of(const struct heap_amount *old, const struct heap_amount *new)
{
    return (struct node_sides){{old->bytes, new->bytes}, {old->count, new->count}};
}

static struct node_sides diff_compare_tree_total(const struct view_tree *tree, uint32_t node)
{
    return diff_sides_of(&tree->old[node].total, &tree->nodes[node].total);
}

static struct node_sides diff_self_of(const struct view_tree *tree, uint32_t node)
{
    return diff_sides_of(&tree->old[node].self, &tree->nodes[node].self);
}

static void diff_text_compare_tree_signed(struct text_output *output,
                                          const uint64_t amounts[HEAP_SIDES], size_t end)
{
    bool has_shrunk = amounts[HEAP_OLD] > amounts[HEAP_NEW];
    uint64_t distance =
        has_shrunk ? amounts[HEAP_OLD] - amounts[HEAP_NEW] : amounts[HEAP_NEW] - amounts[HEAP_OLD];
    report_tree_number(output, has_shrunk ? "-" : "+", distance, end);
}

static void diff_text_compare_tree_header(struct text_output *output)
{
    out_dim(output);
    report_tree_heading(output, "change", END_CHANGE);
    report_tree_heading(output, "blocks", END_BLOCKS);
    report_tree_heading(output, "old bytes", END_OLD);
    report_tree_heading(output, "new bytes", END_NEW);
    say(output, PLAIN, "\n");
}

/* Write data->tree: a whole text or CSV file, or members of an object. */
static void diff_text_compare_tree(struct report *report, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    struct text_output *output = report->output;
    diff_text_compare_sums(report, data);
    out_char(output, '\n');
    diff_text_compare_runtime(report, data);
    diff_text_compare_certainty(report, data);
    if (!tree->linked)
        return;
    out_char(output, '\n');
    diff_text_compare_tree_header(output);
    for (uint32_t i = 0; (i = view_tree_next(tree, i, report->limit)) != VIEW_NO_NODE;) {
        struct node_sides total = diff_compare_tree_total(tree, i);
        diff_text_compare_tree_signed(output, total.bytes, END_CHANGE);
        diff_text_compare_tree_signed(output, total.blocks, END_BLOCKS);
        report_tree_number(output, "", total.bytes[HEAP_OLD], END_OLD);
        report_tree_number(output, "", total.bytes[HEAP_NEW], END_NEW);
        report_tree_name(report, tree, &tree->nodes[i], report->limit);
    }
    report_tree_more(report, tree, report->limit);
}

/* Writes the amounts of both heaps, and their difference. */
static void diff_row_sides(struct row *row, const struct node_sides *sides)
{
    row_difference(row, "change_blocks", sides->blocks[HEAP_OLD], sides->blocks[HEAP_NEW]);
    row_difference(row, "change_bytes", sides->bytes[HEAP_OLD], sides->bytes[HEAP_NEW]);
    row_unsigned(row, "old_blocks", sides->blocks[HEAP_OLD]);
    row_unsigned(row, "old_bytes", sides->bytes[HEAP_OLD]);
    row_unsigned(row, "new_blocks", sides->blocks[HEAP_NEW]);
    row_unsigned(row, "new_bytes", sides->bytes[HEAP_NEW]);
}

static void diff_row_compare_node(struct row *row, const struct view_tree *tree, uint32_t node)
{
    struct node_sides total = diff_compare_tree_total(tree, node);
    struct node_sides self = diff_self_of(tree, node);
    row_unsigned(row, "depth", tree->nodes[node].depth);
    diff_row_sides(row, &total);
    row_unsigned(row, "old_self_blocks", self.blocks[HEAP_OLD]);
    row_unsigned(row, "old_self_bytes", self.bytes[HEAP_OLD]);
    row_unsigned(row, "new_self_blocks", self.blocks[HEAP_NEW]);
    row_unsigned(row, "new_self_bytes", self.bytes[HEAP_NEW]);
    row_tree_label(row, tree, node);
}

/* Writes bytes of the old heap and of the new one for each stack. Unchanged stacks are included, as
 * the base of a differential flame graph. */
static void diff_folded_compare(struct report *report, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    struct arena arena = {0};
    uint32_t *path = report_tree_path_room(report, tree, &arena);
    for (uint32_t i = 0; path && (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        struct node_sides self = diff_self_of(tree, i);
        if (!self.bytes[HEAP_OLD] && !self.bytes[HEAP_NEW])
            continue;
        report_folded_begin(report->output, report_compare_is_certain(data));
        report_tree_path(report, tree, i, path);
        for (int side = 0; side < HEAP_SIDES; side++)
            say(report->output, " ", number(self.bytes[side]));
        out_char(report->output, '\n');
    }
    arena_free(&arena);
}

static void diff_text_compare(struct report *report, const struct report_compare *data)
{
    if (data->tree) {
        diff_text_compare_tree(report, data);
        return;
    }
    const struct heap_comparison *comparison = data->comparison;
    size_t changed = comparison->count - comparison->kinds[HEAP_CHANGE_SAME];
    size_t count = report_shown(diff_wanted(data), report->limit);
    diff_text_compare_sums(report, data);
    diff_text_kinds(report, comparison);
    diff_text_compare_runtime(report, data);
    diff_text_compare_certainty(report, data);
    for (size_t i = 0; i < count; i++)
        diff_text_change(report, data, &comparison->changes[i]);
    report_site_more(report, changed - count);
}

static void diff_row_side(struct row *row, const struct report_compare *data, enum heap_side which)
{
    const struct report_side *side = &data->sides[which];
    row_begin_object(row, side_names[which]);
    row_hex(row, "trace_id", side->trace_id);
    row_position(row, "position", side->position);
    row_bool(row, "certain", !side->certainty->count);
    row_begin_array(row, "reasons");
    for (size_t i = 0; i < side->certainty->count; i++)
        row_text(row, NULL, side->certainty->reasons[i]);
    row_end_array(row);
    row_live(row, &side->live);
    row_runtime(row, side->runtime);
    row_end_object(row);
}

static void diff_row_change(struct row *row, const struct report_compare *data,
                            const struct heap_change *change, struct fingerprinter *fingerprinter)
{
    struct report *report = row->report;
    char text[FINGERPRINT_TEXT] = "";
    struct heap_key key = diff_use_side(report, data, change);
    row_text(row, "change", diff_kind_name(heap_change_kind_of(change)));
    diff_row_sides(row, &(struct node_sides){{change->bytes[HEAP_OLD], change->bytes[HEAP_NEW]},
                                             {change->blocks[HEAP_OLD], change->blocks[HEAP_NEW]}});
    if (report->view->options.by == VIEW_BY_STACK) {
        if (!row->is_header)
            fingerprint_format(diff_fingerprint_of(report, fingerprinter, key.stack), text);
        row_text(row, "fingerprint", text);
    }
    row_site(row, key);
}

static void diff_row_changes(struct row *row, const struct report_compare *data)
{
    static const char *const totals[HEAP_CHANGE_KINDS] = {
        "new_stacks", "gone_stacks", "grown_stacks", "shrunk_stacks", "same_stacks"};
    struct fingerprinter fingerprinter = {.definitions = NULL};
    for (int i = 0; i < HEAP_CHANGE_KINDS; i++)
        row_unsigned(row, totals[i], data->comparison->kinds[i]);
    ROW_EACH(row, "changes", struct heap_change, change, data->comparison->changes,
             section_row_listed(row, diff_wanted(data)))
    diff_row_change(row, data, change, &fingerprinter);
    fingerprinter_free(&fingerprinter);
}

static void diff_data_compare(struct report *report, const struct report_compare *data)
{
    const struct report_live *old = &data->sides[HEAP_OLD].live;
    const struct report_live *new = &data->sides[HEAP_NEW].live;
    struct row row;
    row_open(&row, report);
    row.is_certain = report_compare_is_certain(data);
    row_bool(&row, "certain", row.is_certain);
    diff_row_side(&row, data, HEAP_OLD);
    diff_row_side(&row, data, HEAP_NEW);
    row_difference(&row, "change_blocks", old->blocks, new->blocks);
    row_difference(&row, "change_bytes", old->bytes, new->bytes);
    if (data->tree) {
        row_tree(&row, &report->view->options);
        row_unsigned(&row, "total_nodes", data->tree->linked);
        row_tree_nodes(&row, data->tree, diff_row_compare_node);
    } else {
        diff_row_changes(&row, data);
    }
    row_end_object(&row);
}

void report_compare(struct report *report, const struct report_compare *data)
{
    if (report->form == REPORT_TEXT)
        diff_text_compare(report, data);
    else if (report->form == REPORT_FOLDED)
        diff_folded_compare(report, data);
    else
        diff_data_compare(report, data);
}
