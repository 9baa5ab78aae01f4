/* SPDX-License-Identifier: MIT */
/**
 * Findings that were there before, by what does not change with a rebuild. The file is a text: a
 * first line that says what it is, and a line for each finding, its kind and its fingerprint; what
 * follows is for people. Lines that begin with '#' are comments.
 */
#ifndef ANALYZER_VIEW_BASELINE_H
#define ANALYZER_VIEW_BASELINE_H

#include "symbols/fingerprint.h"
#include "view/suppress.h"

/** The first line of a file. */
#define BASELINE_HEADER "ttdanalyze baseline 1"

/** Calls that a finding is about. */
#define BASELINE_STACKS 4

typedef struct baseline_entry {
    unsigned kind;
    fingerprint print;
    /** Of the call that the finding is about. */
    ttd_id stack;
} baseline_entry;

typedef struct baseline {
    /** In the order in which they were added. */
    baseline_entry *entries;
    size_t count;
    size_t capacity;
    hash_map index;
} baseline;

void baseline_init(baseline *all);
void baseline_free(baseline *all);

/** Adds an entry, unless it is there. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status baseline_add(baseline *all, const baseline_entry *entry);
bool baseline_has(const baseline *all, const baseline_entry *entry);

/** Orders entries by kind and fingerprint. */
void baseline_sort(baseline *all);

/** Adds the entries of a file. Statuses as suppress_read(). */
ttd_status baseline_read(baseline *all, ttd_string text, suppress_error *error);

/**
 * The entry of a finding: its fingerprint is that of the first stack if the others are TTD_NONE,
 * else a mixture of all.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY with `entry` untouched.
 */
ttd_status baseline_entry_of(fingerprinter *work, definitions *names, unsigned kind,
                             const ttd_id stacks[BASELINE_STACKS], baseline_entry *entry);

/** Name of a kind, such as "leak". Static. */
const char *baseline_kind_name(unsigned kind);

#endif
