/* SPDX-License-Identifier: MIT */
#include "reach/find_classes.h"

#include "reach/reach.h"

static enum ttd_status number_blocks(const struct heap_reach *reach,
                                     struct heap_block_classes *classes)
{
    enum ttd_status status = TTD_OK;
    map_init(&classes->numbers);
    for (uint32_t node = 0; reach->node_classes && node < reach->nodes.count && status == TTD_OK;
         node++) {
        if (reach->node_classes[node])
            status = map_set(&classes->numbers, heap_nodes_address(&reach->nodes, node),
                             heap_nodes_get(&reach->nodes, node, HEAP_NODE_EVENT),
                             reach->node_classes[node]);
    }
    return status;
}

enum ttd_status heap_find_classes(const struct heap_trace *trace, struct ttd_position position,
                                  struct heap_block_classes *classes, struct ttd_error *error)
{
    struct heap_reach_options options = {.at = position, .finds_classes_only = true};
    struct heap_reach reach;
    enum ttd_status status = heap_reach_find(trace, &options, &reach, error);
    if (status != TTD_OK)
        return status;
    *classes = (struct heap_block_classes){.snapshot = reach.snapshot,
                                           .misplaced = reach.misplaced,
                                           .classes = reach.classes,
                                           .count = reach.class_count};
    reach.classes = NULL;
    status = number_blocks(&reach, classes);
    heap_reach_free(&reach);
    if (status != TTD_OK)
        heap_block_classes_free(classes);
    return status;
}
