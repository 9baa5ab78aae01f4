/* SPDX-License-Identifier: MIT */
/** Demangling without limits on stack and time, for a process that may be killed. */
#ifndef ANALYZER_SYMBOLS_DEMANGLE_LONG_H
#define ANALYZER_SYMBOLS_DEMANGLE_LONG_H

#include <stddef.h>

/** Stack that a name may need, for each of its bytes. */
#define DEMANGLE_STACK_RATIO 2048

/**
 * Demangles a NUL-terminated name. If the text is longer than `limit`, or the demangler gives up on
 * it, inner template arguments are left out, as few levels as necessary.
 *
 * @param text  set to the result; not NUL-terminated
 * @return its length; 0 if the name is not mangled
 */
size_t demangle_long(const char *name, char *text, size_t limit);

/** Demangles a NUL-terminated name by `options` of libiberty beside the usual ones; 0 if it is not
 * mangled, `limit` + 1 if the text would be longer. Sets `text` as demangle_long() does. */
size_t demangle_plain(const char *name, int options, char *text, size_t limit);

#endif
