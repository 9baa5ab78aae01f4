/* SPDX-License-Identifier: MIT */
/* Amounts of call sites beside those at ticks: in the whole trace, at the peak, and lost. */
#include "report/page/page_model.h"

#include <assert.h>
#include <stdlib.h>

/* Adds the amounts of a call site to the others'. */
static void add_to_others(struct heap_site *others, const struct heap_site *site)
{
    others->allocations += site->allocations;
    others->temporary += site->temporary;
    heap_sum_add(&others->bytes, site->bytes.low);
    others->bytes.high += site->bytes.high;
    heap_sum_add(&others->temporary_bytes, site->temporary_bytes.low);
    others->temporary_bytes.high += site->temporary_bytes.high;
}

/* Lists the written members of the usage, by number of the call site: those that are not among the
 * others, then these. NULL without memory. */
static struct heap_site *list_usage(const struct heap_usage *usage, struct page_sites *sites,
                                    size_t *count)
{
    struct heap_site *list = malloc((usage->count + 1) * sizeof *list);
    struct heap_site others = {.allocations = 0};
    *count = 0;
    for (size_t i = 0; i < usage->count && list; i++) {
        /* Each was added when the sites were chosen. */
        bool is_kept = map_get(&sites->index, usage->sites[i].key.stack, 0) != MAP_NONE;
        if (is_kept)
            list[(*count)++] = usage->sites[i];
        else
            add_to_others(&others, &usage->sites[i]);
    }
    if (list && sites->other_count)
        list[(*count)++] = others;
    return list;
}

/* Writes the amounts that call sites have in the whole trace: those of heap_site. */
enum ttd_status page_usage_json(struct row *row, const struct heap_usage *usage,
                                struct page_sites *sites)
{
    static const char *const names[] = {"allocations", "bytes", "temporary", "temporary_bytes"};
    size_t count;
    struct heap_site *list = list_usage(usage, sites, &count);
    if (!list)
        return TTD_ERROR_NO_MEMORY;
    row_begin_object(row, "usage");
    for (size_t column = 0; column < sizeof names / sizeof names[0]; column++) {
        row_begin_array(row, names[column]);
        for (size_t i = 0; i < count; i++) {
            const struct heap_site *site = &list[i];
            const uint64_t values[] = {site->allocations, heap_sum_value(site->bytes),
                                       site->temporary, heap_sum_value(site->temporary_bytes)};
            row_unsigned(row, NULL, values[column]);
        }
        row_end_array(row);
    }
    row_end_object(row);
    free(list);
    return TTD_OK;
}

/* Adds up groups by call site: those among the others as one, which is the last. */
static enum ttd_status fold_groups(const struct heap_groups *groups, struct page_sites *sites,
                                   struct heap_tick_change *sums, size_t *count)
{
    struct heap_tick_change others = {.record = sites->others};
    enum ttd_status status = TTD_OK;
    *count = 0;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        const struct heap_group *group = &groups->items[i];
        struct heap_tick_change sum = {.bytes = (int64_t)group->bytes,
                                       .blocks = (int64_t)group->blocks};
        status = page_sites_add(sites, group->key.stack, &sum.record);
        if (!page_sites_is_other(sites, sum.record)) {
            sums[(*count)++] = sum;
            continue;
        }
        others.bytes = (int64_t)((uint64_t)others.bytes + group->bytes);
        others.blocks += sum.blocks;
    }
    if (others.blocks)
        sums[(*count)++] = others;
    return status;
}

/* Writes the blocks of groups by call site. */
static enum ttd_status groups_json(struct row *row, const char *key,
                                   const struct heap_groups *groups, struct page_sites *sites)
{
    size_t count = 0;
    struct heap_tick_change *sums = malloc((groups->count + 1) * sizeof *sums);
    enum ttd_status status = sums ? fold_groups(groups, sites, sums, &count) : TTD_ERROR_NO_MEMORY;
    row_begin_object(row, key);
    row_begin_array(row, "site");
    for (size_t i = 0; i < count; i++)
        row_difference(row, NULL, i ? sums[i - 1].record : 0, sums[i].record);
    row_end_array(row);
    row_begin_array(row, "bytes");
    for (size_t i = 0; i < count; i++)
        row_unsigned(row, NULL, (uint64_t)sums[i].bytes);
    row_end_array(row);
    row_begin_array(row, "blocks");
    for (size_t i = 0; i < count; i++)
        row_unsigned(row, NULL, (uint64_t)sums[i].blocks);
    row_end_array(row);
    row_end_object(row);
    free(sums);
    return status;
}

/* The sums of call sites at a tick, by record of the series. NULL without memory. */
static struct heap_tick_change *sums_at(const struct heap_tick_series *series, size_t tick)
{
    struct heap_tick_change *sums = calloc(series->count + 1, sizeof *sums);
    size_t end = tick < series->tick_count ? series->ends[tick] : series->change_count;
    for (size_t i = 0; sums && i < end; i++) {
        const struct heap_tick_change *change = &series->changes[i];
        struct heap_tick_change *sum = &sums[change->record];
        sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)change->bytes);
        sum->blocks += change->blocks;
    }
    return sums;
}

/* The tick in which the peak is. */
static size_t tick_of_peak(const struct heap_ticks *ticks)
{
    size_t tick = 0;
    while (tick + 1 < ticks->count &&
           ttd_position_compare(ticks->ticks[tick].position, ticks->peak.position) < 0)
        tick++;
    return tick;
}

/* Subtracts the tick's sums from the peak's, which makes most of them zero. Drops the others, and
 * sets `record` of those that are left to the call site. */
static enum ttd_status take_peak(const struct heap_ticks *ticks, struct heap_tick_change *sums,
                                 struct page_sites *sites, size_t *count)
{
    const struct heap_tick_series *series = &ticks->series[HEAP_TICK_BY_STACK];
    enum ttd_status status = TTD_OK;
    struct heap_tick_change others = {.record = sites->others};
    *count = 0;
    for (size_t i = 0; i < series->count; i++) {
        sums[i].bytes = (int64_t) - (uint64_t)sums[i].bytes;
        sums[i].blocks = -sums[i].blocks;
    }
    for (size_t i = 0; i < ticks->at_peak.count; i++) {
        const struct heap_group *group = &ticks->at_peak.items[i];
        uint32_t record = map_get(&series->by_key, group->key.stack, 0);
        assert(record != MAP_NONE);
        sums[record].bytes = (int64_t)((uint64_t)sums[record].bytes + group->bytes);
        sums[record].blocks += (int64_t)group->blocks;
    }
    for (size_t i = 0; i < series->count && status == TTD_OK; i++) {
        struct heap_tick_change change = sums[i];
        if (!change.bytes && !change.blocks)
            continue;
        status = page_sites_add(sites, series->records[i].key, &change.record);
        if (!page_sites_is_other(sites, change.record)) {
            sums[(*count)++] = change;
            continue;
        }
        others.bytes = (int64_t)((uint64_t)others.bytes + (uint64_t)change.bytes);
        others.blocks += change.blocks;
    }
    if (others.bytes || others.blocks)
        sums[(*count)++] = others;
    return status;
}

/* Writes a series' live sums at the peak, as differences from the end of its tick. */
static enum ttd_status peak_series_json(struct row *row, const char *name,
                                        const struct heap_ticks *ticks, enum heap_tick_key key,
                                        size_t tick)
{
    const struct heap_tick_series *series = &ticks->series[key];
    struct heap_tick_change *sums = sums_at(series, tick);
    size_t count = 0;
    if (!sums)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < series->count; i++) {
        struct heap_tick_change change = ticks->peak_sums[key][i];
        change.record = (uint32_t)i;
        change.bytes = (int64_t)((uint64_t)change.bytes - (uint64_t)sums[i].bytes);
        change.blocks -= sums[i].blocks;
        if (change.bytes || change.blocks)
            sums[count++] = change;
    }
    row_begin_object(row, name);
    page_changes_json(row, "record", sums, count);
    row_end_object(row);
    free(sums);
    return TTD_OK;
}

/* Writes the tick that the peak would end. */
static enum ttd_status peak_tick_json(struct row *row, const struct heap_ticks *ticks, size_t tick)
{
    const struct heap_tick *peak = &ticks->peak_tick;
    row_unsigned(row, "event", peak->event);
    row_unsigned(row, "time", peak->wall_time);
    row_unsigned(row, "allocations", peak->allocations);
    row_unsigned(row, "allocated", heap_sum_value(peak->allocated));
    row_unsigned(row, "releases", peak->releases);
    row_begin_object(row, "series");
    enum ttd_status status = peak_series_json(row, "thread", ticks, HEAP_TICK_BY_THREAD, tick);
    if (status == TTD_OK)
        status = peak_series_json(row, "heap", ticks, HEAP_TICK_BY_HEAP, tick);
    if (status == TTD_OK)
        status = peak_series_json(row, "size", ticks, HEAP_TICK_BY_SIZE, tick);
    row_end_object(row);
    return status;
}

/* Writes the live sums at the peak, as its tick and the differences from the tick's end. */
enum ttd_status page_peak_json(struct row *row, const struct heap_ticks *ticks,
                               struct page_sites *sites)
{
    size_t tick = tick_of_peak(ticks), count;
    struct heap_tick_change *sums = sums_at(&ticks->series[HEAP_TICK_BY_STACK], tick);
    enum ttd_status status = sums ? take_peak(ticks, sums, sites, &count) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        row_begin_object(row, "at_peak");
        row_unsigned(row, "tick", tick);
        page_changes_json(row, "site", sums, count);
        if (ticks->has_peak_tick)
            status = peak_tick_json(row, ticks, tick);
        row_end_object(row);
    }
    free(sums);
    return status;
}

/* Writes the blocks that are lost, by kind; null if no snapshot has it. */
enum ttd_status page_lost_json(struct row *row, const struct heap_leaks *leaks,
                               struct page_sites *sites)
{
    static const char *const names[] = {[HEAP_DEFINITELY_LOST] = "definitely",
                                        [HEAP_POSSIBLY_LOST] = "possibly",
                                        [HEAP_INDIRECTLY_LOST] = "indirectly"};
    enum ttd_status status = TTD_OK;
    if (!leaks->snapshot.number) {
        row_null(row, "lost");
        return TTD_OK;
    }
    row_begin_object(row, "lost");
    for (size_t kind = 0; kind < sizeof names / sizeof names[0] && status == TTD_OK; kind++)
        status = groups_json(row, names[kind], &leaks->kinds[kind], sites);
    row_end_object(row);
    return status;
}
