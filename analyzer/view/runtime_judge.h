/* SPDX-License-Identifier: MIT */
/** A judge of stacks, by the names in them: whether the C and C++ runtimes keep their blocks, and
 * which functions allocate. */
#ifndef ANALYZER_VIEW_RUNTIME_JUDGE_H
#define ANALYZER_VIEW_RUNTIME_JUDGE_H

#include "symbols/frames.h"
#include "travel/heap_trace.h"

struct runtime_judge {
    struct definitions *definitions;
    struct frame_list frames;
    /** Whether the runtimes keep the blocks of a stack. */
    struct hash_map judged;
    /** Whether a function wraps allocators, by its name. */
    struct hash_map wrappers;
    /** The first failure, without memory or steps; TTD_OK if there was none. */
    enum ttd_status status;
};

/** @param definitions  borrowed; complete before the first question */
void runtime_judge_init(struct runtime_judge *judge, struct definitions *definitions);
void runtime_judge_free(struct runtime_judge *judge);

/** Makes a query of a trace ask the judge. */
void runtime_judge_attach(struct runtime_judge *judge, struct heap_trace *trace);

#endif
