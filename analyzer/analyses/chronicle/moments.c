/* SPDX-License-Identifier: MIT */
/* Finding moments, and what happens between two of them. */
#include "analyses/chronicle/chronicle.h"

uint32_t chronicle_find(const struct chronicle *chronicle, struct ttd_position position)
{
    size_t low = 0, high = chronicle->effect_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ttd_position_compare(chronicle->effects[middle].position, position) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* The last moment at a position that some effects of which are among the first `count`. */
static uint32_t whole(const struct chronicle *chronicle, size_t count)
{
    return count ? chronicle_find(chronicle, chronicle->effects[count - 1].position) : 0;
}

uint32_t chronicle_find_event(const struct chronicle *chronicle, uint64_t event)
{
    /* Events are in the order of their effects, but for the second ones of reallocations. */
    size_t low = 0, high = chronicle->effect_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chronicle->effects[middle].event <= event)
            low = middle + 1;
        else
            high = middle;
    }
    return whole(chronicle, low);
}

uint32_t chronicle_find_time(const struct chronicle *chronicle, uint64_t time)
{
    size_t low = 0, high = chronicle->time_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chronicle->times[middle].time <= time)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_last = low == chronicle->time_count;
    return whole(chronicle, is_last ? chronicle->effect_count : chronicle->times[low].effect);
}

uint64_t chronicle_wall_time(const struct chronicle *chronicle, uint32_t moment)
{
    size_t low = 0, high = chronicle->time_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chronicle->times[middle].effect < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? chronicle->times[low - 1].time : 0;
}

struct ttd_position chronicle_position(const struct chronicle *chronicle, uint32_t moment)
{
    return moment ? chronicle->effects[moment - 1].position : ttd_position_min();
}

uint32_t chronicle_before(const struct chronicle *chronicle, uint32_t moment)
{
    struct ttd_position position = chronicle_position(chronicle, moment);
    while (moment && ttd_position_compare(chronicle->effects[moment - 1].position, position) == 0)
        moment--;
    return moment;
}

uint32_t chronicle_after(const struct chronicle *chronicle, uint32_t moment)
{
    return moment < chronicle->effect_count ? whole(chronicle, (size_t)moment + 1) : moment;
}

void chronicle_each(const struct chronicle *chronicle, uint32_t from, uint32_t to,
                    chronicle_visit visit, void *context)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t subject = chronicle->effects[i].subject;
        if (chronicle->kinds[i] != CHRONICLE_DESTROYED) {
            visit(context, i, &chronicle->blocks[subject]);
            continue;
        }
        const struct chronicle_destruction *destruction = &chronicle->destructions[subject];
        for (uint32_t k = destruction->first; k < destruction->end; k++)
            visit(context, i, &chronicle->blocks[chronicle->ended[k]]);
    }
}
