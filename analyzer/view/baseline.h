/* SPDX-License-Identifier: MIT */
/**
 * A baseline: findings of an earlier run, identified by properties that a rebuild does not change.
 * The file is text. Its first line is BASELINE_HEADER; each further line is a finding: its kind,
 * its fingerprint, and its count (blocks of a leak, calls of an error). The rest of a line is for
 * people. Lines that begin with '#' are comments.
 */
#ifndef ANALYZER_VIEW_BASELINE_H
#define ANALYZER_VIEW_BASELINE_H

#include "symbols/fingerprint.h"
#include "view/suppress.h"

/** First line of a file. The number changes with the definition of fingerprints. */
#define BASELINE_HEADER "ttdanalyze baseline 2"
#define BASELINE_OLD    "ttdanalyze baseline 1"

/** Stacks that identify a finding, at most. */
#define BASELINE_STACKS 4

struct baseline_record {
    unsigned kind;
    struct fingerprint fingerprint;
    /** Blocks of a leak, calls of an error. */
    uint64_t count;
    /** Stack of the call that the finding is about; of several, the first. */
    ttd_id stack;
};

struct baseline {
    /** Records, in the order of their addition. */
    struct baseline_record *records;
    size_t count;
    size_t capacity;
    struct hash_map index;
};

void baseline_init(struct baseline *baseline);
void baseline_free(struct baseline *baseline);

/** Adds a record, or its count to the record of the same kind and fingerprint. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status baseline_add(struct baseline *baseline, const struct baseline_record *record);

/** Finds the record of the same kind and fingerprint; NULL if there is none. */
const struct baseline_record *baseline_find(const struct baseline *baseline,
                                            const struct baseline_record *record);

/** Sorts the records by kind and fingerprint. Afterwards none can be added or found. */
void baseline_sort(struct baseline *baseline);

/** Adds the records of a file. Statuses as suppress_read(). */
enum ttd_status baseline_read(struct baseline *baseline, struct ttd_string text,
                              struct suppress_error *error);

/**
 * Makes the record of a finding. Its fingerprint comes from the first stack if the others are
 * TTD_NONE, else a mixture of all.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with `result` untouched.
 */
enum ttd_status baseline_record_of(struct fingerprinter *fingerprinter,
                                   struct definitions *definitions, unsigned kind,
                                   const ttd_id stacks[BASELINE_STACKS],
                                   struct baseline_record *result);

/** Returns the name of a kind, such as "leak". Static. */
const char *baseline_kind_name(unsigned kind);

#endif
