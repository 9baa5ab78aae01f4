/* SPDX-License-Identifier: MIT */
#include "symbolize/dwarf/scopes.h"

#include <dwarf.h>
#include <stdlib.h>

#include "symbolize/grow.h"

enum { DEPTH_MAX = 256 };

struct search {
    struct scopes *scopes;
    const struct image *image;
    const uint64_t *addresses;
    size_t count;
    uint32_t *innermost;
    /* Types, and functions without addresses, are searched, too: functions are rarely there. */
    bool searches_everywhere;
};

static void scopes_visit(struct search *search, Dwarf_Die *die, uint32_t parent, unsigned depth);

static uint32_t add_scope(struct scopes *scopes, const Dwarf_Die *die, uint32_t parent,
                          bool is_inlined)
{
    scopes->scopes =
        grow_by_one(scopes->scopes, &scopes->capacity, scopes->count, sizeof *scopes->scopes);
    scopes->scopes[scopes->count] = (struct scope){parent, is_inlined, *die};
    return (uint32_t)scopes->count++;
}

/*
 * Adds a scope for the DIE, and moves to it the addresses in its ranges that its parent has.
 * Returns the scope's index, or SCOPE_NONE, and adds nothing, if there are no such addresses.
 */
static uint32_t claim(struct search *search, Dwarf_Die *die, uint32_t parent, bool is_inlined)
{
    uint32_t scope = SCOPE_NONE;
    Dwarf_Addr base;
    Dwarf_Addr begin;
    Dwarf_Addr end;
    for (ptrdiff_t range = 0; (range = dwarf_ranges(die, range, &base, &begin, &end)) > 0;) {
        size_t i = addresses_from(search->addresses, search->count, begin);
        if (i == search->count || search->addresses[i] >= end ||
            image_ranges_end(&search->image->code, begin) == 0)
            continue;
        for (; i < search->count && search->addresses[i] < end; i++) {
            if (search->innermost[i] != parent)
                continue;
            if (scope == SCOPE_NONE)
                scope = add_scope(search->scopes, die, parent, is_inlined);
            search->innermost[i] = scope;
        }
    }
    return scope;
}

/* Whether a block may hold any of the addresses. A block without ranges may. */
static bool may_hold(const struct search *search, Dwarf_Die *die)
{
    Dwarf_Addr base;
    Dwarf_Addr begin;
    Dwarf_Addr end;
    ptrdiff_t range = dwarf_ranges(die, 0, &base, &begin, &end);
    if (range <= 0 || search->searches_everywhere)
        return true;
    for (; range > 0; range = dwarf_ranges(die, range, &base, &begin, &end)) {
        size_t i = addresses_from(search->addresses, search->count, begin);
        if (i < search->count && search->addresses[i] < end)
            return true;
    }
    return false;
}

static void visit_child(struct search *search, Dwarf_Die *child, uint32_t parent, unsigned depth)
{
    switch (dwarf_tag(child)) {
    case DW_TAG_subprogram: {
        uint32_t scope = claim(search, child, SCOPE_NONE, false);
        if (scope != SCOPE_NONE || search->searches_everywhere)
            scopes_visit(search, child, scope, depth);
        break;
    }
    case DW_TAG_inlined_subroutine: {
        uint32_t scope = claim(search, child, parent, true);
        if (scope != SCOPE_NONE)
            scopes_visit(search, child, scope, depth);
        break;
    }
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        if (may_hold(search, child))
            scopes_visit(search, child, parent, depth);
        break;
    case DW_TAG_namespace:
    case DW_TAG_module:
        scopes_visit(search, child, parent, depth);
        break;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        if (search->searches_everywhere)
            scopes_visit(search, child, parent, depth);
        break;
    default:
        break;
    }
}

static void scopes_visit(struct search *search, Dwarf_Die *die, uint32_t parent, unsigned depth)
{
    Dwarf_Die child;
    if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
        return;
    do {
        visit_child(search, &child, parent, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

void scopes_find(struct scopes *scopes, const struct image *image, Dwarf_Die *unit,
                 const uint64_t *addresses, size_t count, uint32_t *innermost)
{
    *scopes = (struct scopes){0};
    struct search search = {scopes, image, addresses, count, innermost, false};
    for (size_t i = 0; i < count; i++)
        innermost[i] = SCOPE_NONE;
    scopes_visit(&search, unit, SCOPE_NONE, 0);
    for (size_t i = 0; i < count && !search.searches_everywhere; i++)
        search.searches_everywhere = innermost[i] == SCOPE_NONE;
    if (search.searches_everywhere)
        scopes_visit(&search, unit, SCOPE_NONE, 0);
}

void scopes_free(struct scopes *scopes)
{
    free(scopes->scopes);
    *scopes = (struct scopes){0};
}
