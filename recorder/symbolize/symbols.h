/* SPDX-License-Identifier: MIT */
/** Functions of a module's symbol table. */
#ifndef TTD_SYMBOLIZE_SYMBOLS_H
#define TTD_SYMBOLIZE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"

/** The name points into the image and has no version. */
struct symbol {
    const char *name;
    size_t name_size;
    uint64_t begin;
    /** Equal to begin if the table gives no size. */
    uint64_t end;
    /** Higher is better: how global the name is. */
    unsigned rank;
};

struct symbols {
    struct symbol *symbols;
    size_t count;
};

void symbols_load(struct symbols *symbols, struct image *image);
void symbols_free(struct symbols *symbols);

/**
 * Finds the symbol of each address, or NULL: the innermost one that holds it, of several with the
 * same start the most global; else the nearest before it, if that one has no size and is in the
 * same section.
 *
 * @param addresses  ascending.
 * @param found      one for each address.
 */
void symbols_find(const struct symbols *symbols, const struct image *image,
                  const uint64_t *addresses, size_t count, const struct symbol **found);

#endif
