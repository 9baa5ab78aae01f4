/* SPDX-License-Identifier: MIT */
/** Internals of views, private to view/. */
#ifndef ANALYZER_VIEW_VIEW_PARTS_H
#define ANALYZER_VIEW_VIEW_PARTS_H

#include "view/view.h"

/** Finds a fact about a stack from the one about its caller, like stack_memo_finder.find. */
typedef enum ttd_status view_fact_finder(void *context, const struct ttd_stack *stack,
                                         uint32_t above, uint32_t *fact);

/** Finds a fact about a stack, once. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or the
 * finder's status. */
enum ttd_status view_find_fact(struct view *view, struct stack_memo *memo, ttd_id stack,
                               view_fact_finder *find, uint32_t *fact);

/** Whether a frame is of an allocation function, or of one that view_options.skip adds to these. */
bool view_is_skipped(const struct view *view, const struct frame *frame);

/** Whether a frame may name a group: see view_frame.is_own. */
bool view_has_own(const struct view *view, const struct frame *frame);

#endif
