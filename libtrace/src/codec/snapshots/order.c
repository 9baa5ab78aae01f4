/* SPDX-License-Identifier: MIT */
#include "codec/snapshots/order.h"

const char *ttd_snapshot_order_part(struct ttd_snapshot_order *order, uint32_t number)
{
    if (number <= order->finished)
        return "part of a snapshot behind its end";
    if (number < order->number)
        return "order of snapshots";
    /* A new number begins the next snapshot, even if the one before has no end: it was cut short.
     */
    if (number > order->number)
        *order = (struct ttd_snapshot_order){.finished = order->finished, .number = number};
    return NULL;
}

const char *ttd_snapshot_order_regions(struct ttd_snapshot_order *order,
                                       const struct ttd_regions *regions, bool *redefines)
{
    const char *violation = ttd_snapshot_order_part(order, regions->snapshot);
    *redefines = violation || regions->first <= order->regions;
    if (violation)
        return violation;
    bool is_next = regions->first == order->regions + 1;
    uint32_t last = regions->first + (uint32_t)(regions->count - 1);
    /* Taken in even if it is wrong, so that one gap is reported once. */
    if (last > order->regions)
        order->regions = last;
    return is_next ? NULL : "order of regions";
}

const char *ttd_snapshot_order_references(struct ttd_snapshot_order *order,
                                          const struct ttd_reference_range *range)
{
    const char *violation = ttd_snapshot_order_part(order, range->snapshot);
    if (violation)
        return violation;
    const struct ttd_reference *first = range->first;
    const struct ttd_reference *last = range->last;
    bool goes_on = first->region > order->region ||
                   (first->region == order->region && first->offset > order->offset);
    /* Within a chunk the order was checked: the ends of chunks are left to compare. */
    order->region = last->region;
    order->offset = last->offset;
    order->references += range->count;
    if (!goes_on)
        return "order of references";
    return last->region > order->regions ? "undefined region of a reference" : NULL;
}

const char *ttd_snapshot_order_finish(struct ttd_snapshot_order *order, uint32_t number,
                                      bool *redefines)
{
    *redefines = number <= order->finished;
    if (*redefines)
        return "number of a snapshot";
    const char *violation = ttd_snapshot_order_part(order, number);
    if (!violation)
        order->finished = number;
    return violation;
}
