/* SPDX-License-Identifier: MIT */
/**
 * Rules that say which findings are known and not to be reported, in the formats of two other
 * tools: lines of LeakSanitizer, "leak:pattern", and blocks in braces of valgrind. A file may have
 * both.
 *
 * A pattern of LeakSanitizer matches a function, a file or a module of any frame; it may be
 * anywhere in the name unless it begins with '^' or ends with '$', and '*' stands for anything.
 *
 * Lines of valgrind match frames from the innermost on: "fun:" a function, as in the symbol table
 * or demangled, or an inlined one by the last part of its name, which is all that valgrind has of
 * it, without template arguments; "obj:" a module's path; "src:" a file, or its base name, and
 * line; "..." any number of frames. '*' and '?' stand for other characters. The innermost frame is
 * that of the function that allocates or releases, as valgrind has it, which a recorded stack does
 * not. Of what memory checkers find, Memcheck:Leak is about leaks, Memcheck:Free about releases,
 * and Memcheck:FishyValue about calls that failed; ttdanalyze:NAME is about findings of that name.
 * All other kinds are read over. A trace does not tell which leaks can still be reached: a rule
 * with match-leak-kinds applies unless these are "none".
 */
#ifndef ANALYZER_VIEW_SUPPRESS_H
#define ANALYZER_VIEW_SUPPRESS_H

#include "base/arena.h"
#include "analyses/errors.h"
#include "symbols/frames.h"

/** Kinds of findings: those of errors, and leaks. */
#define SUPPRESS_LEAK  HEAP_ERROR_KINDS
#define SUPPRESS_KINDS (HEAP_ERROR_KINDS + 1)

/** A rule has no more frames, and all files together no more rules. */
#define SUPPRESS_FRAMES_MAX 256
#define SUPPRESS_RULES_MAX  65536

/** Bytes of a file. */
#define SUPPRESS_FILE_MAX (16u << 20)

enum suppression_part {
    /** Any number of frames. */
    SUPPRESS_FRAMES,
    SUPPRESS_FUNCTION,
    SUPPRESS_OBJECT,
    SUPPRESS_SOURCE,
    /** As of LeakSanitizer: function, file or module. */
    SUPPRESS_ANY
};

struct suppression_line {
    enum suppression_part part;
    struct ttd_string pattern;
    /** Of SUPPRESS_FUNCTION: a mangled name demangled, and in canonical form. Of size 0 if it is
     * none. */
    struct ttd_string display;
    struct ttd_string canonical;
    /** The last part of a name, without template arguments, if the pattern may be the name of an
     * inlined function; else of size 0. */
    struct ttd_string inlined;
    /** The suffix of a compiler's copy was removed from the pattern. */
    bool is_clone;
    /** Of SUPPRESS_SOURCE; 0 for any. */
    uint32_t line;
};

struct suppression {
    /** Its file as given, and the line at which it begins. */
    const char *file;
    size_t line;
    /** Name of a valgrind rule, or "leak:pattern". Untrusted. */
    struct ttd_string name;
    /** A bit for each kind of finding. */
    uint32_t kinds;
    bool is_sanitizer;
    size_t first;
    size_t count;
    /** What it has matched: findings or blocks, and calls or bytes. */
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
    /** (module, offset) to the first rule of LeakSanitizer that matches there, plus 1. */
    struct hash_map sites;
    struct frame_list frames;
};

/** What is wrong with a file. */
struct suppress_error {
    size_t line;
    char reason[160];
};

void suppress_init(struct suppressions *suppressions);
void suppress_free(struct suppressions *suppressions);

/**
 * Adds the rules of a file.
 *
 * @param file   its name, which must remain
 * @param error  set if something is wrong with it
 * @return TTD_OK, TTD_ERROR_ARGUMENT for a bad file, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status suppress_read(struct suppressions *suppressions, const char *file,
                              struct ttd_string text, struct suppress_error *error);

/**
 * Finds the first rule that matches.
 *
 * @param kind  of the finding
 * @param api   a ttd_api_function: the one that was called
 * @param rule  set to it, or to NULL
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status suppress_find(struct suppressions *suppressions, struct definitions *definitions,
                              unsigned kind, uint8_t api, ttd_id stack, struct suppression **rule);

#endif
