/* SPDX-License-Identifier: MIT */
/** Compilation units of a module and the address ranges of each. */
#ifndef RECORDER_SYMBOLIZE_DWARF_UNITS_H
#define RECORDER_SYMBOLIZE_DWARF_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image/image.h"

struct units {
    /** The DIE of each unit, by the `index` of its spans; with split DWARF that of the skeleton. */
    Dwarf_Die *dies;
    size_t count;
    struct span *spans;
    size_t span_count;
};

/** Loads the units. Returns false if the module has no debug information. */
bool units_load(struct units *units, const struct image *image);
void units_free(struct units *units);

/** Returns the DIE that holds the scopes: with split DWARF that of the .dwo file, if found. */
Dwarf_Die units_content(const struct units *units, uint32_t unit);

#endif
