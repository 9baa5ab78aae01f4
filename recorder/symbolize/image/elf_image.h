/* SPDX-License-Identifier: MIT */
/** The ELF file of a module, or its debug file, opened only if its build-id is the module's. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_ELF_IMAGE_H
#define RECORDER_SYMBOLIZE_IMAGE_ELF_IMAGE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/child_arrays.h"
#include "symbolize/image/image_file.h"
#include "symbolize/symbolize.h"

/** Ranges of addresses: sections, whose number is the index of the span; or segments, with 0, if
 * there are no sections. Sorted. */
struct image_ranges {
    struct span *spans;
    size_t count;
    size_t capacity;
};

struct image {
    Dwfl *dwfl;
    Dwfl_Module *module;
    struct image_ranges code; /* the executable part */
    struct image_ranges data; /* all else; thread-local data is at offsets with SYMBOLIZE_TLS */
    /** The file that the symbol table is in, mostly the file with the debug information; NULL if
     * there is none. Set by symbols_load(). */
    Elf *symbols;
    struct inflated inflated; /* sections of it */
};

enum image_result { IMAGE_OPEN, IMAGE_ABSENT, IMAGE_UNREADABLE };

/**
 * Opens the module's file if its build-id equals the module's, or neither has one; or else a debug
 * file with that build-id.
 *
 * @param with_debug  also look for a separate debug file if one is needed.
 * @param image       the caller calls image_close() if IMAGE_OPEN is returned.
 */
enum image_result image_open(struct image *image, const struct symbolize_module *module,
                             bool with_debug);

void image_close(struct image *image);

/** Decompresses the sections of debug information that names need, and leaves out the others.
 * Called before debug information is read. */
void image_prepare_debug(struct image *image);

/** Returns the range that holds the address, or NULL if none does. */
const struct span *image_ranges_at(const struct image_ranges *ranges, uint64_t address);

/** Returns the end of the range that holds the address, or 0 if none does. */
uint64_t image_ranges_end(const struct image_ranges *ranges, uint64_t address);

/** Returns the name of the section of a range, or NULL. Valid until image_close(). */
const char *image_section_name(const struct image *image, const struct span *range);

/* Functions or variables of a module's symbol table. */

/** A symbol. The name points into the image and has no version suffix. */
struct symbol {
    const char *name;
    size_t name_size;
    uint64_t begin;
    /** Equal to begin if the table gives no size. */
    uint64_t end;
    /** Preference among names of one address: global over weak over local. */
    unsigned rank;
    /** Source file of a variable that may be local to a function, a string in the image; otherwise
     * NULL. */
    const char *file;
};

struct symbols {
    struct symbol *symbols;
    size_t count;
};

/** Loads the functions. */
void symbols_load(struct symbols *symbols, struct image *image);

/** Loads the variables, thread-local ones at offsets with SYMBOLIZE_TLS. */
void symbols_load_data(struct symbols *symbols, struct image *image);

void symbols_free(struct symbols *symbols);

/**
 * Finds the symbol of each address, or NULL. The innermost symbol that holds the address wins;
 * among several with the same begin, the one of the highest rank. If none holds it, it is the
 * nearest before it, provided that this has no size and is in the same section.
 *
 * @param ranges     code or data of the image, as the symbols.
 * @param addresses  ascending.
 * @param result     one for each address.
 */
void symbols_find(const struct symbols *symbols, const struct image_ranges *ranges,
                  const uint64_t *addresses, size_t count, const struct symbol **result);

#endif
