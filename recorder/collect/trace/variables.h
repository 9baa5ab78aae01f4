/* SPDX-License-Identifier: MIT */
/** The variables of modules that held references in snapshots: the words of data that need a name,
 * and the ranges of data that have one. */
#ifndef RECORDER_COLLECT_TRACE_VARIABLES_H
#define RECORDER_COLLECT_TRACE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ids.h>

/** Words beyond this number stay without a name: 16 MB. */
enum { VARIABLE_WORDS_MAX = 1 << 20 };

/** A word of a module's data, from its load bias, or with TTD_THREAD_LOCAL. */
struct variable_word {
    ttd_id module;
    uint64_t offset;
};

/** A variable whose name is in the trace, or without a name. */
struct known_variable {
    ttd_id module;
    uint64_t begin, size;
};

/** All zero when empty. */
struct variables {
    struct variable_word *words; /* to be named; sorted and unique after variables_sort() */
    size_t count, capacity;
    struct known_variable *known; /* sorted by variables_sort() */
    size_t known_count, known_capacity;
    bool is_sorted;
};

void variables_free(struct variables *variables);

/** Adds a word; without memory it stays without a name. */
void variables_add(struct variables *variables, ttd_id module, uint64_t offset);

/** Marks a variable as known. */
void variables_know(struct variables *variables, ttd_id module, uint64_t begin, uint64_t size);

/** Sorts the words, and removes those that lie in known variables. */
void variables_sort(struct variables *variables);

#endif
