/* SPDX-License-Identifier: MIT */
/** Compilation units of a module, and which of them hold which addresses. */
#ifndef TTD_SYMBOLIZE_UNITS_H
#define TTD_SYMBOLIZE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"

struct units {
    /** A unit's own DIE; with split DWARF that of the skeleton. Index: item of a span. */
    Dwarf_Die *dies;
    size_t count;
    struct span *spans;
    size_t span_count;
};

/** @return false if the module has no debug information. */
bool units_load(struct units *units, const struct image *image);
void units_free(struct units *units);

/** The DIE that holds the scopes: with split DWARF that of the other file, if it is there. */
Dwarf_Die units_content(const struct units *units, uint32_t unit);

#endif
