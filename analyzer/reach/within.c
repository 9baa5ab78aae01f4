/* SPDX-License-Identifier: MIT */
#include "reach/within.h"

#include "base/grow.h"

enum ttd_status reach_within_apply(struct reach_builder *builder)
{
    const struct heap_nodes *nodes = &builder->reach->nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; nodes->outer && node < nodes->count && status == TTD_OK; node++) {
        struct reach_late_edge edge = {
            .source = node, .target = nodes->outer[node], .offset = REACH_LIES_WITHIN};
        if (edge.target == HEAP_NO_NODE)
            continue;
        status = grow_array((void **)&builder->late, &builder->late_capacity,
                            builder->late_count + 1, sizeof *builder->late);
        if (status == TTD_OK)
            builder->late[builder->late_count++] = edge;
    }
    return status;
}
