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

typedef enum view_key {
    VIEW_BY_STACK,
    VIEW_BY_FUNCTION,
    VIEW_BY_FILE,
    VIEW_BY_MODULE,
    VIEW_BY_THREAD,
    VIEW_BY_HEAP
} view_key;

typedef enum view_shape { VIEW_FLAT, VIEW_TOP_DOWN, VIEW_BOTTOM_UP } view_shape;

typedef struct view_patterns {
    ttd_string items[VIEW_PATTERNS];
    size_t count;
} view_patterns;

typedef struct view_options {
    view_key by;
    view_shape shape;
    /** Levels of a tree; 0 for all. */
    uint64_t depth;
    /** Stacks with a frame that matches one of them; all if there is none. */
    view_patterns include;
    /** But none with a frame that matches one of these. */
    view_patterns exclude;
    /** Functions that are taken for allocation functions; stacks begin with what calls these. */
    view_patterns skip;
    /** Groups to show, or branches of each in a tree. */
    size_t limit;
} view_options;

/** A frame as a view sees it. */
typedef struct view_frame {
    uint32_t label;
    bool allocates;
    /** A frame of the program that is no wrapper of an allocation function. Set only by function,
     * file and module. */
    bool is_own;
    bool is_included;
    bool is_excluded;
} view_frame;

/** The frames of an address: so many from `first` on, innermost first. */
typedef struct view_site {
    size_t first;
    size_t count;
} view_site;

typedef struct view {
    view_options options;
    definitions *names;
    label_table labels;
    /** (module, offset) to an index in sites. */
    hash_map site_index;
    view_site *sites;
    size_t site_count;
    size_t site_capacity;
    view_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    frame_list scratch;
    /** By stack: what the patterns say, and its last call that is of no allocation function. */
    stack_memo verdicts;
    stack_memo callers;
    /** Its last call that is of the program's own functions. */
    stack_memo own_callers;
    /** How many labels it has outward, where those that are the same and follow each other are one
     * if they are of files or modules. */
    stack_memo label_counts;
} view;

/** @param names  complete before the first use, and not owned */
void view_init(view *shown, const view_options *options, definitions *names);
void view_free(view *shown);

/** What rows need to be split by. */
heap_split view_split(const view_options *options);

/**
 * Finds the last call of a stack that is of no allocation function; if there is no other, the last
 * call.
 *
 * @param caller  set on TTD_OK: the stack that ends there
 * @param site    set on TTD_OK: its frames from there on
 * @return TTD_OK, TTD_END (the stack is not defined), TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
ttd_status view_find_caller(view *shown, ttd_id stack, ttd_stack *caller, view_site *site);

/** As view_find_caller(), but finds the last call of the program's own functions if there is one.
 */
ttd_status view_find_own_caller(view *shown, ttd_id stack, ttd_stack *caller, view_site *site);

/** How many frames of a list, from the first on, are left out because of view_options.skip. */
size_t view_skipped(const view *shown, const frame_list *list);

/** How many labels a stack has, see view->label_counts. Statuses as view_find_caller(). */
ttd_status view_count_labels(view *shown, ttd_id stack, uint64_t *count);

/** Whether labels that are the same and follow each other are one. */
static inline bool view_merges(const view *shown)
{
    return shown->options.by == VIEW_BY_FILE || shown->options.by == VIEW_BY_MODULE;
}

/** The frames of an address of a stack. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
ttd_status view_find_site(view *shown, const ttd_stack *stack, view_site *site);

/** As view_find_site(), and counts a step for each frame: for callers that look at all. */
ttd_status view_go_through(view *shown, const ttd_stack *stack, view_site *site);

/** Removes the rows that are not wanted. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
ttd_status view_filter(view *shown, const heap_rows *rows);

/** Whether stacks are filtered at all. */
static inline bool view_has_filter(const view_options *options)
{
    return options->include.count || options->exclude.count;
}

/** Sets `is_known` to whether a pattern is that of any name in the trace. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
ttd_status view_knows(const view *shown, const ttd_string *pattern, bool *is_known);

/** Sets `is_wanted` to whether the patterns let a stack through; quick for one that was asked for
 * before. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */
ttd_status view_wants(view *shown, ttd_id stack, bool *is_wanted);

/** What a row stands for beside its stack: a thread or a heap; or if its stack has no frames. */
view_label view_row_label(const view *shown, heap_key key);

/**
 * Merges rows that have in common what the options say, and orders them. Afterwards
 * view_find_label() tells what their keys are; by stack, they are stacks as before, or what is left
 * of them by view_options.skip.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
ttd_status view_group(view *shown, const heap_rows *rows);

/** What the key of a row stands for after view_group(), other than by stack. */
const view_label *view_find_label(const view *shown, heap_key key);

/** Name of a key, such as "function". Static. */
const char *view_key_name(view_key key);

#endif
