/* SPDX-License-Identifier: MIT */
/* Snapshots and their parts as text. */
#include <inttypes.h>

#include "support/records/record_text.h"

static void snapshot(struct text *to, const struct ttd_snapshot *of)
{
    text_append(to, "snapshot number=%x at=%" PRIx64 ":%" PRIx64, of->number, of->position.sequence,
                of->position.steps);
    text_append(to, " wall=%" PRIx64 " held=%" PRIx64 " contents=%x reason=%x flags=%x",
                of->wall_time, of->duration, of->contents, of->reason, of->flags);
    text_append(to, " missing=%" PRIx64 " thread=%x regions=%" PRIx64 " references=%" PRIx64 "\n",
                of->missing, of->thread, of->regions, of->references);
}

static void regions(struct text *to, const struct ttd_regions *of)
{
    text_append(to, "regions snapshot=%x first=%x\n", of->snapshot, of->first);
    for (size_t i = 0; i < of->count; i++) {
        const struct ttd_region *region = &of->regions[i];
        text_append(to, "region kind=%x begin=%" PRIx64 " size=%" PRIx64, (unsigned)region->kind,
                    region->begin, region->size);
        text_append(to, " thread=%x module=%x name=%x\n", region->thread, region->module,
                    region->name);
    }
}

static void references(struct text *to, const struct ttd_references *of)
{
    text_append(to, "references snapshot=%x\n", of->snapshot);
    for (size_t i = 0; i < of->count; i++)
        text_append(to, "reference region=%x offset=%" PRIx64 " value=%" PRIx64 "\n",
                    of->references[i].region, of->references[i].offset, of->references[i].value);
}

static void variable(struct text *to, const struct ttd_variable *of)
{
    text_append(to, "variable module=%x offset=%" PRIx64 " size=%" PRIx64 " name=%x\n", of->module,
                of->offset, of->size, of->name);
}

static void frames(struct text *to, const struct ttd_frames *of)
{
    text_append(to, "frames snapshot=%x thread=%x stack=%x", of->snapshot, of->thread, of->stack);
    for (size_t i = 0; i < of->count; i++)
        text_append(to, " %" PRIx64, of->addresses[i]);
    text_append(to, "\n");
}

static void classes(struct text *to, const struct ttd_classes *of)
{
    text_append(to, "classes snapshot=%x\n", of->snapshot);
    for (size_t i = 0; i < of->count; i++)
        text_append(to, "class address=%" PRIx64 " name=%x\n", of->classes[i].address,
                    of->classes[i].name);
}

static void block_headers(struct text *to, const struct ttd_block_headers *of)
{
    text_append(to, "headers snapshot=%x flags=%x begin=%" PRIx64 "\n", of->snapshot, of->flags,
                of->begin);
    for (size_t i = 0; i < of->count; i++)
        text_append(to, "header %" PRIx64 "\n", of->headers[i]);
}

static void fatal_signal(struct text *to, const struct ttd_fatal_signal *of)
{
    text_append(to, "signal at=%" PRIx64 ":%" PRIx64 " wall=%" PRIx64, of->position.sequence,
                of->position.steps, of->wall_time);
    text_append(to, " thread=%x stack=%x signal=%x code=%" PRId64, of->thread, of->stack,
                of->signal, of->code);
    text_append(to, " address=%" PRIx64 " snapshot=%x", of->address, of->snapshot);
    for (size_t i = 0; i < of->count; i++)
        text_append(to, " %x:%" PRIx64, of->registers[i].number, of->registers[i].value);
    text_append(to, "\n");
}

void text_of_snapshots(struct text *to, const struct ttd_batch *batch)
{
    if (batch->kind == TTD_KIND_REGIONS)
        regions(to, batch->u.regions);
    else if (batch->kind == TTD_KIND_REFERENCES)
        references(to, batch->u.references);
    else if (batch->kind == TTD_KIND_CLASSES)
        classes(to, batch->u.classes);
    else if (batch->kind == TTD_KIND_BLOCK_HEADERS)
        block_headers(to, batch->u.block_headers);
    else
        for (size_t i = 0; i < batch->count; i++)
            if (batch->kind == TTD_KIND_SNAPSHOTS)
                snapshot(to, &batch->u.snapshots[i]);
            else if (batch->kind == TTD_KIND_VARIABLES)
                variable(to, &batch->u.variables[i]);
            else if (batch->kind == TTD_KIND_FRAMES)
                frames(to, &batch->u.frames[i]);
            else
                fatal_signal(to, &batch->u.fatal_signals[i]);
}
