/* SPDX-License-Identifier: MIT */
/**
 * Findings that were there before, by what does not change with a rebuild. The file is a text: a
 * first line that says what it is, and a line for each finding: its kind, its fingerprint, and how
 * many there were, blocks of a leak and calls of an error; what follows is for people. Lines that
 * begin with '#' are comments.
 */
#ifndef ANALYZER_VIEW_BASELINE_H
#define ANALYZER_VIEW_BASELINE_H

#include "symbols/fingerprint.h"
#include "view/suppress.h"

/** The first line of a file. Another number has other fingerprints. */
#define BASELINE_HEADER "ttdanalyze baseline 2"
#define BASELINE_OLD    "ttdanalyze baseline 1"

/** Calls that a finding is about. */
#define BASELINE_STACKS 4

struct baseline_record {
    unsigned kind;
    struct fingerprint fingerprint;
    /** Blocks of a leak, calls of an error. */
    uint64_t count;
    /** Of the call that the finding is about: the first one of several. */
    ttd_id stack;
};

struct baseline {
    /** In the order in which they were added. */
    struct baseline_record *records;
    size_t count;
    size_t capacity;
    struct hash_map index;
};

void baseline_init(struct baseline *baseline);
void baseline_free(struct baseline *baseline);

/** Adds an entry, or its count to the one that is there. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status baseline_add(struct baseline *baseline, const struct baseline_record *record);

/** The entry of the same kind and fingerprint, or NULL. */
const struct baseline_record *baseline_find(const struct baseline *baseline,
                                            const struct baseline_record *record);

/** Orders entries by kind and fingerprint; none can be added or found then. */
void baseline_sort(struct baseline *baseline);

/** Adds the entries of a file. Statuses as suppress_read(). */
enum ttd_status baseline_read(struct baseline *baseline, struct ttd_string text,
                              struct suppress_error *error);

/**
 * The entry of a finding: its fingerprint is that of the first stack if the others are TTD_NONE,
 * else a mixture of all.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY with `result` untouched.
 */
enum ttd_status baseline_record_of(struct fingerprinter *fingerprinter,
                                   struct definitions *definitions, unsigned kind,
                                   const ttd_id stacks[BASELINE_STACKS],
                                   struct baseline_record *result);

/** Name of a kind, such as "leak". Static. */
const char *baseline_kind_name(unsigned kind);

#endif
