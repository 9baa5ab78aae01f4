/* SPDX-License-Identifier: MIT */
/**
 * Suppressions: rules for findings that are not to be reported, in the formats of two other tools:
 * lines of LeakSanitizer, "leak:pattern", and blocks in braces of valgrind. A file may have both.
 *
 * A pattern of LeakSanitizer matches a function, file or module of any frame. It may be anywhere in
 * the name unless it begins with '^' or ends with '$'; '*' stands for any text.
 *
 * Lines of valgrind match frames from the innermost on: "fun:" a function, as in the symbol table
 * or demangled; "obj:" a module's path; "src:" a file or its base name, and a line; "..." any
 * number of frames. '*' and '?' are wildcards. For an inlined function valgrind knows only the last
 * part of its name, without template arguments; so that part is matched. In valgrind the innermost
 * frame is the function that allocates or releases; a recorded stack does not have it: it is added.
 *
 * From memcheck, Memcheck:Leak is for leaks, Memcheck:Free for releases, and Memcheck:FishyValue
 * for calls that failed; ttdanalyze:NAME is for findings of that name. Rules of other kinds are
 * accepted and match nothing. A rule with match-leak-kinds is for leaks of these kinds; if no
 * snapshot shows the kind of a leak, for any, unless they are "none".
 */
#ifndef ANALYZER_VIEW_SUPPRESS_H
#define ANALYZER_VIEW_SUPPRESS_H

#include "analyses/errors/errors.h"
#include "base/grow.h"
#include "symbols/fingerprint.h"
#include "symbols/frames.h"

/** Kinds of findings: the kinds of errors, and leaks. */
#define SUPPRESS_LEAK  HEAP_ERROR_KINDS
#define SUPPRESS_KINDS (HEAP_ERROR_KINDS + 1)

/** Kinds for suppress_find(): leaks of a kind that is known. SUPPRESS_LEAK is one of any. */
enum {
    SUPPRESS_DEFINITE = SUPPRESS_KINDS,
    SUPPRESS_INDIRECT,
    SUPPRESS_POSSIBLE,
    SUPPRESS_REACHABLE
};

/** Limits on the frames of a rule, and on the rules of all files. */
#define SUPPRESS_FRAMES_MAX 256
#define SUPPRESS_RULES_MAX  65536

/** Size limit of a file, in bytes. */
#define SUPPRESS_FILE_MAX (16u << 20)

enum suppression_part {
    /** Any number of frames. */
    SUPPRESS_FRAMES,
    SUPPRESS_FUNCTION,
    SUPPRESS_OBJECT,
    SUPPRESS_SOURCE,
    /** A pattern of LeakSanitizer: a function, file or module. */
    SUPPRESS_ANY
};

struct suppression_line {
    enum suppression_part part;
    struct ttd_string pattern;
    /** Demangled and canonical form of a mangled pattern of SUPPRESS_FUNCTION; else of size 0. */
    struct ttd_string display;
    struct ttd_string canonical;
    /** The last part of the pattern, without template arguments, if it may be the name of an
     * inlined function; else of size 0. */
    struct ttd_string inlined;
    /** The suffix of a compiler's copy was removed from the pattern, so it matches only copies. */
    bool is_clone;
    /** Line of SUPPRESS_SOURCE; 0 for any. */
    uint32_t line;
};

struct suppression {
    /** The file as named by the user, and the line where the rule begins. */
    const char *file;
    size_t line;
    /** Name of a valgrind rule, or "leak:pattern". Untrusted. */
    struct ttd_string name;
    /** Kinds of findings that the rule is for, as bits; leaks of each kind apart. */
    uint32_t kinds;
    bool is_sanitizer;
    size_t first;
    size_t count;
    /** Totals of the rule's matches: findings or blocks, and calls or bytes. */
    uint64_t matched;
    uint64_t amount;
};

struct suppressions {
    struct suppression *rules;
    size_t count;
    size_t capacity;
    struct suppression_line *lines;
    size_t line_count;
    size_t line_capacity;
    struct arena text;
    /** First rule of LeakSanitizer that matches, plus 1, by (module, offset). */
    struct hash_map sites;
    struct frame_list frames;
};

/** An error in a file of suppressions or a baseline. */
struct suppress_error {
    size_t line;
    char reason[160];
};

void suppress_init(struct suppressions *suppressions);
void suppress_free(struct suppressions *suppressions);

/**
 * Adds the rules of a file.
 *
 * @param file   its name; must remain valid
 * @param error  set on TTD_ERROR_ARGUMENT
 * @return TTD_OK, TTD_ERROR_ARGUMENT (the file is invalid), TTD_ERROR_NO_MEMORY.
 */
enum ttd_status suppress_read(struct suppressions *suppressions, const char *file,
                              struct ttd_string text, struct suppress_error *error);

/**
 * Finds the first rule that matches a finding.
 *
 * @param kind  of the finding
 * @param api   the enum ttd_api that was called
 * @param rule  set to the rule, or to NULL
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status suppress_find(struct suppressions *suppressions, struct definitions *definitions,
                              unsigned kind, uint8_t api, ttd_id stack, struct suppression **rule);

/*
 * A baseline: findings of an earlier run, identified by properties that a rebuild does not change.
 * The file is text. Its first line is BASELINE_HEADER; each further line is a finding: its kind,
 * its fingerprint, and its count (blocks of a leak, calls of an error). The rest of a line is for
 * people. Lines that begin with '#' are comments.
 */

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
