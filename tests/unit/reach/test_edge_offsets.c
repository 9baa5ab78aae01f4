/* SPDX-License-Identifier: MIT */
/* Offsets of edges in their sources and targets. */
#include <criterion/criterion.h>

#include "reach/nodes.h"

/* Some offsets are larger than four bytes hold, or as large as that. */
static uint64_t source_of(uint64_t edge)
{
    return edge % 7 ? edge * 8 : UINT32_MAX - 1 + edge % 3 + edge / 100 * UINT32_MAX;
}

static uint32_t target_of(uint64_t edge)
{
    return edge % 5 ? 0 : (uint32_t)edge;
}

Test(edge_offsets, are_kept_whatever_their_size)
{
    struct edge_offsets offsets = {.expected = 1000};
    for (uint64_t edge = 0; edge < 200000; edge++)
        cr_assert_eq(edge_offsets_add(&offsets, edge, source_of(edge), target_of(edge)), TTD_OK);
    for (uint64_t edge = 0; edge < 200000; edge++) {
        cr_assert_eq(edge_offset_in_source(&offsets, edge), source_of(edge));
        cr_assert_eq(edge_offset_in_target(&offsets, edge), target_of(edge));
    }
    edge_offsets_free(&offsets);
}

Test(edge_offsets, in_sources_are_left_out)
{
    struct edge_offsets offsets = {.is_without_sources = true};
    for (uint64_t edge = 0; edge < 1000; edge++)
        cr_assert_eq(edge_offsets_add(&offsets, edge, source_of(edge), target_of(edge)), TTD_OK);
    cr_assert_null(offsets.in_source.offsets);
    for (uint64_t edge = 0; edge < 1000; edge++)
        cr_assert_eq(edge_offset_in_target(&offsets, edge), target_of(edge));
    edge_offsets_free(&offsets);
}
