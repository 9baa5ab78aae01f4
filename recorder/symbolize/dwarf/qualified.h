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

/** Whether DIEs with this tag enclose others. */
bool enclosing_is_scope(int tag);

/** Returns the entry of a DIE, or NULL if it is none of its unit's scopes. */
const struct scope_die *enclosing_find(struct enclosing *enclosing, Dwarf_Die *die);
void enclosing_free(struct enclosing *enclosing);

/** Follows a reference to another DIE. Returns false if there is no such attribute. */
bool die_follow(Dwarf_Die *die, unsigned name, Dwarf_Die *target);

/** Returns the DIE of the declaration of a function, itself if it has no other. */
Dwarf_Die die_declaration(Dwarf_Die die);

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
