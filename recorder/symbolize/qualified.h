/* SPDX-License-Identifier: MIT */
/**
 * Full names of functions that debug information gives no linkage name: gcc has none for what is
 * local to a file, as in anonymous namespaces, or a lambda.
 */
#ifndef TTD_SYMBOLIZE_QUALIFIED_H
#define TTD_SYMBOLIZE_QUALIFIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/** Names that were asked for, and what is around the DIEs of one unit. All zero when empty. */
struct qualified {
    /** The unit, by the place of its DIE. */
    const void *unit;
    struct enclosed *dies;
    size_t die_count;
    size_t die_capacity;
    struct qualified_name *names;
    size_t name_count;
    size_t name_capacity;
};

void qualified_free(struct qualified *qualified);

/** Whether a language has names that are made of parts: C++. */
bool qualified_is_for(int language);

/**
 * The name of a function or an inlined call with the namespaces, classes and functions around it,
 * and with its parameters' types, about as a demangler would write it: "a::(anonymous
 * namespace)::f(int)". NULL if it has no name. Valid until qualified_free().
 */
const char *qualified_name(struct qualified *qualified, Dwarf_Die *function);

#endif
