/* SPDX-License-Identifier: MIT */
/** Mangled names of C++ and Rust as people write them. */
#ifndef ANALYZER_SYMBOLS_DEMANGLE_H
#define ANALYZER_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/** Longest text that demangling gives; what would be longer stays mangled. */
#define DEMANGLE_MAX 4096

/**
 * Demangles a NUL-terminated name, which may be any bytes.
 *
 * @param text  set to the result, NUL-terminated
 * @return its length, or 0 when the name is not mangled or too much for us.
 */
size_t demangle(const char *name, char text[DEMANGLE_MAX + 1]);

#endif
