/* SPDX-License-Identifier: MIT */
#include "reach/survivors.h"

#include "base/table.h"

#define BITS_MIN      4096
#define BITS_PER_NODE 16

static size_t survivors_bytes(const struct reach_survivors *survivors)
{
    return (size_t)(survivors->bit_count / 8);
}

static uint64_t last_event(const struct heap_nodes *nodes)
{
    uint64_t last = 0;
    for (uint32_t node = 0; node < nodes->count; node++) {
        uint64_t event = heap_nodes_get(nodes, node, HEAP_NODE_EVENT);
        last = event > last ? event : last;
    }
    return last;
}

enum ttd_status reach_survivors_init(struct reach_survivors *survivors, struct heap_nodes *nodes)
{
    uint64_t last = last_event(nodes);
    *survivors = (struct reach_survivors){.nodes = nodes, .bit_count = BITS_MIN};
    while (survivors->bit_count <= last &&
           survivors->bit_count < (uint64_t)nodes->count * BITS_PER_NODE)
        survivors->bit_count *= 2;
    survivors->is_exact = last < survivors->bit_count;
    survivors->bits = table_resize(NULL, 0, survivors_bytes(survivors));
    if (!survivors->bits)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t node = 0; node < nodes->count; node++) {
        uint64_t bit = heap_nodes_get(nodes, node, HEAP_NODE_EVENT) & (survivors->bit_count - 1);
        survivors->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return TTD_OK;
}

void reach_survivors_free(struct reach_survivors *survivors)
{
    if (survivors->bits)
        table_free(survivors->bits, survivors_bytes(survivors));
    *survivors = (struct reach_survivors){.bits = NULL};
}
