/* SPDX-License-Identifier: MIT */
#include "report/page/page_model.h"

#include <stdlib.h>

#include "base/grow.h"
#include "report/writers/out.h"

void page_begin_part(struct text_output *output, const char *name)
{
    say(output, "#", name, "\n");
}

static void model_patterns_json(struct row *row, const char *key,
                                const struct view_patterns *patterns)
{
    row_begin_array(row, key);
    for (size_t i = 0; i < patterns->count; i++)
        row_string(row, NULL, patterns->patterns[i]);
    row_end_array(row);
}

static void model_islands_json(struct row *row, const struct heap_island_filter *island)
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
    model_patterns_json(&row, "include", &facts->filters->include);
    model_patterns_json(&row, "exclude", &facts->filters->exclude);
    model_islands_json(&row, facts->island);
    row_end_object(&row);
}

/* ---- Call sites ---- */

/* Writes for each call site the number of the thread that allocated its blocks, from 1 in the
 * series by thread; 0 if there are several. */
static void model_site_threads_json(struct row *row, const struct page_sites *sites,
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
static enum ttd_status model_sites_json(struct row *row, const struct page_sites *sites,
                                        const struct heap_ticks *ticks, struct page_calls *calls)
{
    struct page_site *found = malloc((sites->count + 1) * sizeof *found);
    enum ttd_status status = found ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < sites->count && status == TTD_OK; i++) {
        found[i] = (struct page_site){.node = 0};
        if (page_sites_is_other(sites, (uint32_t)i))
            found[i].node = sites->other_nodes[i - sites->others];
        else
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
        model_site_threads_json(row, sites, ticks);
        row_end_object(row);
    }
    free(found);
    return status;
}

/* Writes the first of the call sites that stand for others, their number, and for how many they
 * stand; null if none does. */
static void model_others_json(struct row *row, const struct page_sites *sites)
{
    if (!sites->other_count) {
        row_null(row, "others");
        return;
    }
    row_begin_object(row, "others");
    row_unsigned(row, "site", sites->others);
    row_unsigned(row, "sites", sites->other_sites);
    row_unsigned(row, "count", sites->other_count);
    row_end_object(row);
}

static void model_names_json(struct report *report, struct row *row, const struct heap_ticks *ticks)
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
    enum ttd_status status =
        page_sites_choose(&sites, heap->ticks, heap->usage, heap->calls, heap->sites_max);
    page_begin_part(report->output, "heap");
    row_init_json(&row, report->output, false);
    row.report = report;
    row_begin_object(&row, NULL);
    row_certainty(&row);
    model_others_json(&row, &sites);
    if (status == TTD_OK)
        status = page_usage_json(&row, heap->usage, &sites);
    if (status == TTD_OK)
        status = page_copied_json(&row, heap->moves, &sites);
    page_ticks_json(&row, heap->ticks);
    page_memory_json(&row, heap->memory);
    if (status == TTD_OK)
        status = page_series_json(&row, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_peak_json(&row, heap->ticks, &sites);
    if (status == TTD_OK)
        status = page_lost_json(&row, heap->leaks, &sites);
    if (heap->has_blocks)
        page_doubtful_json(&row, heap->leaks);
    else
        page_lost_blocks_json(&row, heap->leaks);
    if (status == TTD_OK)
        status = page_kept_json(&row, heap, &sites);
    if (status == TTD_OK)
        status = model_sites_json(&row, &sites, heap->ticks, heap->calls);
    model_names_json(report, &row, heap->ticks);
    row_end_object(&row);
    out_char(report->output, '\n');
    page_sites_free(&sites);
    return status;
}

void page_strings_init(struct page_strings *strings)
{
    *strings = (struct page_strings){.count = 0};
    map_init(&strings->index);
}

void page_strings_free(struct page_strings *strings)
{
    free(strings->texts);
    map_free(&strings->index);
}

enum ttd_status page_strings_add(struct page_strings *strings, struct ttd_string text,
                                 uint32_t *number)
{
    uint64_t address = text.size ? (uint64_t)(uintptr_t)text.data : 0;
    *number = map_get(&strings->index, address, text.size);
    if (*number != MAP_NONE)
        return TTD_OK;
    *number = (uint32_t)strings->count;
    enum ttd_status status = grow_array((void **)&strings->texts, &strings->capacity,
                                        strings->count + 1, sizeof *strings->texts);
    if (status == TTD_OK)
        status = map_set(&strings->index, address, text.size, *number);
    if (status == TTD_OK)
        strings->texts[strings->count++] = text;
    return status;
}

void page_strings_json(const struct page_strings *strings, struct row *row, const char *key)
{
    row_begin_array(row, key);
    for (size_t i = 0; i < strings->count; i++)
        row_string(row, NULL, strings->texts[i]);
    row_end_array(row);
}

void page_calls_init(struct page_calls *calls, struct view *view)
{
    *calls = (struct page_calls){.view = view, .unknown = PAGE_NO_NODE, .others = PAGE_NO_NODE};
    page_strings_init(&calls->strings);
    map_init(&calls->frame_index);
    map_init(&calls->node_index);
}

void page_calls_free(struct page_calls *calls)
{
    page_strings_free(&calls->strings);
    free(calls->frames);
    map_free(&calls->frame_index);
    free(calls->nodes);
    map_free(&calls->node_index);
    stack_memo_free(&calls->memo);
    stack_memo_free(&calls->cut_memo);
    frame_list_free(&calls->scratch);
}

static enum ttd_status page_name_frame(struct page_calls *calls, const struct frame *frame,
                                       struct page_frame *named)
{
    const struct view_label *label = &calls->view->labels.labels[named->label];
    enum ttd_status status = page_strings_add(&calls->strings, label->name, &named->function);
    if (status == TTD_OK)
        status = page_strings_add(&calls->strings, frame->module, &named->module);
    if (status == TTD_OK)
        status = page_strings_add(&calls->strings, frame->file, &named->file);
    return status;
}

/* Frames of the same function and line are one. */
static enum ttd_status page_add_frame(struct page_calls *calls, const struct frame *frame,
                                      const struct view_frame *seen, uint32_t *number)
{
    struct page_frame added = {.label = seen->label,
                               .line = frame->line,
                               .is_inlined = frame->is_inlined,
                               .allocates = seen->allocates,
                               .is_own = seen->is_own};
    enum ttd_status status = page_name_frame(calls, frame, &added);
    uint64_t a = (uint64_t)added.label << 32 | added.line;
    uint64_t b = (uint64_t)added.file << 32 | (uint64_t)added.module << 1 | added.is_inlined;
    *number = map_get(&calls->frame_index, a, b);
    if (status != TTD_OK || *number != MAP_NONE)
        return status;
    *number = (uint32_t)calls->frame_count;
    status = grow_array((void **)&calls->frames, &calls->frame_capacity, calls->frame_count + 1,
                        sizeof *calls->frames);
    if (status == TTD_OK)
        status = map_set(&calls->frame_index, a, b, *number);
    if (status == TTD_OK)
        calls->frames[calls->frame_count++] = added;
    return status;
}

static enum ttd_status model_descend(struct page_calls *calls, uint32_t frame, uint32_t *node)
{
    uint32_t below = map_get(&calls->node_index, *node, frame);
    if (below == MAP_NONE) {
        below = (uint32_t)calls->node_count;
        enum ttd_status status = grow_array((void **)&calls->nodes, &calls->node_capacity,
                                            calls->node_count + 1, sizeof *calls->nodes);
        if (status == TTD_OK)
            status = map_set(&calls->node_index, *node, frame, below);
        if (status != TTD_OK)
            return status;
        calls->nodes[calls->node_count++] = (struct page_node){*node, frame};
    }
    *node = below;
    return TTD_OK;
}

/* Adds the frames of one address below the node of its caller. */
static enum ttd_status model_find_node(void *context, const struct ttd_stack *stack, uint32_t above,
                                       uint32_t *fact)
{
    struct page_calls *calls = context;
    struct view_site site;
    uint32_t node = above ? above - 1 : calls->outermost;
    enum ttd_status status = view_go_through(calls->view, stack, &site);
    calls->scratch.count = 0;
    if (status == TTD_OK)
        status = frame_list_add(&calls->scratch, calls->view->definitions, stack);
    for (size_t i = site.count; i-- > 0 && status == TTD_OK;) {
        uint32_t frame;
        status = page_add_frame(calls, &calls->scratch.frames[i],
                                &calls->view->frames[site.first + i], &frame);
        if (status == TTD_OK)
            status = model_descend(calls, frame, &node);
    }
    *fact = node + 1;
    return status;
}

/* Adds the node of unknown callers. */
static enum ttd_status model_add_unknown(struct page_calls *calls)
{
    static const struct frame none = {.line = 0};
    struct view_frame seen = {.label = 0};
    uint32_t frame = 0;
    enum ttd_status status = view_label_unknown_callers(calls->view, &seen.label);
    if (status == TTD_OK)
        status = page_add_frame(calls, &none, &seen, &frame);
    return status == TTD_OK ? model_descend(calls, frame, &calls->unknown) : status;
}

/* Sets `number` as page_calls_number() does, for a stack within one that is cut or is not. */
static enum ttd_status model_number(struct page_calls *calls, ttd_id stack, bool is_cut,
                                    uint64_t *number)
{
    struct stack_memo_finder finder = {.context = calls, .find = model_find_node};
    struct stack_memo *memo = is_cut ? &calls->cut_memo : &calls->memo;
    uint32_t fact = 0;
    enum ttd_status status = TTD_OK;
    if (is_cut && calls->unknown == PAGE_NO_NODE)
        status = model_add_unknown(calls);
    calls->outermost = is_cut ? calls->unknown : PAGE_NO_NODE;
    if (status == TTD_OK)
        status = stack_memo_find(memo, &calls->view->definitions->stacks, stack, &finder, &fact);
    *number = fact;
    return status;
}

enum ttd_status page_calls_number(void *context, ttd_id stack, uint64_t *number)
{
    struct page_calls *calls = context;
    bool is_cut;
    enum ttd_status status = view_stack_is_cut(calls->view, stack, &is_cut);
    return status == TTD_OK ? model_number(calls, stack, is_cut, number) : status;
}

/* Finds the node of the first frames of `site`: all or the outer ones of an address. */
static enum ttd_status model_node_of(struct page_calls *calls, bool is_cut,
                                     const struct ttd_stack *caller, struct view_site site,
                                     uint32_t *node)
{
    struct view_site whole;
    uint64_t number = 0;
    enum ttd_status status = view_find_site(calls->view, caller, &whole);
    if (status == TTD_OK)
        status = model_number(calls, caller->id, is_cut, &number);
    *node = (uint32_t)number - 1;
    for (size_t i = site.count; i < whole.count && status == TTD_OK; i++)
        *node = calls->nodes[*node].parent;
    return status;
}

enum ttd_status page_calls_add(struct page_calls *calls, ttd_id stack, struct page_site *site)
{
    struct ttd_stack caller;
    struct view_site frames;
    uint32_t node, own;
    bool is_cut;
    *site = (struct page_site){.node = 0};
    enum ttd_status status = view_find_caller(calls->view, stack, &caller, &frames);
    if (status == TTD_END)
        return TTD_OK;
    if (status == TTD_OK)
        status = view_stack_is_cut(calls->view, stack, &is_cut);
    if (status == TTD_OK)
        status = model_node_of(calls, is_cut, &caller, frames, &node);
    if (status == TTD_OK)
        status = view_find_own_caller(calls->view, stack, &caller, &frames);
    if (status == TTD_OK)
        status = model_node_of(calls, is_cut, &caller, frames, &own);
    if (status != TTD_OK)
        return status;
    site->node = node + 1;
    for (; node != own && node != PAGE_NO_NODE; node = calls->nodes[node].parent)
        site->up++;
    return TTD_OK;
}

/* Adds a node for the callers of many stacks: like the node of unknown callers, but with a name of
 * its own. */
static enum ttd_status model_add_others(struct page_calls *calls)
{
    static const char name[] = "(other call sites)";
    struct page_frame added = {.label = 0};
    struct ttd_string none = {.size = 0};
    enum ttd_status status = view_label_unknown_callers(calls->view, &added.label);
    if (status == TTD_OK)
        status = page_strings_add(&calls->strings, (struct ttd_string){name, sizeof name - 1},
                                  &added.function);
    if (status == TTD_OK)
        status = page_strings_add(&calls->strings, none, &added.module);
    added.file = added.module;
    if (status == TTD_OK)
        status = grow_array((void **)&calls->frames, &calls->frame_capacity, calls->frame_count + 1,
                            sizeof *calls->frames);
    if (status != TTD_OK)
        return status;
    calls->frames[calls->frame_count++] = added;
    return model_descend(calls, (uint32_t)calls->frame_count - 1, &calls->others);
}

enum ttd_status page_calls_find_function(struct page_calls *calls, ttd_id stack, uint32_t *label)
{
    struct ttd_stack caller;
    struct view_site site;
    enum ttd_status status = view_find_own_caller(calls->view, stack, &caller, &site);
    *label = status == TTD_OK ? calls->view->frames[site.first].label : PAGE_NO_LABEL;
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status page_calls_add_function(struct page_calls *calls, ttd_id stack, uint32_t *number)
{
    struct ttd_stack caller;
    struct view_site whole, site;
    uint32_t frame, node;
    enum ttd_status status = calls->others == PAGE_NO_NODE ? model_add_others(calls) : TTD_OK;
    *number = calls->others + 1;
    if (status == TTD_OK)
        status = view_find_own_caller(calls->view, stack, &caller, &site);
    if (status == TTD_END)
        return TTD_OK;
    calls->scratch.count = 0;
    if (status == TTD_OK)
        status = view_find_site(calls->view, &caller, &whole);
    if (status == TTD_OK)
        status = frame_list_add(&calls->scratch, calls->view->definitions, &caller);
    if (status != TTD_OK)
        return status;
    struct frame *named = &calls->scratch.frames[whole.count - site.count];
    named->line = 0;
    named->is_inlined = false;
    node = calls->others;
    status = page_add_frame(calls, named, &calls->view->frames[site.first], &frame);
    if (status == TTD_OK)
        status = model_descend(calls, frame, &node);
    *number = node + 1;
    return status;
}

static void model_frames_json(const struct page_calls *calls, struct row *row)
{
    static const char *const names[] = {"function", "module", "file", "line", "flags"};
    row_begin_object(row, "frames");
    for (size_t column = 0; column < sizeof names / sizeof names[0]; column++) {
        row_begin_array(row, names[column]);
        for (size_t i = 0; i < calls->frame_count; i++) {
            const struct page_frame *frame = &calls->frames[i];
            uint32_t flags = frame->is_inlined | frame->is_own << 1 | frame->allocates << 2;
            const uint32_t values[] = {frame->function, frame->module, frame->file, frame->line,
                                       flags};
            row_unsigned(row, NULL, values[column]);
        }
        row_end_array(row);
    }
    row_begin_array(row, "number");
    for (size_t i = 0; i < calls->frame_count; i++) {
        const struct view_label *label = &calls->view->labels.labels[calls->frames[i].label];
        if (label->name.size)
            row_unsigned(row, NULL, 0);
        else
            row_hex(row, NULL, label->number);
    }
    row_end_array(row);
    row_end_object(row);
}

static void model_nodes_json(const struct page_calls *calls, struct row *row)
{
    row_begin_object(row, "nodes");
    /* The distance to the parent: 0 for none. Most are small, and compress well. */
    row_begin_array(row, "up");
    for (size_t i = 0; i < calls->node_count; i++) {
        uint32_t parent = calls->nodes[i].parent;
        row_unsigned(row, NULL, parent == PAGE_NO_NODE ? 0 : i - parent);
    }
    row_end_array(row);
    row_begin_array(row, "frame");
    for (size_t i = 0; i < calls->node_count; i++)
        row_unsigned(row, NULL, calls->nodes[i].frame);
    row_end_array(row);
    row_end_object(row);
}

void page_write_calls(const struct page_calls *calls, const char *name, struct text_output *output)
{
    struct row row;
    page_begin_part(output, name);
    row_init_json(&row, output, false);
    row_begin_object(&row, NULL);
    page_strings_json(&calls->strings, &row, "strings");
    model_frames_json(calls, &row);
    model_nodes_json(calls, &row);
    row_end_object(&row);
    out_char(output, '\n');
}

/* The stacks of an exact page: arrays of numbers, each written as the difference to the one before.
 */

/* Writes a property of all stacks: the number in the trace, or that in the tree. */
static enum ttd_status model_write_column(struct row *row, const struct stack_table *table,
                                          struct page_calls *calls)
{
    enum ttd_status status = TTD_OK;
    uint64_t last = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct stack_chunk *chunk = &table->chunks[i];
        for (uint32_t k = 0; k < chunk->count && status == TTD_OK; k++) {
            uint64_t number = chunk->first + k;
            if (calls)
                status = page_calls_number(calls, (ttd_id)number, &number);
            row_difference(row, NULL, last, number);
            last = number;
        }
    }
    return status;
}

enum ttd_status page_write_stacks(struct report *report, struct page_calls *calls)
{
    const struct stack_table *table = &report->definitions->stacks;
    struct row row;
    page_begin_part(report->output, "stacks");
    row_init_json(&row, report->output, false);
    row_begin_object(&row, NULL);
    row_begin_array(&row, "stack");
    (void)model_write_column(&row, table, NULL);
    row_end_array(&row);
    row_begin_array(&row, "number");
    enum ttd_status status = model_write_column(&row, table, calls);
    row_end_array(&row);
    row_end_object(&row);
    out_char(report->output, '\n');
    return status;
}
