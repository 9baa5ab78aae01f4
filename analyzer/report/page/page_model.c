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
    for (size_t i = 0; i < sites->count && status == TTD_OK; i++) {
        found[i] = (struct page_site){.node = 0};
        if (!page_sites_is_other(sites, (uint32_t)i))
            status = page_calls_add(calls, sites->stacks[i], &found[i]);
    }
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

/* Writes which call site stands for how many others; null if none does. */
static void others_json(struct json *json, const struct page_sites *sites)
{
    if (!sites->other_count) {
        json_null(json, "others");
        return;
    }
    json_begin_object(json, "others");
    json_unsigned(json, "site", sites->others);
    json_unsigned(json, "count", sites->other_count);
    json_end_object(json);
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
    struct page_sites sites;
    enum ttd_status status = page_sites_choose(&sites, heap->ticks, heap->usage, heap->sites_max);
    page_begin_part(report->output, "heap");
    json_init(&json, report->output, false);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    others_json(&json, &sites);
    if (status == TTD_OK)
        status = page_usage_json(&json, heap->usage, &sites);
    page_ticks_json(&json, heap->ticks);
    if (status == TTD_OK)
        status = page_series_json(&json, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_peak_json(&json, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_lost_json(&json, heap->leaks, &sites);
    if (status == TTD_OK)
        status = sites_json(&json, &sites, heap->ticks, heap->calls);
    names_json(report, &json, heap->ticks);
    json_end_object(&json);
    out_char(report->output, '\n');
    page_sites_free(&sites);
    return status;
}
