/* SPDX-License-Identifier: MIT */
/**
 * Canonical names of functions: one form for a name, however a compiler or a demangler writes it.
 * It has no return type, parameters, qualifiers, ABI tags or suffix of a compiler's copy, and one
 * spelling of the template arguments that have several. "int *a::f<char const*>(int) [clone
 * .part.0]" and "a::f<const char *>" are both "a::f<char*>". Lambdas are "{lambda}".
 */
#ifndef ANALYZER_SYMBOLS_CANONICAL_H
#define ANALYZER_SYMBOLS_CANONICAL_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/** Size of the buffer for the canonical form of a name of `size` bytes. */
#define CANONICAL_ROOM(size) (2 * (size) + 16)

/** Writes the canonical form of a demangled name; returns its length. */
size_t canonical_name(struct ttd_string name, char *text);

/** Writes a canonical name without template arguments, up to "operator"; returns its length. */
size_t canonical_bare(struct ttd_string canonical, char *text);

/** Returns the last part of a canonical name, after the last "::", without template arguments. */
struct ttd_string canonical_last(struct ttd_string canonical);

/** Returns the part of `name` before the suffix for the copy of a function that a compiler
 * made. */
struct ttd_string canonical_without_clone(struct ttd_string name);

#endif
