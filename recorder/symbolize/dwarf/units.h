/* SPDX-License-Identifier: MIT */
/** Compilation units of a module: the address ranges of each, its functions, files and lines, and
 * the names that symbol tables lack. */
#ifndef RECORDER_SYMBOLIZE_DWARF_UNITS_H
#define RECORDER_SYMBOLIZE_DWARF_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image/elf_image.h"

struct units {
    /** The DIE of each unit, by the `index` of its spans; with split DWARF the skeleton's. */
    Dwarf_Die *dies;
    size_t count;
    struct span *spans;
    size_t span_count;
};

/** Loads the units. Returns false if the module has no debug information. */
bool units_load(struct units *units, const struct image *image);
void units_free(struct units *units);

/** Returns the DIE that holds the scopes: with split DWARF the .dwo file's, if found. */
Dwarf_Die units_content(const struct units *units, uint32_t unit);

/* Functions of a compilation unit and the calls inlined in them, as a tree of scopes. */

#define SCOPE_NONE UINT32_MAX

struct scope {
    /** Index of the scope that this one is inlined in; SCOPE_NONE if it is not inlined. */
    uint32_t parent;
    bool is_inlined;
    Dwarf_Die die;
};

struct scopes {
    struct scope *scopes;
    size_t count;
    size_t capacity;
};

/**
 * Finds the innermost function, inlined or not, of each address, or SCOPE_NONE. Walks the unit's
 * tree once for all addresses.
 *
 * @param unit       root of the search; see units_content().
 * @param addresses  ascending.
 * @param innermost  one for each address: an index of scopes->scopes.
 */
void scopes_find(struct scopes *scopes, const struct image *image, Dwarf_Die *unit,
                 const uint64_t *addresses, size_t count, uint32_t *innermost);
void scopes_free(struct scopes *scopes);

/* Files and lines of a compilation unit. */

/** A table of source files. `names` caches absolute names; NULL until first used. */
struct files {
    Dwarf_Files *files;
    char **names;
    size_t count;
};

struct lines {
    Dwarf_Die *unit;
    const char *directory;
    /** The line table refers to these files ... */
    struct files line_files;
    /** ... and calls of inlined functions to these; with split DWARF they differ. */
    struct files call_files;
};

/** A file (NULL if unknown, valid until lines_free()) and a line (0 if unknown). */
struct source_location {
    const char *file;
    uint32_t line;
};

/** Borrows both DIEs; they differ with split DWARF only: see units_content(). */
void lines_load(struct lines *lines, Dwarf_Die *unit, Dwarf_Die *content);
void lines_free(struct lines *lines);

/** Returns the source location of an address. */
struct source_location lines_at(struct lines *lines, uint64_t address);

/** Returns the source location of the call of an inlined function. */
struct source_location lines_of_call(struct lines *lines, Dwarf_Die *inlined);

/*
 * Qualified names of C++ functions without a linkage name: gcc omits it for functions local to a
 * file, such as functions of anonymous namespaces, and for lambdas. And the scopes that enclose a
 * DIE: DWARF has no references from a DIE to its parent.
 */

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
