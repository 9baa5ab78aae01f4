/* SPDX-License-Identifier: MIT */
#include "report/page/model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/grow.h"
#include "report/writers/guid.h"

void page_begin_part(struct text_output *output, const char *name)
{
    out_char(output, '#');
    out_text(output, name);
    out_char(output, '\n');
}

static void patterns_json(struct json *json, const char *key, const struct view_patterns *patterns)
{
    json_begin_array(json, key);
    for (size_t i = 0; i < patterns->count; i++)
        json_string(json, NULL, patterns->patterns[i]);
    json_end_array(json);
}

static void islands_json(struct json *json, const struct heap_island_filter *island)
{
    char guid[GUID_TEXT];
    json_text(json, "client", island->has_client ? guid_text(island->client, guid) : NULL);
    if (island->has_activity)
        json_unsigned(json, "activity", island->activity);
    else
        json_null(json, "activity");
}

void page_write_facts(struct report *report, const struct page_facts *facts)
{
    struct json json;
    page_begin_part(report->output, "facts");
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_text(&json, "title", facts->title);
    json_text(&json, "path", report->path);
    json_begin_array(&json, "paths");
    for (size_t i = 0; i < facts->path_count; i++)
        json_text(&json, NULL, facts->paths[i]);
    json_end_array(&json);
    json_unsigned(&json, "number", facts->number);
    json_position(&json, "from", facts->from);
    if (facts->reaches_end)
        json_null(&json, "to");
    else
        json_position(&json, "to", facts->last);
    json_bool(&json, "has_times", facts->has_times);
    patterns_json(&json, "include", &facts->filters->include);
    patterns_json(&json, "exclude", &facts->filters->exclude);
    islands_json(&json, facts->island);
    json_end_object(&json);
}

/* ---- Call sites ---- */

enum ttd_status page_sites_add(struct page_sites *sites, ttd_id stack, uint32_t *number)
{
    *number = map_get(&sites->index, stack, 0);
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = (uint32_t)sites->count;
    enum ttd_status status = grow_array((void **)&sites->stacks, &sites->capacity, sites->count + 1,
                                        sizeof *sites->stacks);
    if (status == TTD_OK)
        status = map_set(&sites->index, stack, 0, *number);
    if (status == TTD_OK)
        sites->stacks[sites->count++] = stack;
    return status;
}

/* Writes the amounts that call sites have in the whole trace: those of heap_site. */
static void usage_json(struct json *json, const struct heap_usage *usage)
{
    static const char *const names[] = {"allocations", "bytes", "temporary", "temporary_bytes"};
    json_begin_object(json, "usage");
    for (size_t column = 0; column < sizeof names / sizeof names[0]; column++) {
        json_begin_array(json, names[column]);
        for (size_t i = 0; i < usage->count; i++) {
            const struct heap_site *site = &usage->sites[i];
            const uint64_t values[] = {site->allocations, heap_sum_value(site->bytes),
                                       site->temporary, heap_sum_value(site->temporary_bytes)};
            json_unsigned(json, NULL, values[column]);
        }
        json_end_array(json);
    }
    json_end_object(json);
}

/* Writes the blocks of groups by call site. */
static enum ttd_status groups_json(struct json *json, const char *key,
                                   const struct heap_groups *groups, struct page_sites *sites)
{
    enum ttd_status status = TTD_OK;
    json_begin_object(json, key);
    json_begin_array(json, "site");
    for (size_t i = 0, last = 0; i < groups->count && status == TTD_OK; i++) {
        uint32_t number;
        status = page_sites_add(sites, groups->items[i].key.stack, &number);
        json_difference(json, NULL, last, number);
        last = number;
    }
    json_end_array(json);
    json_begin_array(json, "bytes");
    for (size_t i = 0; i < groups->count; i++)
        json_unsigned(json, NULL, groups->items[i].bytes);
    json_end_array(json);
    json_begin_array(json, "blocks");
    for (size_t i = 0; i < groups->count; i++)
        json_unsigned(json, NULL, groups->items[i].blocks);
    json_end_array(json);
    json_end_object(json);
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

/* Makes the sums those of the peak less those of the tick, of which most are zero then. Drops the
 * others, and sets `record` of those that are left to the call site. */
static enum ttd_status take_peak(const struct heap_ticks *ticks, struct heap_tick_change *sums,
                                 struct page_sites *sites, size_t *count)
{
    const struct heap_tick_series *series = &ticks->series[HEAP_TICK_BY_STACK];
    enum ttd_status status = TTD_OK;
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
        sums[(*count)++] = change;
    }
    return status;
}

/* Writes what was live at the peak, as the tick in which it is and what differs from its end. */
static enum ttd_status peak_json(struct json *json, const struct heap_ticks *ticks,
                                 struct page_sites *sites)
{
    size_t tick = tick_of_peak(ticks), count;
    struct heap_tick_change *sums = sums_at(&ticks->series[HEAP_TICK_BY_STACK], tick);
    enum ttd_status status = sums ? take_peak(ticks, sums, sites, &count) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        json_begin_object(json, "at_peak");
        json_unsigned(json, "tick", tick);
        page_changes_json(json, "site", sums, count);
        json_end_object(json);
    }
    free(sums);
    return status;
}

/* Writes the blocks that are lost, by kind; null if no snapshot tells. */
static enum ttd_status lost_json(struct json *json, const struct heap_leaks *leaks,
                                 struct page_sites *sites)
{
    static const char *const names[] = {[HEAP_DEFINITELY_LOST] = "definitely",
                                        [HEAP_POSSIBLY_LOST] = "possibly",
                                        [HEAP_INDIRECTLY_LOST] = "indirectly"};
    enum ttd_status status = TTD_OK;
    if (!leaks->snapshot.number) {
        json_null(json, "lost");
        return TTD_OK;
    }
    json_begin_object(json, "lost");
    for (size_t kind = 0; kind < sizeof names / sizeof names[0] && status == TTD_OK; kind++)
        status = groups_json(json, names[kind], &leaks->kinds[kind], sites);
    json_end_object(json);
    return status;
}

/* Writes for each call site the number of the thread that allocated its blocks, from 1 in the
 * series by thread; 0 if there are several. */
static void site_threads_json(struct json *json, const struct page_sites *sites,
                              const struct heap_ticks *ticks)
{
    const struct heap_tick_series *by_stack = &ticks->series[HEAP_TICK_BY_STACK];
    const struct heap_tick_series *by_thread = &ticks->series[HEAP_TICK_BY_THREAD];
    json_begin_array(json, "thread");
    for (size_t i = 0; i < sites->count; i++) {
        uint32_t record = map_get(&by_stack->by_key, sites->stacks[i], 0), thread = MAP_NONE;
        if (record != MAP_NONE && !by_stack->records[record].has_several_threads)
            thread = map_get(&by_thread->by_key, by_stack->records[record].thread, 0);
        json_unsigned(json, NULL, thread == MAP_NONE ? 0 : (uint64_t)thread + 1);
    }
    json_end_array(json);
}

/* Writes the call sites; stacks as differences, since they come in increasing order at first. */
static enum ttd_status sites_json(struct json *json, const struct page_sites *sites,
                                  const struct heap_ticks *ticks, struct page_calls *calls)
{
    struct page_site *found = malloc((sites->count + 1) * sizeof *found);
    enum ttd_status status = found ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < sites->count && status == TTD_OK; i++)
        status = page_calls_add(calls, sites->stacks[i], &found[i]);
    if (status == TTD_OK) {
        json_begin_object(json, "sites");
        json_begin_array(json, "stack");
        for (size_t i = 0; i < sites->count; i++)
            json_difference(json, NULL, i ? sites->stacks[i - 1] : 0, sites->stacks[i]);
        json_end_array(json);
        json_begin_array(json, "node");
        for (size_t i = 0; i < sites->count; i++)
            json_difference(json, NULL, i ? found[i - 1].node : 0, found[i].node);
        json_end_array(json);
        json_begin_array(json, "up");
        for (size_t i = 0; i < sites->count; i++)
            json_unsigned(json, NULL, found[i].up);
        json_end_array(json);
        site_threads_json(json, sites, ticks);
        json_end_object(json);
    }
    free(found);
    return status;
}

static void names_json(struct report *report, struct json *json, const struct heap_ticks *ticks)
{
    const struct definitions *definitions = report->definitions;
    const struct heap_tick_series *threads = &ticks->series[HEAP_TICK_BY_THREAD];
    const struct heap_tick_series *heaps = &ticks->series[HEAP_TICK_BY_HEAP];
    json_begin_array(json, "threads");
    for (size_t i = 0; i < threads->count; i++) {
        ttd_id id = threads->records[i].key;
        const struct definition_thread *thread = definitions_thread(definitions, id);
        json_name(json, NULL, definitions_text(definitions, thread ? thread->name : TTD_NONE));
    }
    json_end_array(json);
    json_begin_array(json, "heaps");
    for (size_t i = 0; i < heaps->count; i++) {
        ttd_id id = heaps->records[i].key;
        const struct definition_heap *heap = definitions_heap(definitions, id);
        json_name(json, NULL, definitions_text(definitions, heap ? heap->name : TTD_NONE));
    }
    json_end_array(json);
}

enum ttd_status page_write_heap(struct report *report, const struct page_heap *heap)
{
    struct json json;
    struct page_sites sites = {.count = 0};
    enum ttd_status status = TTD_OK;
    map_init(&sites.index);
    page_begin_part(report->output, "heap");
    json_init(&json, report->output, false);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    /* The first call sites are those of the usage, in its order. */
    for (size_t i = 0; i < heap->usage->count && status == TTD_OK; i++) {
        uint32_t number;
        status = page_sites_add(&sites, heap->usage->sites[i].key.stack, &number);
    }
    usage_json(&json, heap->usage);
    page_ticks_json(&json, heap->ticks);
    if (status == TTD_OK)
        status = page_series_json(&json, heap->ticks, &sites);
    if (status == TTD_OK)
        status = peak_json(&json, heap->ticks, &sites);
    if (status == TTD_OK)
        status = lost_json(&json, heap->leaks, &sites);
    if (status == TTD_OK)
        status = sites_json(&json, &sites, heap->ticks, heap->calls);
    names_json(report, &json, heap->ticks);
    json_end_object(&json);
    out_char(report->output, '\n');
    free(sites.stacks);
    map_free(&sites.index);
    return status;
}
