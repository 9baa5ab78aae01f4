/* SPDX-License-Identifier: MIT */
/* The report of `find`. */
#include "report/memory/memory_reports.h"

#include "report/reachability/reachability_reports.h"
#include "report/sections/place.h"

static const struct ttd_snapshot *match_snapshot(const struct heap_search *search,
                                                 const struct heap_match *match)
{
    return &search->memory.snapshots.snapshots[match->snapshot];
}

static const struct heap_block *match_block(const struct heap_search *search,
                                            const struct heap_match *match)
{
    return match->block == SIZE_MAX ? NULL : &search->memory.blocks[match->block];
}

/* Whether the match was there before the block was. */
static bool is_older(const struct heap_search *search, const struct heap_match *match)
{
    const struct heap_block *block = match_block(search, match);
    return block &&
           ttd_position_compare(match_snapshot(search, match)->position, block->allocated) < 0;
}

static void text_match(struct report *report, const struct report_search *data,
                       const struct heap_match *match)
{
    const struct heap_search *search = data->search;
    const struct heap_block *block = match_block(search, match);
    struct text_output *output = report->output;
    out_text(output, "  ");
    out_hex(output, match->address);
    if (data->options->kind == HEAP_SEARCH_POINTER) {
        out_text(output, " has ");
        out_hex(output, match->value);
    }
    if (block) {
        out_text(output, ", ");
        report_count(output, match->address - block->address, "byte");
        out_text(output, " into block ");
        report_block_text(report, block);
        if (is_older(search, match))
            out_text(output, "; the snapshot is older than this block");
    } else {
        out_text(output, ", in no live block");
    }
    out_char(output, '\n');
}

/* Writes the pages that were searched, and the snapshots that the matches are of. */
static void text_scope(struct report *report, const struct heap_search *search)
{
    struct text_output *output = report->output;
    if (!search->searched && !search->unreadable) {
        out_text(output, "No snapshot of memory was taken at this position or before\n");
        return;
    }
    report_count(output, search->searched, "byte");
    out_text(output, " searched");
    if (search->unreadable) {
        out_text(output, "; ");
        report_count(output, search->unreadable, "byte");
        out_text(output, " could not be read");
    }
    out_char(output, '\n');
}

static void text_match_total(struct report *report, const struct heap_search *search)
{
    struct text_output *output = report->output;
    out_bold(output);
    report_count(output, search->total, "place");
    out_text(output, " at ");
    report_position_text(report, search->outcome.position);
    out_plain(output);
    out_char(output, '\n');
    text_scope(report, search);
}

void text_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct text_output *output = report->output;
    /* Without snapshots of memory, references alone may answer. */
    if (search->searched || search->unreadable || !data->referrers)
        text_match_total(report, search);
    report_certainty_text(report);
    if (search->target) {
        out_text(output, "pointers to block ");
        report_block_text(report, search->target);
        out_char(output, '\n');
    }
    size_t snapshot = SIZE_MAX;
    for (size_t i = 0; i < search->count; i++) {
        const struct heap_match *match = &search->matches[i];
        if (snapshot != match->snapshot) {
            out_text(output, "as of ");
            report_snapshot_text(report, match_snapshot(search, match));
            out_char(output, '\n');
        }
        snapshot = match->snapshot;
        text_match(report, data, match);
    }
    if (search->total > search->count) {
        out_text(output, "… and ");
        report_count(output, search->total - search->count, "place");
        out_text(output, " more (--limit 0 for all)\n");
    }
    if (data->referrers)
        report_pointers_text(report, data->referrers);
}

void json_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", search->outcome.position);
    report_certainty_json(report, &json);
    json_unsigned(&json, "searched_bytes", search->searched);
    json_unsigned(&json, "unreadable_bytes", search->unreadable);
    report_block_json(report, &json, "target", search->target);
    report_pointers_json(report, &json, "pointers", data->referrers);
    json_unsigned(&json, "total_places", search->total);
    json_begin_array(&json, "places");
    for (size_t i = 0; i < search->count; i++) {
        const struct heap_match *match = &search->matches[i];
        json_begin_object(&json, NULL);
        json_hex(&json, "address", match->address);
        json_hex_if(&json, "value", data->options->kind != HEAP_SEARCH_PATTERN, match->value);
        report_snapshot_json(&json, "snapshot", match_snapshot(search, match));
        report_block_json(report, &json, "block", match_block(search, match));
        json_bool(&json, "is_older_than_block", is_older(search, match));
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

/* Writes the words that point at the block by the snapshot of references. A register has no
 * address. */
static void csv_pointers(struct report *report, struct csv *csv,
                         const struct heap_referrers *referrers)
{
    const struct heap_reach *reach = &referrers->reach;
    uint64_t target = heap_nodes_address(&reach->nodes, referrers->target);
    for (size_t i = 0; i < referrers->count; i++) {
        const struct heap_referrer *referrer = &referrers->lines[i];
        if (referrer->kind == HEAP_REFERRER_MORE)
            report->left_out += referrer->count;
        if (referrer->kind != HEAP_REFERRER_BLOCK && referrer->kind != HEAP_REFERRER_ROOT)
            continue;
        bool is_block = referrer->kind == HEAP_REFERRER_BLOCK;
        struct heap_block block = {.address = 0};
        if (is_block)
            block = heap_nodes_block(&reach->nodes, referrer->node);
        const struct ttd_region *region =
            is_block ? NULL : heap_reach_region(reach, referrer->region);
        bool has_address = is_block || (region && region->kind != TTD_REGION_REGISTERS);
        uint64_t begin = is_block ? block.address : region ? region->begin : 0;
        csv_hex_if(csv, has_address, begin + referrer->offset);
        csv_hex_if(csv, referrer->target_offset < UINT32_MAX, target + referrer->target_offset);
        csv_unsigned(csv, reach->snapshot.number);
        csv_position(csv, reach->snapshot.position);
        csv_hex_if(csv, is_block, block.address);
        csv_unsigned_if(csv, is_block, block.size);
        csv_bool(csv, false);
        if (is_block) {
            csv_empty(csv);
        } else {
            struct heap_place place =
                heap_place_of(&referrers->places, referrer->region, referrer->offset);
            report_place_csv(report, csv, &place, true);
        }
        csv_end_row(csv);
    }
}

void csv_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "address,value,snapshot,position,block,size,older,root");
    report->left_out += search->total - search->count;
    for (size_t i = 0; i < search->count; i++) {
        const struct heap_match *match = &search->matches[i];
        const struct heap_block *block = match_block(search, match);
        csv_hex(&csv, match->address);
        csv_hex_if(&csv, data->options->kind != HEAP_SEARCH_PATTERN, match->value);
        csv_unsigned(&csv, match_snapshot(search, match)->number);
        csv_position(&csv, match_snapshot(search, match)->position);
        csv_hex_if(&csv, block, block ? block->address : 0);
        csv_unsigned_if(&csv, block, block ? block->size : 0);
        csv_bool(&csv, is_older(search, match));
        csv_empty(&csv);
        csv_end_row(&csv);
    }
    if (data->referrers)
        csv_pointers(report, &csv, data->referrers);
}
