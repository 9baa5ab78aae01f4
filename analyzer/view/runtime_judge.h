/* SPDX-License-Identifier: MIT */
/** Judgements by the names in stacks: whether the C and C++ runtimes keep their blocks, which
 * functions allocate, and which mismatches are none. */
#ifndef ANALYZER_VIEW_RUNTIME_JUDGE_H
#define ANALYZER_VIEW_RUNTIME_JUDGE_H

#include "analyses/errors/errors.h"
#include "symbols/frames.h"
#include "travel/heap_trace.h"

struct runtime_judge {
    struct definitions *definitions;
    struct frame_list frames;
    /** Whether the runtimes keep the blocks of a stack. */
    struct hash_map judged;
    /** The traits of functions, by name. */
    struct hash_map functions;
    /** Whether any function is one of GLib's slices, once that is known. */
    bool knows_slices;
    bool has_slices;
    /** The first failure, without memory or steps; TTD_OK if there was none. */
    enum ttd_status status;
};

/** @param definitions  borrowed; complete before the first question */
void runtime_judge_init(struct runtime_judge *judge, struct definitions *definitions);
void runtime_judge_free(struct runtime_judge *judge);

/** Makes a query of a trace ask the judge. */
void runtime_judge_attach(struct runtime_judge *judge, struct heap_trace *trace);

/**
 * Sets `pairs` to whether a mismatch comes from operators of C++ that the program defines itself.
 * The recorder sees only the malloc() inside such an operator new, while a delete in another module
 * is recorded as delete. The pair is correct, and must not be reported. Where inlined functions are
 * unknown, the finding becomes uncertain.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status finding_pairs_operators(struct definitions *definitions,
                                        struct heap_finding *finding, bool *pairs);

#endif
