/* SPDX-License-Identifier: MIT */
/**
 * Names of functions in one form, however a compiler or a demangler writes them: without return
 * type, parameters, qualifiers, ABI tags and the suffix of a compiler's copy, and without what is
 * written in several ways in template arguments. "int *a::f<char const*>(int) [clone .part.0]" and
 * "a::f<const char *>" are both "a::f<char*>". Lambdas are "{lambda}".
 */
#ifndef ANALYZER_SYMBOLS_CANONICAL_H
#define ANALYZER_SYMBOLS_CANONICAL_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/** How much room `text` needs for a name of `size` bytes. */
#define CANONICAL_ROOM(size) (2 * (size) + 16)

/** Writes the canonical form of a demangled name; returns its length. */
size_t canonical_name(struct ttd_string name, char *text);

/** Writes a canonical name without template arguments, up to "operator"; returns its length. */
size_t canonical_bare(struct ttd_string canonical, char *text);

/** The last part of a canonical name, without template arguments: what follows the last "::". */
struct ttd_string canonical_last(struct ttd_string canonical);

/** A function's name without the suffix that tells which copy of it a compiler chose: a part of
 * `name`. */
struct ttd_string canonical_without_clone(struct ttd_string name);

#endif
