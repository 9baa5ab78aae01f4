/* SPDX-License-Identifier: MIT */
/** The names of a handle's trace, and groups of its blocks by them. Internal to library/. */
#ifndef ANALYZER_LIBRARY_NAMED_GROUPS_H
#define ANALYZER_LIBRARY_NAMED_GROUPS_H

#include "library/handle.h"
#include "view/function_names.h"
#include "view/view.h"

struct handle_names {
    struct definitions definitions;
    struct runtime_judge judge;
    /** Steps that are left of ttdheap_options.steps_max. */
    uint64_t steps;
};

/** Reads the names, unless they were read. @return as ttd_reader_next(), without its ends. */
enum ttd_status named_need(struct ttdheap *heap, struct ttd_error *why);

/** Returns handle_trace_to() for a query that separates the blocks that the runtimes keep; names
 * were read. */
struct heap_trace named_trace(struct ttdheap *heap, struct ttd_position position);

/** Returns the failure of the judge of runtimes, once; TTD_OK if there was none. */
enum ttd_status named_judged(struct ttdheap *heap);

/** Sets `key` to the key of views that stands for a property. Returns false if there is none. */
bool named_view_key(enum ttdheap_by by, enum view_key *key);

/** Groups that are put together for an answer. */
struct group_list {
    struct ttdheap_group *items;
    size_t count;
    size_t capacity;
    uint64_t blocks;
    uint64_t bytes;
};

/**
 * Merges groups by a property, and adds them to a list.
 *
 * @param view    with the key of the property
 * @param groups  changed
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status named_add_groups(struct group_list *list, struct view *view,
                                 struct heap_groups *groups, uint32_t kind);

/** Adds the groups of a table by size. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status named_add_sizes(struct group_list *list, const struct heap_groups *groups);

/** Makes the list an answer; it is released in every case. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status named_answer(struct ttdheap_groups *answer, struct group_list *list,
                             const struct certainty *certainty, struct ttd_position position,
                             const struct heap_runtime *runtime);

#endif
