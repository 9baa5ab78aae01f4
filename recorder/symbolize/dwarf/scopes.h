/* SPDX-License-Identifier: MIT */
/** Functions of a compilation unit and the calls inlined in them, as a tree of scopes. */
#ifndef RECORDER_SYMBOLIZE_DWARF_SCOPES_H
#define RECORDER_SYMBOLIZE_DWARF_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image/image.h"

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

#endif
