/* SPDX-License-Identifier: MIT */
/** The tree of calls of a page, in flat arrays: nodes are frames below their callers, and stay the
 * same whatever amounts hang from them. */
#ifndef ANALYZER_REPORT_PAGE_PAGE_CALLS_H
#define ANALYZER_REPORT_PAGE_PAGE_CALLS_H

#include <ttdtrace/model.h>

#include "base/hash_map.h"
#include "report/writers/row.h"
#include "view/view.h"

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
    /** By stack the number of its node plus 1. */
    struct stack_memo memo;
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

/** Writes a part with the tree: texts, frames and nodes, as arrays. */
void page_write_calls(const struct page_calls *calls, const char *name, struct text_output *output);

#endif
