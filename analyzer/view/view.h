/* SPDX-License-Identifier: MIT */
/**
 * Views of call sites: rows by stack are filtered by the names in their stacks, and merged by what
 * they have in common.
 */
#ifndef ANALYZER_VIEW_VIEW_H
#define ANALYZER_VIEW_VIEW_H

#include "heap/rows.h"
#include "symbols/memo.h"
#include "view/labels.h"

#define VIEW_PATTERNS 64

enum view_key {
    VIEW_BY_STACK,
    VIEW_BY_FUNCTION,
    VIEW_BY_FILE,
    VIEW_BY_MODULE,
    VIEW_BY_THREAD,
    VIEW_BY_HEAP
};

enum view_shape { VIEW_FLAT, VIEW_TOP_DOWN, VIEW_BOTTOM_UP };

struct view_patterns {
    struct ttd_string patterns[VIEW_PATTERNS];
    size_t count;
};

struct view_options {
    enum view_key by;
    enum view_shape shape;
    /** Levels of a tree; 0 for all. */
    uint64_t depth;
    /** Stacks with a frame that matches one of them; all if there is none. */
    struct view_patterns include;
    /** But none with a frame that matches one of these. */
    struct view_patterns exclude;
    /** Functions that are taken for allocation functions; stacks begin with what calls these. */
    struct view_patterns skip;
    /** Groups to show, or branches of each in a tree. */
    size_t limit;
};

/** A frame as a view sees it. */
struct view_frame {
    uint32_t label;
    bool allocates;
    /** A frame of the program that is no wrapper of an allocation function. Set only by function,
     * file and module. */
    bool is_own;
    bool is_included;
    bool is_excluded;
};

/** The frames of an address: so many from `first` on, innermost first. */
struct view_site {
    size_t first;
    size_t count;
};

struct view {
    struct view_options options;
    struct definitions *definitions;
    struct label_table labels;
    /** (module, offset) to an index in sites. */
    struct hash_map site_index;
    struct view_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct view_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct frame_list scratch;
    /** By stack: what the patterns say, and its last call that is of no allocation function. */
    struct stack_memo verdicts;
    struct stack_memo callers;
    /** Its last call that is of the program's own functions. */
    struct stack_memo own_callers;
    /** How many labels it has outward, where those that are the same and follow each other are one
     * if they are of files or modules. */
    struct stack_memo label_counts;
};

/** @param names  complete before the first use, and not owned */
void view_init(struct view *view, const struct view_options *options,
               struct definitions *definitions);
void view_free(struct view *view);

/** What rows need to be split by. */
enum heap_split view_split(const struct view_options *options);

/**
 * Finds the last call of a stack that is of no allocation function; if there is no other, the last
 * call.
 *
 * @param caller  set on TTD_OK: the stack that ends there
 * @param site    set on TTD_OK: its frames from there on
 * @return TTD_OK, TTD_END (the stack is not defined), TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status view_find_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                 struct view_site *site);

/** As view_find_caller(), but finds the last call of the program's own functions if there is one.
 */
enum ttd_status view_find_own_caller(struct view *view, ttd_id stack, struct ttd_stack *caller,
                                     struct view_site *site);

/** How many frames of a list, from the first on, are left out because of view_options.skip. */
size_t view_skipped(const struct view *view, const struct frame_list *list);

/** How many labels a stack has, see view->label_counts. Statuses as view_find_caller(). */
enum ttd_status view_count_labels(struct view *view, ttd_id stack, uint64_t *count);

/** Whether labels that are the same and follow each other are one. */
static inline bool view_merges(const struct view *view)
{
    return view->options.by == VIEW_BY_FILE || view->options.by == VIEW_BY_MODULE;
}

/** The frames of an address of a stack. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
enum ttd_status view_find_site(struct view *view, const struct ttd_stack *stack,
                               struct view_site *site);

/** As view_find_site(), and counts a step for each frame: for callers that look at all. */
enum ttd_status view_go_through(struct view *view, const struct ttd_stack *stack,
                                struct view_site *site);

/** Removes the rows that are not wanted. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
enum ttd_status view_filter(struct view *view, const struct heap_rows *rows);

/** Whether stacks are filtered at all. */
static inline bool view_has_filter(const struct view_options *options)
{
    return options->include.count || options->exclude.count;
}

/** Sets `is_known` to whether a pattern is that of any name in the trace. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status view_knows(const struct view *view, const struct ttd_string *pattern,
                           bool *is_known);

/** Sets `is_wanted` to whether the patterns let a stack through; quick for one that was asked for
 * before. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
enum ttd_status view_wants(struct view *view, ttd_id stack, bool *is_wanted);

/** What a row stands for beside its stack: a thread or a heap; or if its stack has no frames. */
struct view_label view_row_label(const struct view *view, struct heap_key key);

/**
 * Merges rows that have in common what the options say, and orders them. Afterwards
 * view_find_label() tells what their keys are; by stack, they are stacks as before, or what is left
 * of them by view_options.skip.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status view_group(struct view *view, const struct heap_rows *rows);

/** What the key of a row stands for after view_group(), other than by stack. */
const struct view_label *view_find_label(const struct view *view, struct heap_key key);

/** Name of a key, such as "function". Static. */
const char *view_key_name(enum view_key key);

#endif
