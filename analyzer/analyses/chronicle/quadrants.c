/* SPDX-License-Identifier: MIT */
#include "analyses/chronicle/quadrants.h"

/* Whether a block was there at the beginning of a range or later, and before its end. */
static bool quadrants_is_there(struct chronicle_life life, struct chronicle_range range)
{
    return life.begin < range.to && (life.begin >= range.from || life.end >= range.from);
}

static enum heap_quadrant quadrant_of(struct chronicle_life life, struct chronicle_range range)
{
    bool is_freed = life.end < range.to;
    if (life.begin >= range.from)
        return is_freed ? HEAP_AIFI : HEAP_AIFO;
    return is_freed ? HEAP_AOFI : HEAP_AOFO;
}

enum ttd_status chronicle_quadrants_find(const struct chronicle *chronicle,
                                         struct chronicle_range range,
                                         struct chronicle_filter filter,
                                         struct chronicle_quadrants *quadrants)
{
    enum ttd_status status = TTD_OK;
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        heap_series_init(&quadrants->series[i]);
    for (size_t i = 0; i < chronicle->block_count && status == TTD_OK; i++) {
        const struct chronicle_block *block = &chronicle->blocks[i];
        struct chronicle_life life = chronicle->lives[i];
        if (quadrants_is_there(life, range) &&
            (!filter.wants || filter.wants(filter.context, block->stack)))
            status = heap_series_add(&quadrants->series[quadrant_of(life, range)], block->stack,
                                     block->size);
    }
    for (int i = 0; i < HEAP_QUADRANTS && status == TTD_OK; i++)
        status = heap_series_end_tick(&quadrants->series[i]);
    return status;
}

void chronicle_quadrants_free(struct chronicle_quadrants *quadrants)
{
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        heap_series_free(&quadrants->series[i]);
}
