/* SPDX-License-Identifier: MIT */
/* The reports of `memory`, which shows bytes, the snapshots that have them and the blocks that they
 * lie in, and of `find`. */
#include "report/memory/memory_reports.h"

#include <string.h>

#include "heap/heap_live.h"
#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"

#define ROW 16

/** The state of a dump between two rows. */
struct dump {
    struct report *report;
    struct report_memory *data;
    /** The next block that begins in the range or before. */
    size_t block;
    /** The snapshot that was named last; SIZE_MAX for none. */
    size_t snapshot;
    uint64_t known;
    /** The row before; equal parts are left out. */
    uint8_t row[ROW];
    bool has_row;
    bool is_repeated;
};

/* Takes the next part of the range; false at the end, and when the trace cannot be read. */
static bool memory_dump_take_part(struct contents_cursor *cursor, struct report_memory *data,
                                  struct contents_part *part)
{
    enum ttd_status status = contents_cursor_next(cursor, part, &data->error);
    data->status = status == TTD_END ? TTD_OK : status;
    return status == TTD_OK;
}

static struct contents_cursor memory_dump_begin(struct report_memory *data)
{
    struct heap_memory *memory = data->memory;
    return contents_cursor_begin(&memory->extents, &memory->pages, memory->options.first,
                                 memory->options.last);
}

/* The edge of a block before the byte at an address, or a blank. Between two rows the one that ends
 * stands in the first row, and the one that begins in the second. */
static char memory_edge(const struct heap_memory *memory, uint64_t address, bool can_begin,
                        bool can_end)
{
    const struct heap_block *block = heap_memory_block(memory, address);
    const struct heap_block *before = address ? heap_memory_block(memory, address - 1) : NULL;
    bool begins = can_begin && block && block->address == address;
    bool ends = can_end && before && heap_block_last(before) == address - 1;
    return begins ? ends ? '|' : '[' : ends ? ']' : ' ';
}

/* Names the blocks that begin up to an address, or lie at the begin of the range. */
static void memory_dump_text_blocks(struct dump *dump, const struct contents_part *part,
                                    uint64_t last)
{
    const struct heap_memory *memory = dump->data->memory;
    struct text_output *output = dump->report->output;
    while (dump->block < memory->block_count && memory->blocks[dump->block].address <= last) {
        const struct heap_block *block = &memory->blocks[dump->block++];
        out_text(output, "block ");
        report_block_text(dump->report, block);
        if (heap_memory_is_older(memory, part, block))
            out_text(output, "; the snapshot is older, and has what was there before");
        out_char(output, '\n');
        dump->has_row = false;
    }
}

static void memory_dump_text_snapshot(struct dump *dump, const struct contents_part *part)
{
    if (part->state == CONTENTS_UNKNOWN || dump->snapshot == part->snapshot)
        return;
    dump->snapshot = part->snapshot;
    dump->has_row = false;
    say(dump->report->output, BOLD, "as of ");
    report_snapshot_text(dump->report, &dump->data->memory->snapshots.snapshots[part->snapshot]);
    say(dump->report->output, PLAIN, "\n");
}

/* Writes up to 16 bytes; the first one is at its place in a row. */
static void memory_text_row(struct dump *dump, uint64_t first, const uint8_t *bytes, size_t count)
{
    const struct heap_memory *memory = dump->data->memory;
    struct text_output *output = dump->report->output;
    size_t skipped = first % ROW;
    char text[ROW];
    say(output, hex(first - skipped), tab(20));
    for (size_t i = 0; i < ROW; i++) {
        bool is_there = i >= skipped && i - skipped < count;
        uint64_t offset = first - skipped + i;
        if (i == ROW / 2)
            out_char(output, ' ');
        out_char(output, is_there || i == skipped + count
                             ? memory_edge(memory, offset, is_there, i > 0)
                             : ' ');
        if (is_there)
            out_format(output, "%02x", bytes[i - skipped]);
        else
            out_text(output, "  ");
        uint8_t byte = is_there ? bytes[i - skipped] : ' ';
        text[i] = is_there && (byte < ' ' || byte > '~') ? '.' : (char)byte;
    }
    out_char(output,
             skipped + count == ROW ? memory_edge(memory, first + count, false, true) : ' ');
    out_text(output, "  ");
    out_write(output, text, skipped + count);
    out_char(output, '\n');
}

/* Whether no block begins or ends in a row. */
static bool memory_dump_is_within(const struct heap_memory *memory, uint64_t first)
{
    const struct heap_block *block = heap_memory_block(memory, first);
    return block ? block->address < first && heap_block_last(block) - first >= ROW
                 : !heap_memory_block(memory, first + ROW - 1);
}

/* A row that is the same as the one before, and in the same block, is left out. */
static bool memory_repeats(struct dump *dump, uint64_t first, const uint8_t *bytes, size_t count)
{
    bool is_same = dump->has_row && count == ROW && memcmp(dump->row, bytes, ROW) == 0 &&
                   memory_dump_is_within(dump->data->memory, first);
    dump->has_row = count == ROW;
    if (dump->has_row)
        memcpy(dump->row, bytes, ROW);
    if (is_same && !dump->is_repeated)
        out_text(dump->report->output, "*\n");
    dump->is_repeated = is_same;
    return is_same;
}

static void memory_text_bytes(struct dump *dump, const struct contents_part *part)
{
    uint64_t address = part->first;
    for (;;) {
        uint64_t left = part->last - address;
        size_t room = ROW - address % ROW;
        size_t count = left < room ? (size_t)left + 1 : room;
        const uint8_t *bytes = part->data + (address - part->first);
        memory_dump_text_blocks(dump, part, address + (count - 1));
        if (!memory_repeats(dump, address, bytes, count))
            memory_text_row(dump, address, bytes, count);
        if (left < room)
            return;
        address += count;
    }
}

static void memory_text_part(struct dump *dump, const struct contents_part *part)
{
    static const char *const names[] = {"unknown: no snapshot has it", "not readable",
                                        "unknown: the trace is damaged", "zeros"};
    struct text_output *output = dump->report->output;
    memory_dump_text_snapshot(dump, part);
    if (part->state == CONTENTS_BYTES) {
        memory_text_bytes(dump, part);
        return;
    }
    memory_dump_text_blocks(dump, part, part->last);
    dump->has_row = false;
    say(output, hex(part->first), tab(20), " ", bytes(heap_add(part->last - part->first, 1)), " ",
        names[part->state], "\n");
}

static void text_memory(struct report *report, struct report_memory *data)
{
    const struct heap_memory_options *options = &data->memory->options;
    struct dump dump = {.report = report, .data = data, .snapshot = SIZE_MAX};
    struct contents_cursor cursor = memory_dump_begin(data);
    struct contents_part part;
    say(report->output, BOLD, hex(options->first), " to ", hex(options->last), " at ",
        moment(report, data->memory->outcome.position), PLAIN, "\n");
    report_certainty_text(report);
    while (!report->output->error && memory_dump_take_part(&cursor, data, &part)) {
        memory_text_part(&dump, &part);
        if (part.state == CONTENTS_ZERO || part.state == CONTENTS_BYTES)
            dump.known = heap_add(dump.known, heap_add(part.last - part.first, 1));
    }
    say(report->output, bytes(heap_add(options->last - options->first, 1)), ", of which ",
        grouped(dump.known), " are known\n");
}

static void memory_row_part(struct row *row, const struct heap_memory *memory,
                            const struct contents_part *part)
{
    uint64_t size = heap_add(part->last - part->first, 1);
    const struct ttd_snapshot *snapshot = NULL;
    if (!row->is_header && part->state != CONTENTS_UNKNOWN)
        snapshot = &memory->snapshots.snapshots[part->snapshot];
    row_hex(row, "address", part->first);
    row_unsigned(row, "size", size);
    row_text(row, "state", contents_state_name(part->state));
    if (row->is_json) {
        row_snapshot(row, "snapshot", snapshot);
    } else {
        row_unsigned_if(row, "snapshot", snapshot, snapshot ? snapshot->number : 0);
        row_position(row, "position", snapshot ? snapshot->position : ttd_position_invalid());
    }
    if (part->data)
        row_bytes(row, "bytes", part->data, (size_t)size);
    else
        row_null(row, "bytes");
    row_end_record(row);
}

void report_memory(struct report *report, struct report_memory *data)
{
    const struct heap_memory *memory = data->memory;
    struct contents_part part = {0};
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_memory(report, data);
        return;
    }
    struct contents_cursor cursor = memory_dump_begin(data);
    row_open(&row, report);
    row_position(&row, "position", memory->outcome.position);
    row_certainty(&row);
    row_hex(&row, "address", memory->options.first);
    row_unsigned(&row, "size", heap_add(memory->options.last - memory->options.first, 1));
    row_begin_array(&row, "parts");
    if (row_begin_header(&row))
        memory_row_part(&row, memory, &part);
    while (!report->output->error && memory_dump_take_part(&cursor, data, &part)) {
        row_begin_record(&row);
        memory_row_part(&row, memory, &part);
    }
    row_end_array(&row);
    row_begin_array(&row, "blocks");
    for (size_t i = 0; i < memory->block_count; i++)
        row_block(&row, NULL, &memory->blocks[i]);
    row_end_array(&row);
    row_end_object(&row);
}

/* How certain contents of memory are: by the snapshots that cover the range, or would if they
 * were complete. */

/* Adds the snapshots of moving memory that cover the range, each once. */
static void memory_add_torn(struct certainty *certainty, const struct heap_snapshots *snapshots,
                            const struct contents_extents *extents)
{
    uint32_t told_snapshots[CERTAINTY_REASONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < extents->count && count < CERTAINTY_REASONS_MAX; i++) {
        uint32_t index = extents->extents[i].snapshot;
        size_t earlier = 0;
        while (earlier < count && told_snapshots[earlier] != index)
            earlier++;
        if (earlier < count || snapshots->snapshots[index].flags & TTD_SNAPSHOT_STOPPED)
            continue;
        told_snapshots[count++] = index;
        certainty_add_torn(certainty, &snapshots->snapshots[index]);
    }
}

/* Returns the position of the oldest snapshot that covers a part of the range; the least one if
 * none covers some part. */
static struct ttd_position memory_oldest_of(const struct heap_memory *memory)
{
    const struct contents_extents *extents = &memory->extents;
    uint64_t next = memory->options.first;
    struct ttd_position oldest = ttd_position_max();
    for (size_t i = 0; i < extents->count && extents->extents[i].first <= next; i++) {
        const struct contents_extent *extent = &extents->extents[i];
        struct ttd_position position = memory->snapshots.snapshots[extent->snapshot].position;
        if (ttd_position_compare(position, oldest) < 0)
            oldest = position;
        if (extent->last >= memory->options.last)
            return oldest;
        next = extent->last + 1;
    }
    return ttd_position_min();
}

void report_judge_contents(struct certainty *certainty, const struct heap_memory *memory)
{
    const struct heap_snapshots *snapshots = &memory->snapshots;
    struct ttd_position oldest = memory_oldest_of(memory);
    memory_add_torn(certainty, snapshots, &memory->extents);
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        bool is_incomplete = snapshot->flags & TTD_SNAPSHOT_INCOMPLETE || snapshot->missing;
        /* A snapshot that is older than all extents shown lacks nothing that matters. */
        if (is_incomplete && snapshot->contents & TTD_SNAPSHOT_MEMORY &&
            ttd_position_compare(snapshot->position, memory->options.at) <= 0 &&
            ttd_position_compare(snapshot->position, oldest) >= 0)
            certainty_add_missing(certainty, snapshot);
    }
}

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
static bool memory_find_is_older(const struct heap_search *search, const struct heap_match *match)
{
    const struct heap_block *block = match_block(search, match);
    return block &&
           ttd_position_compare(match_snapshot(search, match)->position, block->allocated) < 0;
}

static void memory_text_match(struct report *report, const struct report_search *data,
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
        if (memory_find_is_older(search, match))
            out_text(output, "; the snapshot is older than this block");
    } else {
        out_text(output, ", in no live block");
    }
    out_char(output, '\n');
}

/* Writes the pages that were searched, and the snapshots that the matches are of. */
static void memory_text_scope(struct report *report, const struct heap_search *search)
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

static void memory_text_find(struct report *report, const struct report_search *data)
{
    const struct heap_search *search = data->search;
    struct text_output *output = report->output;
    /* Without snapshots of memory, references alone may answer. */
    if (search->searched || search->unreadable || !data->referrers) {
        say(output, BOLD, counted(search->total, "place"), " at ",
            moment(report, search->outcome.position), PLAIN, "\n");
        memory_text_scope(report, search);
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
        memory_text_match(report, data, match);
    }
    if (search->total > search->count)
        say(output, "… and ", counted(search->total - search->count, "place"),
            " more (--limit 0 for all)\n");
    if (data->referrers)
        report_pointers_text(report, data->referrers);
}

static void memory_json_match(struct row *row, const struct report_search *data,
                              const struct heap_match *match)
{
    const struct heap_search *search = data->search;
    row_hex(row, "address", match->address);
    row_hex_if(row, "value", data->options->kind != HEAP_SEARCH_PATTERN, match->value);
    row_snapshot(row, "snapshot", match_snapshot(search, match));
    row_block(row, "block", match_block(search, match));
    row_bool(row, "is_older_than_block", memory_find_is_older(search, match));
}

static void memory_json_find(struct report *report, const struct report_search *data)
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
    memory_json_match(&row, data, match);
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
    /** NULL for a word in a block, and for a hit of the search. */
    const struct heap_place *root;
};

static void memory_csv_word(struct row *row, const struct csv_word *word)
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
static void memory_csv_pointers(struct row *row, const struct heap_referrers *referrers)
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
            word.has_address = region && heap_region_has_addresses(region);
            word.address = (region ? region->begin : 0) + referrer->offset;
        }
        row_begin_record(row);
        memory_csv_word(row, &word);
    }
}

static void memory_csv_find(struct report *report, const struct report_search *data)
{
    static const struct ttd_snapshot no_snapshot;
    const struct heap_search *search = data->search;
    struct row row;
    row_open(&row, report);
    row_begin_header(&row);
    memory_csv_word(&row, &(struct csv_word){.snapshot = &no_snapshot});
    report->left_out += search->total - search->count;
    for (size_t i = 0; i < search->count; i++) {
        const struct heap_match *match = &search->matches[i];
        row_begin_record(&row);
        memory_csv_word(&row,
                        &(struct csv_word){.has_address = true,
                                           .address = match->address,
                                           .has_value = data->options->kind != HEAP_SEARCH_PATTERN,
                                           .value = match->value,
                                           .snapshot = match_snapshot(search, match),
                                           .block = match_block(search, match),
                                           .is_older = memory_find_is_older(search, match)});
    }
    if (data->referrers)
        memory_csv_pointers(&row, data->referrers);
}

void report_matches(struct report *report, const struct report_search *data)
{
    if (report->form == REPORT_TEXT)
        memory_text_find(report, data);
    else if (report->form == REPORT_JSON)
        memory_json_find(report, data);
    else
        memory_csv_find(report, data);
}
