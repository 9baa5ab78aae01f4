/* SPDX-License-Identifier: MIT */
/**
 * Sections that several reports share: stacks, call sites, groups, owners, known findings, and the
 * reasons for uncertainty, internal to report/; then findings for services, and trees of calls,
 * which commands make themselves. `key` is the member's name in an object, NULL in an array.
 */
#ifndef ANALYZER_REPORT_SECTIONS_SECTIONS_H
#define ANALYZER_REPORT_SECTIONS_SECTIONS_H

#include <ttdtrace/snapshot.h>

#include "analyses/errors/fatal.h"
#include "analyses/reachability/leaks.h"
#include "analyses/reachability/places.h"
#include "report/sections/report.h"
#include "report/sections/say.h"
#include "report/writers/row.h"
#include "travel/islands.h"
#include "view/tree.h"

/** Returns the number of `count` records that a report shows. */
static inline size_t report_shown(size_t count, size_t limit)
{
    return count < limit ? count : limit;
}

/** Does the same by report->limit. CSV has no place to say how many records it leaves out: they are
 * counted in report->left_out. */
static inline size_t section_row_listed(struct row *row, size_t count)
{
    size_t shown = report_shown(count, row->report->limit);
    if (!row->is_json)
        row->report->left_out += count - shown;
    return shown;
}

/** Begins a report in JSON or CSV, by its form; in JSON, with an object that row_end_object() ends.
 */
void row_open(struct row *row, struct report *report);

/** Begins one record of a report in JSON lines or CSV, or the header of the CSV. */
void row_open_line(struct row *row, struct report *report, bool is_header);
void row_close_line(struct row *row);

/** A loop over the only record of a report, whose body writes the members: once in JSON, once more
 * for the header in CSV. */
#define ROW_ONLY(row, report)                                                                      \
    for (bool is_open = row_open_only(row, report); is_open; is_open = row_close_only(row))

/* For ROW_ONLY. */
bool row_open_only(struct row *row, struct report *report);
bool row_close_only(struct row *row);

/** Sets report->frames to the frames of a stack; empty on failure. */
void report_expand(struct report *report, ttd_id stack);

/** Writes a function's name in text, without long template arguments unless report->shows_all. */
void report_function_text(struct report *report, struct ttd_string name);

/** Returns the columns of the name as report_function_text() writes it. */
size_t report_function_columns(const struct report *report, struct ttd_string name);

/** Writes a text in so many columns at most: a longer one loses its middle. */
void report_middle_cut(struct text_output *output, struct ttd_string text, size_t columns);

/** The columns that a cut name has at least, where the rest of a line leaves no room. */
#define REPORT_FUNCTION_MIN 24

/** Writes the name in so many columns at most: a longer one loses its parameters, then its middle.
 */
void report_function_cut(struct report *report, struct ttd_string name, size_t columns);

/** Whether a frame is of an allocator, of the C or C++ library or of Rust's: the reader looks for
 * the others. */
bool report_frame_is_foreign(const struct report *report, const struct frame *frame);

/** Writes `function (file:line) in module`, or `module+0xoffset` for a frame without names. Where
 * the line has no room for it, the file loses its folder, then the module is left out, then the
 * function loses its middle. */
void report_frame_text(struct report *report, const struct frame *frame);

/** Writes the frames of a stack, each in a line of its own, indented. Frames below main() or a
 * thread's first function, and in the middle of a deep stack, are only counted unless
 * report->shows_all. */
void report_stack_text(struct report *report, ttd_id stack);

/** Writes the frames of a stack as an array of objects, or its number: see report->stacks; in CSV
 * as one field, such as "malloc;f;main". */
void row_stack(struct row *row, const char *key, ttd_id stack);

/** Whether the stack that was expanded last ends before the function that its thread began with. */
bool report_stack_is_cut(struct report *report);

/** The same of report->frames, for stacks that are of no single trace. */
void report_frames_text(struct report *report, bool is_cut);
void row_frames(struct row *row, const char *key, bool is_cut);

/** Writes the site of a record, in indented lines: its stack, or the label that it is grouped by.
 */
void report_site_text(struct report *report, struct heap_key key);

/** Writes the site of a record as members. */
void row_site(struct row *row, struct heap_key key);

/** Writes how many groups there are, such as ", from 3 stacks". */
void report_from_sites(struct report *report, const struct heap_groups *groups);

/** Writes a line that counts the groups that are not shown; nothing for none. */
void report_site_more(struct report *report, size_t count);

/** The name of the thread, heap, function, file or module of a label; size 0 if it has none. */
struct ttd_string report_label_name(const struct report *report, const struct view_label *label);

/** Write a label: in one line, or as members of an object. */
void report_label_text(struct report *report, const struct view_label *label);
void row_label(struct row *row, const struct view_label *label);

/** Writes a call, with its stack, as an object; null if it is unknown. */
void row_call(struct row *row, const char *key, const struct heap_call *call);

/** Writes a line such as "allocated by malloc() at FAB:17B1 in thread 1", and the stack. */
void report_call_text(struct report *report, const char *label, const struct heap_call *call);

/** Writes the blocks before and after an address, and the calls that allocated them. */
void report_neighbours_text(struct report *report, const struct heap_neighbours *neighbours,
                            uint64_t address);
/** Writes those blocks as the members `before` and `after`. */
void row_neighbours(struct row *row, const struct heap_neighbours *neighbours);

/** Returns the name of a register of x86-64, by its DWARF number; NULL if it has none. Static. */
const char *report_register_name(uint64_t number);

/** Returns the name of a signal of Linux, such as "SIGSEGV"; NULL if it has none. Static. */
const char *report_signal_name(uint32_t number);
/** Writes that name, or "signal 40". */
void report_signal_number_text(struct text_output *output, uint32_t number);

/** Writes a signal in one line without its end: "SIGSEGV (address not mapped) at 1:2 (+0.5s) in
 * thread 1". */
void report_signal_text(struct report *report, const struct ttd_fatal_signal *signal);
/** Writes the same, and the fault address, as members of an object. */
void row_signal(struct row *row, const struct ttd_fatal_signal *signal);

/** Returns the words behind blocks that no call has released, for what is known of the end:
 * "never released". */
const char *report_left_text(enum certainty_ending ending);
/** Returns why such blocks are no findings, for another end than ENDING_KNOWN. */
const char *report_left_reason(enum certainty_ending ending);

/** Returns why calls up to the program's end are missing; NULL if none is. */
const char *report_early_end(enum certainty_ending ending);

/** Writes that there is no snapshot of references, why, and how to get one. */
void report_no_snapshot_text(struct report *report);

/** Names of a kind of blocks: in text; in JSON and CSV, where several kinds are "reachable"; and
 * what holds the blocks of such a kind, or NULL. */
struct report_leak_kind {
    const char *text;
    const char *name;
    const char *held_by;
};

/** By heap_leak_kind. */
extern const struct report_leak_kind report_leak_kinds[HEAP_LEAK_KINDS];

/** Sums of blocks that lie in other blocks. */
struct report_nested {
    uint64_t blocks;
    uint64_t bytes;
};

/** Writes a line that says how many blocks lie in others, so that nobody takes sums for memory;
 * nothing for none. */
void report_nested_text(struct text_output *output, const char *indent,
                        struct report_nested nested);

/** Write the blocks that those of a sample stand for; nothing in a trace that is no sample. Text is
 * a line of its own; values are null for NULL. */
void report_estimate_text(struct text_output *output, const char *indent,
                          const struct heap_estimate *estimate);
void row_estimate(struct row *row, const struct heap_estimate *estimate);

/** Writes the sums of groups: "2 blocks, 80 bytes". */
void report_sums_text(struct text_output *output, const struct heap_groups *groups);

/** Writes a snapshot as report_snapshot_text(), and why it was taken. */
void report_snapshot_why_text(struct report *report, const struct ttd_snapshot *snapshot);

/** Writes the member `classes`; null without a snapshot. */
void row_classes(struct row *row, const struct heap_leaks *leaks);

/** Writes the positions of the first and last allocation of a group: ", allocated at 0:2". */
void report_group_positions_text(struct report *report, const struct heap_group *group);

/** Writes the sums, positions and site of a group as members of an object. */
void row_group(struct row *row, const struct heap_group *group);

/** Writes a block and its allocation in one line, without its end: "0x1000, 24 bytes, allocated by
 * malloc() at 1:2 in thread 1, main (main.c:7) in demo". */
void report_block_text(struct report *report, const struct heap_block *block);

/** Writes the innermost frame of a stack that is not of the runtimes, or else the one that
 * allocated for itself: "main (main.c:7) in demo". */
void report_owner_frame_text(struct report *report, ttd_id stack);

/** Writes a block of a snapshot in the same way, with its class if that is known: "0x1000, 24
 * bytes, app::Server, allocated by …". */
void report_node_text(struct report *report, const struct heap_reach *reach, uint32_t node);

/** The name of the class of a block of a snapshot; size 0 if it is not known, or no block. */
struct ttd_string report_node_class(struct report *report, const struct heap_reach *reach,
                                    uint32_t node);

/** Writes a block and its allocation as an object; null for NULL. */
void row_block(struct row *row, const char *key, const struct heap_block *block);

/** Returns one word for why a snapshot was taken. Static. */
const char *report_snapshot_reason(const struct ttd_snapshot *snapshot);

/** Writes a snapshot as an object: its number, position, and how consistent it is; null for NULL.
 */
void row_snapshot(struct row *row, const char *key, const struct ttd_snapshot *snapshot);

/** Writes a snapshot and how consistent it is, such as "snapshot 1 at 1:2". */
void report_snapshot_text(struct report *report, const struct ttd_snapshot *snapshot);

/** Writes groups as a list; in CSV with the column `column` for their kind, unless `kind` is NULL.
 */
void row_groups(struct row *row, const char *key, const struct heap_groups *groups,
                const char *column, const char *kind);

/** Writes groups of live blocks, and behind them those that the runtimes keep if these are shown:
 * only then CSV has a column for the kind: it would have one value otherwise. */
void row_live_groups(struct row *row, const struct heap_groups *groups);

/** Writes groups, each with its sums and, if `shows_positions`, the positions of its first and last
 * allocation; then how many groups are not shown. */
void report_groups_text(struct report *report, const struct heap_groups *groups,
                        bool shows_positions);

/** Writes groups of blocks: by function if report->functions is set. */
void report_function_groups_text(struct report *report, const struct heap_groups *groups);

/** Writes groups of live blocks in the same way, and names a wrapper of an allocator among their
 * functions. */
void report_live_groups_text(struct report *report, const struct heap_groups *groups);

/* Write the sums of the blocks that the runtimes keep, or their groups if these are to be shown.
 * Each function writes nothing for a command that does not separate these blocks from the others.
 */
void report_runtime_text(struct report *report);
void report_runtime_groups_text(struct report *report, bool shows_positions);
void report_runtime_sums(struct text_output *output, const struct report_runtime *runtime);
void row_runtime(struct row *row, const struct report_runtime *runtime);
void row_runtime_groups(struct row *row);

/** Writes how many live blocks are unknown, as a line and as members; nothing as a line if none is.
 */
void report_unknown_text(struct report *report, const struct heap_groups *unknown);
void row_unknown(struct row *row, const struct heap_groups *unknown);

/** Writes when `blocks` blocks were lost: "lost after 1:2, at 3:0 at the latest". */
void report_lost_text(struct report *report, const struct heap_lost_range *lost, uint64_t blocks);

/** Writes the members with the time when blocks were lost; none, or empty columns, for NULL. */
void row_lost(struct row *row, const struct heap_lost_range *lost);

/** The blocks of a call site, and all call sites of a report, in the order of the report. */
struct report_amount {
    struct heap_key key;
    uint64_t count;
    uint64_t bytes;
};
struct report_amounts {
    size_t count;
    struct report_amount (*at)(const void *context, size_t index);
    const void *context;
};

/** Returns the amounts of groups of blocks, which must outlive them. */
struct report_amounts report_group_amounts(const struct heap_groups *groups);

/** Groups by stack, listed by function. */
struct report_functions {
    /** The largest first. */
    const struct report_amounts *groups;
    /** Name of what is counted, such as "block". */
    const char *unit;
    /** Shares are of the counts, not of the bytes. */
    bool is_by_count;
    /** Functions to show. */
    size_t limit;
    /** The title of the table, a line, if its bytes are no sizes of blocks; else NULL. */
    const char *title;
    /** Writes the amounts of a group, a line. NULL: there is only the table, of functions that have
     * something, if the groups are many. */
    void (*amounts)(struct report *report, const void *context, size_t index);
};

/** Writes the heaviest functions, each with its share and its largest stacks. report->functions
 * groups them. */
void report_functions_text(struct report *report, const struct report_functions *data);

/** So many groups are seen at once without a table. */
#define REPORT_WITHOUT_TABLE 3

/** Writes the function that report->functions finds in the stack of a key, and its file and line,
 * in the rest of the line. */
void report_key_function_text(struct report *report, struct heap_key key);

/** Returns the columns that a number and its unit take at most: "12,345 blocks". */
size_t report_count_columns(uint64_t count, const char *unit);

/** Sets report->frames to the frames of a stack, and returns the frame of a function; NULL if there
 * is none. */
const struct frame *report_function_frame(struct report *report, ttd_id stack,
                                          const struct view_label *function);

/** Writes a function and its file and line, as a frame of the stack has them, in so many columns.
 */
void report_function_place_text(struct report *report, ttd_id stack,
                                const struct view_label *function, size_t columns);

/** Writes a module, and how its functions get names; other lines than the first begin in a column.
 */
void report_names_text(struct report *report, struct ttd_string module, size_t column);

/** Does so once in a report, if the function that report->functions finds in the stack of a key has
 * no name. Returns whether it was done. */
bool report_key_names_text(struct report *report, struct heap_key key);

/** A function that most groups and most of their bytes come through, and that looks like a wrapper
 * of an allocator by its shape: one call of the allocator, of several sizes, from several
 * functions. */
struct report_wrapper {
    /** The number of the function's name, as in frame.name. */
    ttd_id name;
    /** The canonical name. */
    struct ttd_string function;
    size_t groups;
    uint64_t bytes;
};

/** Finds such a function; false if there is none, or if stacks are written as numbers. */
bool report_find_wrapper(struct report *report, const struct report_amounts *groups,
                         struct report_wrapper *wrapper);

/** Writes "--skip NAME shows its callers", and ends the line. */
void report_skip_text(struct text_output *output, const struct report_wrapper *wrapper);

/** Offers such a function, if the groups are of stacks. The member is null if there is none. */
void report_wrapper_text(struct report *report, const struct report_amounts *groups);
void row_wrapper(struct row *row, const struct report_amounts *groups);

/**
 * Writes the most memory that the process had, heap or not, in lines that begin at `column`;
 * nothing without samples.
 *
 * @param heap_peak  the most live bytes; UINT64_MAX if they are not those of the whole heap
 */
void report_memory_samples_text(struct report *report, const struct heap_memory_samples *samples,
                                uint64_t heap_peak, size_t column);

/** Writes each kind of object that lies in pools of the program's own, in a line that begins at
 * `column`; and an array of them. */
void report_pooled_text(struct report *report, const struct heap_choice *choice, size_t column);
void row_pooled(struct row *row, const struct heap_choice *choice);

/** Writes the totals of findings that were not reported, by rule; nothing if there are none. */
void report_known_findings_text(struct report *report, enum report_unit unit);

/** Writes these totals as members; none if neither suppressions nor a baseline are given. */
void row_known_findings(struct row *row, enum report_unit unit);

/** Writes the members `certain` and `reasons`. */
void row_certainty(struct row *row);

/** The words about a peak, if recording was off before it. */
#define REPORT_PEAK_GAP "perhaps less: recording was off before"

/** Writes a line for each reason for uncertainty. */
void report_certainty_text(const struct report *report);

/** Begins a folded stack. An uncertain one hangs from a frame that says so, since a flame graph has
 * neither columns nor comments. */
void report_folded_begin(struct text_output *output, bool is_certain);

/* Labels of places: a person's name for a word of memory that holds a block. Internal to report/.
 */

/**
 * Writes a label such as "redis-server .bss: server+0x1f8", "thread 3, stack, main (redis.c:7012)
 * +0x48", "thread 1, rdi", "libc.so.6 TLS of thread 1 +0x40", "mapping 0x7f0000 (anonymous, 2 MB)
 * +0x10". Thread-local storage of neither a known thread nor a known module has its address.
 *
 * @param has_offset  otherwise the label is of the whole variable, frame or mapping, of a stack
 *                    whose frames are not known, or of all registers of the thread
 */
void report_place_text(struct report *report, const struct heap_place *place, bool has_offset);
/** Writes the label and its parts as an object; in CSV the label. */
void row_place(struct row *row, const char *key, const struct heap_place *place, bool has_offset);

/**
 * Writes what an address is that lies in no block, such as "prog .data: table+0x10", "prog+0x2010,
 * code or constants" or "a null pointer, or a member of an object at one".
 *
 * @param label  written before it
 * @param place  of the address by a snapshot near the time when it was used, or all zero
 * @return false, with nothing written, if that is not known, or the address is one of the heap's
 */
bool report_address_text(struct report *report, const char *label, const struct heap_place *place,
                         uint64_t address);
/** Writes the place of an address as the member `place`; null if no snapshot shows it. */
void row_address(struct row *row, const struct heap_place *place);

/* ---- Findings in the formats of services that run tests: SARIF 2.1.0, XML of JUnit, and
 * annotations of GitHub Actions. ---- */

#define LISTED_TEXT 160

struct listed_finding {
    /** Its kind, such as "double-free". Static. */
    const char *rule;
    /** The program is to blame, as --error-exitcode counts it. */
    bool is_error;
    bool is_certain;
    ttd_id stack;
    /** The finding in one line, without its place: words and numbers of ours only. */
    char text[LISTED_TEXT];
};

struct listed_findings {
    /** The command, such as "leaks"; and the unit that a baseline counts, such as "block". */
    const char *command;
    const char *unit;
    size_t count;
    /** Sets one of them. It is called several times for each. */
    void (*at)(const void *context, size_t index, struct listed_finding *finding);
    const void *context;
    /** A view by function: only it knows which frames are the program's own. */
    struct view *view;
};

/** Whether a form is one of these formats. */
static inline bool report_form_lists_findings(enum report_form form)
{
    return form >= REPORT_SARIF;
}

/** Writes all findings: these formats have no place to say that some are left out. Paths of files
 * below the current directory are relative to it, as the services expect them. */
void report_findings(struct report *report, const struct listed_findings *findings);

/**
 * Expands a stack from the last call of the program's own functions on.
 *
 * @param view  by function
 * @return the frame of that function, valid until the next stack is expanded; NULL without frames,
 *         and on failure: see report->status
 */
const struct frame *report_own_frame(struct report *report, struct view *view, ttd_id stack);

/* ---- Trees of calls: the report of a tree of one heap, and the parts that it shares with the
 * report of a tree of two heaps. ---- */

/** A tree of calls: the tree of any command that shows its findings by stack. */
struct report_tree {
    const struct view_tree *tree;
    const struct view_options *options;
    /** The units of counts, such as "block", and of weights, such as "bytes". */
    const char *unit;
    const char *weight;
    /** A frame that all folded stacks begin with, such as "[inferred]"; or NULL. */
    const char *root;
};

void report_tree(struct report *report, const struct report_tree *data);

/** Writes `sign` and a number, right-aligned at column `end`. */
void report_tree_number(struct text_output *output, const char *sign, uint64_t value, size_t end);

/** Writes the name of a column, right-aligned at `end`. */
void report_tree_heading(struct text_output *output, const char *name, size_t end);

/** Writes the label of a node, indented by its branchings, and ends the line. */
void report_tree_name(struct report *report, const struct view_tree *tree,
                      const struct view_node *node, size_t limit);

/** Writes the number of outermost nodes that are not shown, if there are any, and a blank line. */
void report_tree_more(struct report *report, const struct view_tree *tree, size_t limit);

/** Writes the members of an object that describe a tree: its shape and grouping. */
void row_tree(struct row *row, const struct view_options *options);

/** Returns the name of a kind of labels, such as "function". Static. */
const char *report_tree_kind(enum label_kind kind);

/** Writes the label of a node: the members of its kind; in CSV four columns for all kinds. */
void row_tree_label(struct row *row, const struct view_tree *tree, uint32_t node);

/** Visits a node of a tree. */
typedef void row_tree_visitor(struct row *row, const struct view_tree *tree, uint32_t node);

/** Writes the nodes that a report shows. */
void row_tree_nodes(struct row *row, const struct view_tree *tree, row_tree_visitor *visit);

/** Writes a label in a folded stack. A frame needs a text, even without a name. */
void report_folded_label(struct report *report, const struct view_label *label);

/** Writes a folded stack: the labels from the root to a node. `path` is from
 * report_tree_path_room(). */
void report_tree_path(struct report *report, const struct view_tree *tree, uint32_t node,
                      uint32_t *path);

/** Allocates room for the path to any node; NULL without memory, with report->status set. */
uint32_t *report_tree_path_room(struct report *report, const struct view_tree *tree,
                                struct arena *arena);

#endif
