/* SPDX-License-Identifier: MIT */
/** Files and lines of a compilation unit. */
#ifndef TTD_SYMBOLIZE_LINES_H
#define TTD_SYMBOLIZE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

/** One table of files, and their absolute names as far as they were asked for. */
struct files {
    Dwarf_Files *files;
    char **names;
    size_t count;
};

struct lines {
    Dwarf_Die *unit;
    const char *directory;
    /** What the line table refers to, and what calls of inlined functions refer to. */
    struct files line_files;
    struct files call_files;
};

/** A file (NULL if unknown, valid until lines_free()) and a line (0 if unknown). */
struct place {
    const char *file;
    uint32_t line;
};

/** Both DIEs stay borrowed; they differ with split DWARF only. See units_content(). */
void lines_load(struct lines *lines, Dwarf_Die *unit, Dwarf_Die *content);
void lines_free(struct lines *lines);

/** Where an address comes from. */
struct place lines_at(struct lines *lines, uint64_t address);

/** Where an inlined function was called. */
struct place lines_of_call(struct lines *lines, Dwarf_Die *inlined);

#endif
