/* SPDX-License-Identifier: MIT */
/**
 * Qualified names of C++ functions without a linkage name: gcc omits it for functions local to a
 * file, such as those of anonymous namespaces, and for lambdas.
 */
#ifndef RECORDER_SYMBOLIZE_DWARF_QUALIFIED_H
#define RECORDER_SYMBOLIZE_DWARF_QUALIFIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "symbolize/dwarf/enclosing.h"

/** Names written so far, sorted by DIE, and the scopes of a unit. All zero when empty. */
struct qualified {
    struct enclosing scopes;
    struct qualified_name *names;
    size_t name_count;
    size_t name_capacity;
};

void qualified_free(struct qualified *qualified);

/** Whether a DWARF language code is one of C++. */
bool qualified_is_for(int language);

/**
 * Returns the name of a function or an inlined call with its enclosing namespaces, classes and
 * functions and its parameters' types, much as a demangler writes it: "a::(anonymous
 * namespace)::f(int)". Returns NULL if it has no name. Valid until qualified_free().
 */
const char *qualified_name(struct qualified *qualified, Dwarf_Die *function);

#endif
