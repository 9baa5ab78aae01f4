/* SPDX-License-Identifier: MIT */
#include "report/page/page_model.h"

#include <stdlib.h>

#include "base/grow.h"
#include "report/writers/escape.h"

void page_begin_part(struct text_output *output, const char *name)
{
    out_char(output, '#');
    out_text(output, name);
    out_char(output, '\n');
}

static void patterns_json(struct row *row, const char *key, const struct view_patterns *patterns)
{
    row_begin_array(row, key);
    for (size_t i = 0; i < patterns->count; i++)
        row_string(row, NULL, patterns->patterns[i]);
    row_end_array(row);
}

static void islands_json(struct row *row, const struct heap_island_filter *island)
{
    char guid[GUID_TEXT];
    row_text(row, "client", island->has_client ? guid_text(island->client, guid) : NULL);
    if (island->has_activity)
        row_unsigned(row, "activity", island->activity);
    else
        row_null(row, "activity");
}

void page_write_facts(struct report *report, const struct page_facts *facts)
{
    struct row row;
    page_begin_part(report->output, "facts");
    row_open(&row, report);
    row_text(&row, "title", facts->title);
    row_text(&row, "path", report->path);
    row_begin_array(&row, "paths");
    for (size_t i = 0; i < facts->path_count; i++)
        row_text(&row, NULL, facts->paths[i]);
    row_end_array(&row);
    row_unsigned(&row, "number", facts->number);
    row_position(&row, "from", facts->from);
    if (facts->reaches_end)
        row_null(&row, "to");
    else
        row_position(&row, "to", facts->last);
    row_bool(&row, "has_times", facts->has_times);
    patterns_json(&row, "include", &facts->filters->include);
    patterns_json(&row, "exclude", &facts->filters->exclude);
    islands_json(&row, facts->island);
    row_end_object(&row);
}

/* ---- Call sites ---- */

/* Writes for each call site the number of the thread that allocated its blocks, from 1 in the
 * series by thread; 0 if there are several. */
static void site_threads_json(struct row *row, const struct page_sites *sites,
                              const struct heap_ticks *ticks)
{
    const struct heap_tick_series *by_stack = &ticks->series[HEAP_TICK_BY_STACK];
    const struct heap_tick_series *by_thread = &ticks->series[HEAP_TICK_BY_THREAD];
    row_begin_array(row, "thread");
    for (size_t i = 0; i < sites->count; i++) {
        uint32_t record = map_get(&by_stack->by_key, sites->stacks[i], 0), thread = MAP_NONE;
        if (record != MAP_NONE && !by_stack->records[record].has_several_threads)
            thread = map_get(&by_thread->by_key, by_stack->records[record].thread, 0);
        row_unsigned(row, NULL, thread == MAP_NONE ? 0 : (uint64_t)thread + 1);
    }
    row_end_array(row);
}

/* Writes the call sites; stacks as differences, since they come in increasing order at first. */
static enum ttd_status sites_json(struct row *row, const struct page_sites *sites,
                                  const struct heap_ticks *ticks, struct page_calls *calls)
{
    struct page_site *found = malloc((sites->count + 1) * sizeof *found);
    enum ttd_status status = found ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < sites->count && status == TTD_OK; i++) {
        found[i] = (struct page_site){.node = 0};
        if (!page_sites_is_other(sites, (uint32_t)i))
            status = page_calls_add(calls, sites->stacks[i], &found[i]);
    }
    if (status == TTD_OK) {
        row_begin_object(row, "sites");
        row_begin_array(row, "stack");
        for (size_t i = 0; i < sites->count; i++)
            row_difference(row, NULL, i ? sites->stacks[i - 1] : 0, sites->stacks[i]);
        row_end_array(row);
        row_begin_array(row, "node");
        for (size_t i = 0; i < sites->count; i++)
            row_difference(row, NULL, i ? found[i - 1].node : 0, found[i].node);
        row_end_array(row);
        row_begin_array(row, "up");
        for (size_t i = 0; i < sites->count; i++)
            row_unsigned(row, NULL, found[i].up);
        row_end_array(row);
        site_threads_json(row, sites, ticks);
        row_end_object(row);
    }
    free(found);
    return status;
}

/* Writes which call site stands for how many others; null if none does. */
static void others_json(struct row *row, const struct page_sites *sites)
{
    if (!sites->other_count) {
        row_null(row, "others");
        return;
    }
    row_begin_object(row, "others");
    row_unsigned(row, "site", sites->others);
    row_unsigned(row, "count", sites->other_count);
    row_end_object(row);
}

static void names_json(struct report *report, struct row *row, const struct heap_ticks *ticks)
{
    const struct definitions *definitions = report->definitions;
    const struct heap_tick_series *threads = &ticks->series[HEAP_TICK_BY_THREAD];
    const struct heap_tick_series *heaps = &ticks->series[HEAP_TICK_BY_HEAP];
    row_begin_array(row, "threads");
    for (size_t i = 0; i < threads->count; i++) {
        ttd_id id = threads->records[i].key;
        const struct definition_thread *thread = definitions_thread(definitions, id);
        row_name(row, NULL, definitions_text(definitions, thread ? thread->name : TTD_NONE));
    }
    row_end_array(row);
    row_begin_array(row, "heaps");
    for (size_t i = 0; i < heaps->count; i++) {
        ttd_id id = heaps->records[i].key;
        const struct definition_heap *heap = definitions_heap(definitions, id);
        row_name(row, NULL, definitions_text(definitions, heap ? heap->name : TTD_NONE));
    }
    row_end_array(row);
}

enum ttd_status page_write_heap(struct report *report, const struct page_heap *heap)
{
    struct row row;
    struct page_sites sites;
    enum ttd_status status = page_sites_choose(&sites, heap->ticks, heap->usage, heap->sites_max);
    page_begin_part(report->output, "heap");
    row_init_json(&row, report->output, false);
    row.report = report;
    row_begin_object(&row, NULL);
    row_certainty(&row);
    others_json(&row, &sites);
    if (status == TTD_OK)
        status = page_usage_json(&row, heap->usage, &sites);
    page_ticks_json(&row, heap->ticks);
    if (status == TTD_OK)
        status = page_series_json(&row, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_peak_json(&row, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_lost_json(&row, heap->leaks, &sites);
    if (status == TTD_OK)
        status = sites_json(&row, &sites, heap->ticks, heap->calls);
    names_json(report, &row, heap->ticks);
    row_end_object(&row);
    out_char(report->output, '\n');
    page_sites_free(&sites);
    return status;
}
