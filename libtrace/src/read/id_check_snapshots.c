/* SPDX-License-Identifier: MIT */
/* Snapshots and their parts: ids, and their order (spec, "Snapshots"). */
#include "read/check.h"

/** Returns `violation`, but NULL where definitions may be missing: the order is then unknown, too.
 */
static const char *unless_unknown(const struct ttd_id_check *ids, const char *violation)
{
    return ids->unknown ? NULL : violation;
}

static const char *check_snapshots(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_snapshot *snapshot = &batch->u.snapshots[i];
        bool redefines;
        const char *order =
            ttd_snapshot_order_finish(&ids->snapshots, snapshot->number, &redefines);
        /* Known even where definitions may be missing: a number that was there is there. */
        ids->redefines |= redefines;
        if (!order && (snapshot->regions != ids->snapshots.regions ||
                       snapshot->references != ids->snapshots.references))
            order = "number of parts of a snapshot";
        if (!violation)
            violation = redefines ? order : unless_unknown(ids, order);
        if (!violation && !ttd_id_check_knows(ids, snapshot->thread, ids->threads))
            violation = "undefined thread of a snapshot";
    }
    return violation;
}

static const char *ids_check_regions(struct ttd_id_check *ids, const struct ttd_regions *list)
{
    const char *violation = ttd_snapshot_order_regions(&ids->snapshots, list, &ids->redefines);
    violation = ids->redefines ? violation : unless_unknown(ids, violation);
    for (size_t i = 0; i < list->count && !violation; i++) {
        const struct ttd_region *region = &list->regions[i];
        if (!ttd_id_check_knows(ids, region->thread, ids->threads) ||
            !ttd_id_check_knows(ids, region->module, ids->modules) ||
            !ttd_id_check_knows(ids, region->name, ids->strings))
            violation = "undefined identifier of a region";
    }
    return violation;
}

static const char *ids_check_references(struct ttd_id_check *ids, const struct ttd_references *list)
{
    struct ttd_reference_range range = {list->snapshot, list->references,
                                        &list->references[list->count - 1], list->count};
    return unless_unknown(ids, ttd_snapshot_order_references(&ids->snapshots, &range));
}

static const char *check_variables(const struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_variable *variable = &batch->u.variables[i];
        if (!ttd_id_check_knows(ids, variable->module, ids->modules) ||
            !ttd_id_check_knows(ids, variable->name, ids->strings))
            return "undefined identifier of a variable";
    }
    return NULL;
}

static const char *ids_check_frames(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *violation = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_frames *frames = &batch->u.frames[i];
        const char *order =
            unless_unknown(ids, ttd_snapshot_order_part(&ids->snapshots, frames->snapshot));
        if (!violation)
            violation = order;
        if (!violation && (!ttd_id_check_knows(ids, frames->thread, ids->threads) ||
                           !ttd_id_check_knows(ids, frames->stack, ids->stacks)))
            violation = "undefined identifier of frames";
    }
    return violation;
}

static const char *ids_check_classes(struct ttd_id_check *ids, const struct ttd_classes *list)
{
    const char *violation =
        unless_unknown(ids, ttd_snapshot_order_part(&ids->snapshots, list->snapshot));
    for (size_t i = 0; i < list->count && !violation; i++)
        if (!ttd_id_check_knows(ids, list->classes[i].name, ids->strings))
            violation = "undefined name of a class";
    return violation;
}

static const char *check_signals(const struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_fatal_signal *signal = &batch->u.fatal_signals[i];
        if (!ttd_id_check_knows(ids, signal->thread, ids->threads) ||
            !ttd_id_check_knows(ids, signal->stack, ids->stacks))
            return "undefined identifier of a fatal signal";
    }
    return NULL;
}

const char *ttd_id_check_snapshots(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    switch (batch->kind) {
    case TTD_KIND_SNAPSHOTS:
        return check_snapshots(ids, batch);
    case TTD_KIND_REGIONS:
        return ids_check_regions(ids, batch->u.regions);
    case TTD_KIND_REFERENCES:
        return ids_check_references(ids, batch->u.references);
    case TTD_KIND_VARIABLES:
        return check_variables(ids, batch);
    case TTD_KIND_FRAMES:
        return ids_check_frames(ids, batch);
    case TTD_KIND_CLASSES:
        return ids_check_classes(ids, batch->u.classes);
    case TTD_KIND_BLOCK_HEADERS:
        return unless_unknown(
            ids, ttd_snapshot_order_part(&ids->snapshots, batch->u.block_headers->snapshot));
    case TTD_KIND_FATAL_SIGNALS:
        return check_signals(ids, batch);
    default:
        return NULL;
    }
}
