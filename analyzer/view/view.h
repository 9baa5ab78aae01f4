/* SPDX-License-Identifier: MIT */
/** Views: records by stack, filtered by the names in their stacks, and merged by function, file,
 * module, thread, heap or class. */
#ifndef ANALYZER_VIEW_VIEW_H
#define ANALYZER_VIEW_VIEW_H

#include "base/hash_map.h"
#include "heap/groups.h"
#include "heap/site_table.h"
#include "symbols/frames.h"
#include "symbols/memo.h"

/* Labels: the functions, files, modules, threads, heaps and classes that groups and nodes of trees
 * stand for, each with a small number. */

enum label_kind {
    /** No stack was recorded. */
    LABEL_NONE,
    /** A name and a module. Without a name an offset in the module, or an address. */
    LABEL_FUNCTION,
    /** A name. Without one, all code of a module whose files are unknown. */
    LABEL_FILE,
    /** A path. Without one, all code in no module. */
    LABEL_MODULE,
    /** The identifier of a thread. */
    LABEL_THREAD,
    LABEL_HEAP,
    /** A name, or else in `number` the address of a table of virtual functions; neither if the
     * class is not known. */
    LABEL_CLASS
};

/** A label. Texts are untrusted, and belong to the definitions. */
struct view_label {
    enum label_kind kind;
    struct ttd_string name;
    struct ttd_string module;
    uint64_t number;
};

struct label_table {
    struct view_label *labels;
    size_t count;
    size_t capacity;
    /** Hash table of indices in `labels`, or MAP_NONE. */
    uint32_t *slots;
    size_t slot_count;
    struct hash_key key;
};

void labels_init(struct label_table *table);
void labels_free(struct label_table *table);

/** Sets `index` to the number of a label; adds the label if it is new. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status labels_add(struct label_table *table, const struct view_label *label,
                           uint32_t *index);

/** Makes the label of a frame, by function, by file or by module. */
struct view_label label_of_frame(enum label_kind kind, const struct frame *frame);

/** Makes a label comparable across traces: modules by their base names, functions without the
 * suffix of a compiler's copy, and no address that is in no module. */
struct view_label label_across(struct view_label label);

#define VIEW_PATTERNS 64

enum view_key {
    VIEW_BY_STACK,
    VIEW_BY_FUNCTION,
    VIEW_BY_FILE,
    VIEW_BY_MODULE,
    VIEW_BY_THREAD,
    VIEW_BY_HEAP,
    VIEW_BY_CLASS
};

enum view_shape { VIEW_FLAT, VIEW_TOP_DOWN, VIEW_BOTTOM_UP };

struct view_patterns {
    struct ttd_string patterns[VIEW_PATTERNS];
    size_t count;
};

struct view_options {
    enum view_key by;
    /** The key was given, so that no report chooses a better one. */
    bool is_by_given;
    enum view_shape shape;
    /** Levels of a tree; 0 for all. */
    uint64_t depth;
    /** Only stacks with a frame that matches one of these; all stacks if there is none. */
    struct view_patterns include;
    /** No stacks with a frame that matches one of these. */
    struct view_patterns exclude;
    /** Functions that count as allocation functions: stacks begin with their callers. */
    struct view_patterns skip;
    /** Number of groups to show, or of branches of each node of a tree. */
    size_t limit;
};

/** The facts about a frame that a view needs. */
struct view_frame {
    uint32_t label;
    bool allocates;
    /** The frame is of the program, and no wrapper of an allocation function. Set only by function,
     * file and module. */
    bool is_own;
    bool is_included;
    bool is_excluded;
    /** See enum runtime_trait. */
    unsigned char traits;
};

/** The frames of an address: `count` from `first` on in view.frames, innermost first. */
struct view_site {
    size_t first;
    size_t count;
};

struct view {
    struct view_options options;
    struct definitions *definitions;
    /** For VIEW_BY_CLASS: the classes of blocks, borrowed; set before the first use. */
    const struct heap_block_classes *classes;
    struct label_table labels;
    /** Index in `sites` by (module, offset). */
    struct hash_map site_index;
    struct view_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct view_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct frame_list scratch;
    /** By stack: the verdict of the filters; and the stack that ends with the last call that is not
     * of an allocation function. */
    struct stack_memo verdicts;
    struct stack_memo callers;
    /** By stack: the stack that ends with the last call of the program's own functions. */
    struct stack_memo own_callers;
    /** By stack: the number of labels from its last call outward. Adjacent equal labels of files
     * and modules count once. */
    struct stack_memo label_counts;
    /** By stack: enum runtime_reach. Not used where no stack of the trace has a beginning. */
    struct stack_memo reaches;
    bool has_beginning;
    bool knows_beginning;
    /** Stacks of modules that were loaded more than once. */
    struct same_stacks same;
};

/** @param definitions  borrowed; complete before the first use of the view */
void view_init(struct view *view, const struct view_options *options,
               struct definitions *definitions);
void view_free(struct view *view);

/** Returns the split of records that grouping by the options needs. */
enum heap_split view_split(const struct view_options *options);

/**
 * Finds the last call of a stack that is not of an allocation function; if all are, the last call.
 *
 * @param caller  set on TTD_OK: the stack that ends with that call
 * @param site    set on TTD_OK: its frames from that call on
 * @return TTD_OK, TTD_END (the stack is not defined), TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status view_find_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                 struct view_site *site);

/** Like view_find_caller(), but finds the last call of the program's own functions, if there is
 * one.
 */
enum ttd_status view_find_own_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                     struct view_site *site);

/** Counts the first frames of a list that view_options.skip leaves out. */
size_t view_skipped(const struct view *view, const struct frame_list *list);

/** Counts the labels of a stack, see view.label_counts. Statuses as view_find_caller(). */
enum ttd_status view_count_labels(struct view *view, ttd_id stack, uint64_t *count);

/** Sets `is_cut` to whether a stack ends before the function that its thread began with. Statuses
 * as view_find_caller(). */
enum ttd_status view_stack_is_cut(struct view *view, ttd_id stack, bool *is_cut);

/** Returns in `label` the label of the callers of such a stack. Returns TTD_OK, or
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status view_label_unknown_callers(struct view *view, uint32_t *label);

/** Whether groups are formed by a property of the blocks other than their stack. */
static inline bool view_is_by_property(const struct view_options *options)
{
    return options->by >= VIEW_BY_THREAD;
}

/** Whether adjacent equal labels are merged. */
static inline bool view_merges(const struct view *view)
{
    return view->options.by == VIEW_BY_FILE || view->options.by == VIEW_BY_MODULE;
}

/** Finds the frames of an address of a stack. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status view_find_site(struct view *view, const struct ttd_stack *stack,
                               struct view_site *site);

/** Like view_find_site(), but spends a step for each frame: for callers that visit all of them. */
enum ttd_status view_go_through(struct view *view, const struct ttd_stack *stack,
                                struct view_site *site);

/** Removes the records that the filters exclude. @return TTD_OK, TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_LIMIT. */
enum ttd_status view_filter(struct view *view, const struct heap_site_table *sites);

/** Whether the options filter stacks. */
static inline bool view_has_filter(const struct view_options *options)
{
    return options->include.count || options->exclude.count;
}

/** Sets `is_known` to whether a pattern matches any name in the trace. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status view_knows(const struct view *view, const struct ttd_string *pattern,
                           bool *is_known);

/** Sets `is_wanted` to whether the filters let a stack through. Answers are kept by stack. @return
 * TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
enum ttd_status view_wants(struct view *view, ttd_id stack, bool *is_wanted);

/** Makes a label that does not depend on frames: of a thread, heap or class, or of a stack
 * without frames. */
struct view_label view_record_label(const struct view *view, struct heap_key key);

/**
 * Merges the records of a group, and sorts the groups. Afterwards view_find_label() gives the
 * labels of their keys. By stack, keys are still stacks: the part that view_options.skip leaves.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status view_group(struct view *view, const struct heap_site_table *sites);

/** Tells whether any stacks are the same although their identifiers differ. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status view_has_same(struct view *view, bool *has_any);

/** Finds the stack that stands for all that are the same. @param context  a struct view. @return as
 * view_group(). */
enum ttd_status view_find_same(void *context, ttd_id stack, ttd_id *first);

/** Replaces the key of a record by the key of its group. @return as view_group(). */
enum ttd_status view_find_key(struct view *view, struct heap_key *key);

/** Returns the label of a key after view_group() or view_find_key(), unless grouped by stack. */
const struct view_label *view_find_label(const struct view *view, struct heap_key key);

/** Returns the name of a key, such as "function". Static. */
const char *view_key_name(enum view_key key);

#endif
