/* SPDX-License-Identifier: MIT */
/** Internals of reading suppressions, private to suppress_*.c. A file may contain anything. */
#ifndef ANALYZER_VIEW_SUPPRESS_PARTS_H
#define ANALYZER_VIEW_SUPPRESS_PARTS_H

#include "symbols/demangle.h"
#include "view/suppress.h"

/** The bit of a kind of finding in suppression.kinds. */
#define SUPPRESS_BIT(kind) (UINT32_C(1) << (kind))

/** Leaks of every kind. */
#define SUPPRESS_LEAKS                                                                             \
    (SUPPRESS_BIT(SUPPRESS_LEAK) | SUPPRESS_BIT(SUPPRESS_DEFINITE) |                               \
     SUPPRESS_BIT(SUPPRESS_INDIRECT) | SUPPRESS_BIT(SUPPRESS_POSSIBLE) |                           \
     SUPPRESS_BIT(SUPPRESS_REACHABLE))

/** A file that is being read, up to the line `line`. */
struct rule_reader {
    struct suppressions *suppressions;
    const char *file;
    struct ttd_string text;
    /** Offset of the next line in `text`. */
    size_t next_line;
    size_t line;
    struct suppress_error *error;
    struct demangler demangler;
};

/** Sets the reader's error. Returns TTD_ERROR_ARGUMENT. */
__attribute__((format(printf, 3, 4))) enum ttd_status
suppress_fail(struct rule_reader *reader, size_t line, const char *format, ...);

/** Removes blanks at both ends. */
struct ttd_string suppress_trim(struct ttd_string text);

/** Reads the next line that is neither empty nor a comment; false at the end. */
bool suppress_next_line(struct rule_reader *reader, struct ttd_string *line);

bool suppress_equals(struct ttd_string text, const char *word);

/** Removes a word from the beginning of `text`; false if it does not begin with it. */
bool suppress_take_word(struct ttd_string *text, const char *word);

/** Adds a rule without lines. @return TTD_OK, TTD_ERROR_ARGUMENT (too many), TTD_ERROR_NO_MEMORY.
 */
enum ttd_status suppress_add_rule(struct rule_reader *reader, struct ttd_string name,
                                  struct suppression **rule);

/** Adds a line to the newest rule, and copies its pattern. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status suppress_add_line(struct rule_reader *reader, struct suppression *rule,
                                  struct suppression_line line);

/** Reads a rule of valgrind, whose '{' was read. @return TTD_OK, TTD_ERROR_ARGUMENT,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status suppress_read_block(struct rule_reader *reader);

#endif
