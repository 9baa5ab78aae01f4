/* SPDX-License-Identifier: MIT */
/** Files and lines of a compilation unit. */
#ifndef RECORDER_SYMBOLIZE_DWARF_LINES_H
#define RECORDER_SYMBOLIZE_DWARF_LINES_H

#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

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

/** Borrows both DIEs, which differ with split DWARF only: see units_content(). */
void lines_load(struct lines *lines, Dwarf_Die *unit, Dwarf_Die *content);
void lines_free(struct lines *lines);

/** Returns the source location of an address. */
struct source_location lines_at(struct lines *lines, uint64_t address);

/** Returns the source location of the call of an inlined function. */
struct source_location lines_of_call(struct lines *lines, Dwarf_Die *inlined);

#endif
