/* SPDX-License-Identifier: MIT */
/* The report of `find`. */
#include "report/memory/memory_reports.h"

#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"

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
static bool find_is_older(const struct heap_search *search, const struct heap_match *match)
{
    const struct heap_block *block = match_block(search, match);
    return block &&
           ttd_position_compare(match_snapshot(search, match)->position, block->allocated) < 0;
}

static void find_text_match(struct report *report, const struct report_search *data,
                            const struct heap_match *match)
{
    const struct heap_search *search = data->search;
    const struct heap_block *block = match_block(search, match);
    struct text_output *output = report->output;
    say(output, "  ", hex(match->address));
    if (data->options->kind == HEAP_SEARCH_POINTER)
        say(output, " has ", hex(match->value));
    if (block) {
        say(output, ", ", bytes(match->address - block->address), " into block ");
        report_block_text(report, block);
        if (find_is_older(search, match))
            out_text(output, "; the snapshot is older than this block");
    } else {
        out_text(output, ", in no live block");
    }
    out_char(output, '\n');
}

/* Writes the pages that were searched, and the snapshots that the matches are of. */
static void find_text_scope(struct report *report, const struct heap_search *search)
{
    struct text_output *output = report->output;
    if (!search->searched && !search->unreadable) {
        out_text(output, "The trace has no snapshot of memory at this position or before\n");
        return;
    }
    say(output, bytes(search->searched), " searched");
    if (search->unreadable)
        say(output, "; ", bytes(search->unreadable), " could not be read");
    out_char(output, '\n');
}

static void text_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct text_output *output = report->output;
    /* Without snapshots of memory, references alone may answer. */
    if (search->searched || search->unreadable || !data->referrers) {
        say(output, BOLD, counted(search->total, "place"), " at ",
            moment(report, search->outcome.position), PLAIN, "\n");
        find_text_scope(report, search);
    }
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
        find_text_match(report, data, match);
    }
    if (search->total > search->count)
        say(output, "… and ", counted(search->total - search->count, "place"),
            " more (--limit 0 for all)\n");
    if (data->referrers)
        report_pointers_text(report, data->referrers);
}

static void find_json_match(struct row *row, const struct report_search *data,
                            const struct heap_match *match)
{
    const struct heap_search *search = data->search;
    row_hex(row, "address", match->address);
    row_hex_if(row, "value", data->options->kind != HEAP_SEARCH_PATTERN, match->value);
    row_snapshot(row, "snapshot", match_snapshot(search, match));
    row_block(row, "block", match_block(search, match));
    row_bool(row, "is_older_than_block", find_is_older(search, match));
}

static void json_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct row row;
    row_open(&row, report);
    row_position(&row, "position", search->outcome.position);
    row_certainty(&row);
    row_unsigned(&row, "searched_bytes", search->searched);
    row_unsigned(&row, "unreadable_bytes", search->unreadable);
    row_block(&row, "target", search->target);
    row_pointers(&row, "pointers", data->referrers);
    row_unsigned(&row, "total_places", search->total);
    ROW_EACH(&row, "places", struct heap_match, match, search->matches, search->count)
    find_json_match(&row, data, match);
    row_end_object(&row);
}

/* A word as a row of CSV: one that the search found, or one that a snapshot of references lists. */
struct csv_word {
    bool has_address;
    uint64_t address;
    bool has_value;
    uint64_t value;
    const struct ttd_snapshot *snapshot;
    const struct heap_block *block;
    bool is_older;
    /** NULL for a word in a block, and for what the search found. */
    const struct heap_place *root;
};

static void find_csv_word(struct row *row, const struct csv_word *word)
{
    row_hex_if(row, "address", word->has_address, word->address);
    row_hex_if(row, "value", word->has_value, word->value);
    row_unsigned(row, "snapshot", word->snapshot->number);
    row_position(row, "position", word->snapshot->position);
    row_hex_if(row, "block", word->block, word->block ? word->block->address : 0);
    row_unsigned_if(row, "size", word->block, word->block ? word->block->size : 0);
    row_bool(row, "older", word->is_older);
    if (row_has(row, "root", word->root))
        row_place(row, "root", word->root, true);
    row_end_record(row);
}

/* Writes the words that point at the block by the snapshot of references. A register has no
 * address. */
static void find_csv_pointers(struct row *row, const struct heap_referrers *referrers)
{
    const struct heap_reach *reach = &referrers->reach;
    uint64_t target = heap_nodes_address(&reach->nodes, referrers->target);
    for (size_t i = 0; i < referrers->count; i++) {
        const struct heap_referrer *referrer = &referrers->lines[i];
        struct heap_block block;
        struct heap_place place;
        if (referrer->kind == HEAP_REFERRER_MORE)
            row->report->left_out += referrer->count;
        if (referrer->kind != HEAP_REFERRER_BLOCK && referrer->kind != HEAP_REFERRER_ROOT)
            continue;
        struct csv_word word = {.has_value = referrer->target_offset < UINT32_MAX,
                                .value = target + referrer->target_offset,
                                .snapshot = &reach->snapshot};
        if (referrer->kind == HEAP_REFERRER_BLOCK) {
            block = heap_nodes_block(&reach->nodes, referrer->node);
            word.block = &block;
            word.has_address = true;
            word.address = block.address + referrer->offset;
        } else {
            const struct ttd_region *region = heap_reach_region(reach, referrer->region);
            place = heap_place_of(&referrers->places, referrer->region, referrer->offset);
            word.root = &place;
            word.has_address = region && region->kind != TTD_REGION_REGISTERS;
            word.address = (region ? region->begin : 0) + referrer->offset;
        }
        row_begin_record(row);
        find_csv_word(row, &word);
    }
}

static void csv_find(struct report *report, const struct report_search *data)
{
    static const struct ttd_snapshot no_snapshot;
    const struct heap_search *search = data->search;
    struct row row;
    row_open(&row, report);
    row_begin_header(&row);
    find_csv_word(&row, &(struct csv_word){.snapshot = &no_snapshot});
    report->left_out += search->total - search->count;
    for (size_t i = 0; i < search->count; i++) {
        const struct heap_match *match = &search->matches[i];
        row_begin_record(&row);
        find_csv_word(&row,
                      &(struct csv_word){.has_address = true,
                                         .address = match->address,
                                         .has_value = data->options->kind != HEAP_SEARCH_PATTERN,
                                         .value = match->value,
                                         .snapshot = match_snapshot(search, match),
                                         .block = match_block(search, match),
                                         .is_older = find_is_older(search, match)});
    }
    if (data->referrers)
        find_csv_pointers(&row, data->referrers);
}

void report_matches(struct report *report, const struct report_search *data)
{
    if (report->form == REPORT_TEXT)
        text_find(report, data);
    else if (report->form == REPORT_JSON)
        json_find(report, data);
    else
        csv_find(report, data);
}
