/* SPDX-License-Identifier: MIT */
/* Snapshots and their parts: ids, and their order (spec, "Snapshots"). */
#include "read/check.h"

/** Returns `wrong`, but NULL where definitions may be missing: the order is then unknown, too. */
static const char *unless_unknown(const struct ttd_id_check *ids, const char *wrong)
{
    return ids->unknown ? NULL : wrong;
}

static const char *check_snapshots(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
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
        if (!wrong)
            wrong = redefines ? order : unless_unknown(ids, order);
        if (!wrong && !ttd_id_check_knows(ids, snapshot->thread, ids->threads))
            wrong = "undefined thread of a snapshot";
    }
    return wrong;
}

static const char *check_regions(struct ttd_id_check *ids, const struct ttd_regions *list)
{
    const char *wrong = ttd_snapshot_order_regions(&ids->snapshots, list, &ids->redefines);
    wrong = ids->redefines ? wrong : unless_unknown(ids, wrong);
    for (size_t i = 0; i < list->count && !wrong; i++) {
        const struct ttd_region *region = &list->regions[i];
        if (!ttd_id_check_knows(ids, region->thread, ids->threads) ||
            !ttd_id_check_knows(ids, region->module, ids->modules) ||
            !ttd_id_check_knows(ids, region->name, ids->strings))
            wrong = "undefined identifier of a region";
    }
    return wrong;
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

static const char *check_frames(struct ttd_id_check *ids, const struct ttd_batch *batch)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_frames *frames = &batch->u.frames[i];
        const char *order =
            unless_unknown(ids, ttd_snapshot_order_part(&ids->snapshots, frames->snapshot));
        if (!wrong)
            wrong = order;
        if (!wrong && (!ttd_id_check_knows(ids, frames->thread, ids->threads) ||
                       !ttd_id_check_knows(ids, frames->stack, ids->stacks)))
            wrong = "undefined identifier of frames";
    }
    return wrong;
}

static const char *check_classes(struct ttd_id_check *ids, const struct ttd_classes *list)
{
    const char *wrong =
        unless_unknown(ids, ttd_snapshot_order_part(&ids->snapshots, list->snapshot));
    for (size_t i = 0; i < list->count && !wrong; i++)
        if (!ttd_id_check_knows(ids, list->classes[i].name, ids->strings))
            wrong = "undefined name of a class";
    return wrong;
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
        return check_regions(ids, batch->u.regions);
    case TTD_KIND_REFERENCES:
        return unless_unknown(ids,
                              ttd_snapshot_order_references(&ids->snapshots, batch->u.references));
    case TTD_KIND_VARIABLES:
        return check_variables(ids, batch);
    case TTD_KIND_FRAMES:
        return check_frames(ids, batch);
    case TTD_KIND_CLASSES:
        return check_classes(ids, batch->u.classes);
    case TTD_KIND_FATAL_SIGNALS:
        return check_signals(ids, batch);
    default:
        return NULL;
    }
}
