/* SPDX-License-Identifier: MIT */
/** Functions or variables of a module's symbol table. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_ELF_SYMBOLS_H
#define RECORDER_SYMBOLIZE_IMAGE_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image/elf_image.h"

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
