/* SPDX-License-Identifier: MIT */
/** Data of a page for browsers. */
#ifndef ANALYZER_REPORT_PAGE_PAGE_MODEL_H
#define ANALYZER_REPORT_PAGE_PAGE_MODEL_H

#include <ttdtrace/model.h>

#include "analyses/activity/moves.h"
#include "analyses/activity/ticks.h"
#include "analyses/activity/usage.h"
#include "analyses/reachability/leaks.h"
#include "base/hash_map.h"
#include "report/sections/sections.h"
#include "report/writers/row.h"
#include "travel/islands.h"
#include "view/view.h"

/* The tree of calls of a page, in flat arrays: nodes are frames below their callers, and stay the
 * same whatever amounts hang from them. */

/* A table of texts, each with a number from 0 on. */

/** All zero but for the key of the map when empty. Texts belong to somebody else. */
struct page_strings {
    struct ttd_string *texts;
    size_t count;
    size_t capacity;
    /** By address and size: definitions hold each text once. */
    struct hash_map index;
};

void page_strings_init(struct page_strings *strings);
void page_strings_free(struct page_strings *strings);

/** Numbers a text. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status page_strings_add(struct page_strings *strings, struct ttd_string text,
                                 uint32_t *number);

/** Writes the texts as an array. */
void page_strings_json(const struct page_strings *strings, struct row *row, const char *key);

/** No node. */
#define PAGE_NO_NODE UINT32_MAX

/** The label of stacks without frames; no function has it. */
#define PAGE_NO_LABEL UINT32_MAX

struct page_frame {
    /** Label of the function, in the view. */
    uint32_t label;
    /** Numbers of texts. */
    uint32_t function;
    uint32_t module;
    uint32_t file;
    uint32_t line;
    bool is_inlined;
    /** See view_frame. */
    bool allocates;
    bool is_own;
};

struct page_node {
    uint32_t parent;
    uint32_t frame;
};

struct page_calls {
    /** By function. Not owned. */
    struct view *view;
    struct page_strings strings;
    struct page_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct hash_map frame_index;
    /** Parents come before their children. */
    struct page_node *nodes;
    size_t node_count;
    size_t node_capacity;
    struct hash_map node_index;
    /** By stack the number of its node plus 1: below no other, or, for stacks that are cut, below
     * the node of unknown callers. */
    struct stack_memo memo, cut_memo;
    uint32_t unknown;   /* that node; PAGE_NO_NODE before the first of these stacks */
    uint32_t outermost; /* of the memo in use: the node that its stacks begin below */
    uint32_t others;    /* the node of the callers of many stacks; PAGE_NO_NODE before the first */
    struct frame_list scratch;
};

/** @param view  groups by function; must outlive the tree */
void page_calls_init(struct page_calls *calls, struct view *view);
void page_calls_free(struct page_calls *calls);

/** A stack as a call site: the number of the node of its last call that is of no allocation
 * function, from 1, or 0 if the stack has no frames; and the nodes from there up to its last call
 * that is of the program's own functions. */
struct page_site {
    uint32_t node;
    uint32_t up;
};

/* Both return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT. */

/** Adds a stack as a call site. */
enum ttd_status page_calls_add(struct page_calls *calls, ttd_id stack, struct page_site *site);

/** Adds a stack with all its frames: sets `number` to its innermost node's, from 1, or 0 if
 * it has none. A report_stacks.find, whose context is the tree. */
enum ttd_status page_calls_number(void *context, ttd_id stack, uint64_t *number);

/** Finds the label of the function of a stack: of its last call that is of the program's own
 * functions; PAGE_NO_LABEL if it has no frames. */
enum ttd_status page_calls_find_function(struct page_calls *calls, ttd_id stack, uint32_t *label);

/** Adds the last call of a stack that is of the program's own functions, without its line, below a
 * node that stands for the callers of many: sets `number` to the number of its node, from 1; to the
 * number of the callers' node if the stack has no frames. */
enum ttd_status page_calls_add_function(struct page_calls *calls, ttd_id stack, uint32_t *number);

/** Writes a part with the tree: texts, frames and nodes, as arrays. */
void page_write_calls(const struct page_calls *calls, const char *name, struct text_output *output);

/* Call sites of a page: the ones that have most are there by themselves. The other ones of a listed
 * function are one call site, and so are the ones of all functions that are not listed. */

/** Call sites at most in a page, so that a trace of a million has a page of a size that browsers
 * load at once. A quarter are those with most live bytes at any tick; the others those with most
 * live blocks, most allocated bytes and most allocations. */
#define PAGE_SITES_MAX 11000

/** Functions at most that are listed although none of their call sites is known by itself: those
 * whose call sites have most, a quarter each by the same amounts. All others that are listed are
 * those with such a call site, so that the sums of a function are of all its call sites. */
#define PAGE_FUNCTIONS_MAX 2000

/** The key of sites that stand for others; no stack has it. */
#define PAGE_SITE_OTHERS UINT32_MAX

/** Numbers of stacks in the arrays of call sites. */
struct page_sites {
    ttd_id *stacks;
    size_t count;
    size_t capacity;
    struct hash_map index;
    /** Number of stacks that are not call sites of their own. If there are any, the call sites that
     * they are instead: the number of the first one, their number, and their nodes in the tree. The
     * first is of the stacks whose function is not listed, the others are of one function each. */
    size_t other_count;
    uint32_t others;
    size_t other_sites;
    size_t other_capacity;
    uint32_t *other_nodes;
};

void page_sites_free(struct page_sites *sites);

/**
 * Numbers the call sites: first the sites of the usage, in its order, then those for all others.
 *
 * @param calls  receives the functions of the others
 * @param max    on the sites that are not among the others; SIZE_MAX for all
 * @param sites  release with page_sites_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status page_sites_choose(struct page_sites *sites, const struct heap_ticks *ticks,
                                  const struct heap_usage *usage, struct page_calls *calls,
                                  size_t max);

/** Sets `number` to the number of the call site of a stack. @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status page_sites_add(struct page_sites *sites, ttd_id stack, uint32_t *number);

/** Changes of the call sites that stand for others, one each. */
struct page_changes {
    struct heap_tick_change *items;
    size_t count;
};

/** Adds up a change; `sum` becomes one of the same record. */
static inline void page_change_add(struct heap_tick_change *sum,
                                   const struct heap_tick_change *change)
{
    sum->record = change->record;
    sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)change->bytes);
    sum->blocks += change->blocks;
}

/** Whether a number is of a call site that stands for others. */
static inline bool page_sites_is_other(const struct page_sites *sites, uint32_t number)
{
    return sites->other_count && number >= sites->others &&
           number - sites->others < sites->other_sites;
}

/**
 * Makes a series by number of the call site, those that stand for others last; `folded` has its
 * keys, which are these numbers, changes and ends only.
 *
 * @param folded  release with heap_series_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status page_sites_fold(struct page_sites *sites, const struct heap_tick_series *series,
                                struct heap_tick_series *folded);

/*
 * The model of a page: the text that it is made of before compression. It has parts, each with a
 * name in a line of its own that begins with '#', and a JSON text behind it. Parts named like a
 * command are its output with `--format json`.
 */

/** The facts about a page that its parts do not have. */
struct page_facts {
    /** NULL for the trace's own. */
    const char *title;
    /** The names of all traces of the page, and the number of this one among them, from 1. */
    const char *const *paths;
    size_t path_count;
    size_t number;
    /** The options of the command, for the commands that the page names. */
    const struct view_options *filters;
    const struct heap_island_filter *island;
    struct ttd_position from;
    struct ttd_position last;
    bool reaches_end;
    bool has_times;
    /** The page has its trace in it. */
    bool is_exact;
    /** A snapshot at the end of the range or before shows the pointers to each block. */
    bool has_snapshot;
};

/** Begins a part. */
void page_begin_part(struct text_output *output, const char *name);

/** Writes the part `facts`. */
void page_write_facts(struct report *report, const struct page_facts *facts);

struct page_heap {
    const struct heap_ticks *ticks;
    const struct heap_usage *usage;
    const struct heap_move_table *moves;
    const struct heap_memory_samples *memory;
    /** At the end of the range. */
    const struct heap_leaks *leaks;
    /** Judges the stacks of blocks that the runtimes keep. */
    const struct heap_stack_judge *judge;
    /** The tree that receives the frames of call sites. Written last, when all parts have added
     * theirs. */
    struct page_calls *calls;
    /** The page has the trace, and so single blocks. */
    bool has_blocks;
    /** Limit on the call sites: PAGE_SITES_MAX, or SIZE_MAX. */
    size_t sites_max;
};

/**
 * Writes the part `heap`: ticks, series and call sites.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status page_write_heap(struct report *report, const struct page_heap *heap);

/**
 * Writes the part `stacks`, of an exact page: all stacks of the trace, with their numbers in the
 * tree.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status page_write_stacks(struct report *report, struct page_calls *calls);

/** Internals of the model. */

/** Limit on the samples of memory: the page has some 1,400 moments. */
#define PAGE_SAMPLES_MAX 1400

/** Writes changes as members: their records, as differences from one to the next, with the name
 * `key`; and their bytes and blocks. */
void page_changes_json(struct row *row, const char *key, const struct heap_tick_change *changes,
                       size_t count);

/** Writes the members `ticks`, `peak`, `spans` and `series`; the records of the series by stack are
 * call sites. */
void page_ticks_json(struct row *row, const struct heap_ticks *ticks);

/** Writes the member `memory`: samples of the memory of the process, of several the most if there
 * are many. */
void page_memory_json(struct row *row, const struct heap_memory_samples *samples);
enum ttd_status page_series_json(struct row *row, const struct heap_ticks *ticks,
                                 struct page_sites *sites);

/** Write members: the amounts that call sites have in the whole trace; the live sums at the peak,
 * as its tick and the differences from the tick's end; and the blocks that are lost, by kind, null
 * if no snapshot shows it. */
enum ttd_status page_usage_json(struct row *row, const struct heap_usage *usage,
                                struct page_sites *sites);
/** Writes the member `copied`: the bytes that reallocations of each call site copied at most. */
enum ttd_status page_copied_json(struct row *row, const struct heap_move_table *moves,
                                 struct page_sites *sites);
enum ttd_status page_peak_json(struct row *row, const struct heap_ticks *ticks,
                               struct page_sites *sites);
enum ttd_status page_lost_json(struct row *row, const struct heap_leaks *leaks,
                               struct page_sites *sites);
/** Writes the member `doubtful`: the blocks in leaks->doubtful, as arrays of their events by class.
 */
void page_doubtful_json(struct row *row, const struct heap_leaks *leaks);

/** Limit on the lost blocks of a kind that a page without its trace has one by one: a few kB. */
#define PAGE_LOST_BLOCKS_MAX 400

/** Writes the member `lost_blocks`: for each kind the addresses, sizes and stacks of its first
 * blocks in the order of addresses, as differences, and the number of all. */
void page_lost_blocks_json(struct row *row, const struct heap_leaks *leaks);

/** Writes the member `kept`: the call sites whose blocks the runtimes keep, and the other blocks
 * that they keep, which the ticks count and no command does. */
enum ttd_status page_kept_json(struct row *row, const struct page_heap *heap,
                               struct page_sites *sites);

#endif
