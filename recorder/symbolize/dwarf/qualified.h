/* SPDX-License-Identifier: MIT */
/**
 * Qualified names of C++ functions without a linkage name: gcc omits it for functions local to a
 * file, such as functions of anonymous namespaces, and for lambdas. And the scopes that enclose a
 * DIE: DWARF has no references from a DIE to its parent.
 */
#ifndef RECORDER_SYMBOLIZE_DWARF_QUALIFIED_H
#define RECORDER_SYMBOLIZE_DWARF_QUALIFIED_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarf/units.h"
#include "symbolize/image/elf_image.h"

/** Variables of functions; symbol tables name them without their function: from debug
 * information. */

/** A variable of a function, with a name such as "run()::kept". */
struct static_variable {
    uint64_t address;
    char *name;
};

/** The variables of the units that were read, by address. All zero when empty. */
struct statics {
    struct static_variable *variables;
    size_t count;
    size_t capacity;
    /** By unit; NULL before the first one is read. */
    bool *is_read;
};

/**
 * Returns the name of a variable of a function, valid until statics_free() or the next call; NULL
 * if debug information has none. Reads the units with the symbol's source file, each once.
 */
const char *statics_name(struct statics *statics, const struct units *units,
                         const struct symbol *symbol);
void statics_free(struct statics *statics);

#define ENCLOSING_NONE UINT32_MAX

/** A namespace, type, function or block, and the index of the one around it. */
struct scope_die {
    Dwarf_Die die;
    uint32_t parent;
};

/** The scopes of the unit that was searched last, by ascending address. All zero when empty. */
struct enclosing {
    /** Address of the unit's DIE. */
    const void *unit;
    struct scope_die *dies;
    size_t count;
    size_t capacity;
};

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
