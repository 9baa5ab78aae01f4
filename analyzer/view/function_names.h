/* SPDX-License-Identifier: MIT */
/** Names of allocators' functions, and patterns for names. */
#ifndef ANALYZER_VIEW_FUNCTION_NAMES_H
#define ANALYZER_VIEW_FUNCTION_NAMES_H

#include <stdbool.h>

#include <ttdtrace/model.h>

#include "analyses/errors/errors.h"
#include "symbols/frames.h"
#include "travel/heap_trace.h"

/* Names of functions that only pass memory on: their callers are the ones that allocate. */

/** Whether the function, demangled, is an allocation function of C or C++. */
bool allocators_have(struct ttd_string function);

/** Whether the function, demangled, is an operator new or delete of C++. */
bool allocators_are_operator(struct ttd_string function);

/** Whether a function, by its canonical name, is a common wrapper between programs or libraries and
 * the allocator, such as xmalloc() or g_malloc(), in any namespace. */
bool allocators_wrap(struct ttd_string canonical);

/** Returns the symbol of an API function, given as an enum ttd_api. Static. */
const char *allocators_symbol(uint8_t api);

/* Glob patterns for names. */

/** The wildcards of a pattern: '*' for any number of characters, '?' for one of them in
 * GLOB_STARS_AND_MARKS. */
enum glob_kind { GLOB_STARS, GLOB_STARS_AND_MARKS };

/** Whether the pattern matches the whole text. Takes at most pattern size times text size steps. */
bool glob_match(enum glob_kind kind, struct ttd_string pattern, struct ttd_string text);

/** Whether the text contains the pattern; a pattern with '*' or '?' must match the whole text. */
bool glob_find(struct ttd_string pattern, struct ttd_string text);

/** Returns the part of a path after its last '/'. */
struct ttd_string glob_base_name(struct ttd_string path);

/* Judgements by the names in stacks: whether the C and C++ runtimes keep their blocks, which
 * functions allocate, and which mismatches are none. */

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
 * unknown, the finding becomes uncertain; so does a second release by a function such as free(),
 * which may keep blocks that were released and release them later.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status finding_pairs_operators(struct definitions *definitions,
                                        struct heap_finding *finding, bool *pairs);

#endif
