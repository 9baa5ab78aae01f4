/* SPDX-License-Identifier: MIT */
/** Demangling of names of C++ and Rust. */
#ifndef ANALYZER_SYMBOLS_DEMANGLE_H
#define ANALYZER_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/** Length limit of a demangled name; names that would be longer stay mangled. */
#define DEMANGLE_MAX 4096

/**
 * Demangles a NUL-terminated name, which may contain any bytes.
 *
 * @param text  set to the result, NUL-terminated
 * @return the length of the result; 0 if the name is not mangled, or beyond the limits
 */
size_t demangle(const char *name, char text[DEMANGLE_MAX + 1]);

#endif
