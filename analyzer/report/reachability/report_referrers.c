/* SPDX-License-Identifier: MIT */
/* The report of `referrers`: a tree of the words that point at a block. */
#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"

/* Copies the block of a node. Returns the copy, or NULL for GRAPH_NONE. */
static const struct heap_block *referrer_block(const struct heap_referrers *referrers,
                                               uint32_t node, struct heap_block *copy)
{
    if (node == GRAPH_NONE)
        return NULL;
    *copy = heap_nodes_block(&referrers->reach.nodes, node);
    return copy;
}

static struct heap_place referrer_place(const struct heap_referrers *referrers,
                                        const struct heap_referrer *referrer)
{
    return heap_place_of(&referrers->places, referrer->region, referrer->offset);
}

static void referrers_text_flags(struct text_output *output, const struct heap_referrer *referrer)
{
    if (referrer->target_offset && referrer->kind != HEAP_REFERRER_CHAIN)
        out_format(output, ", to its byte %llu", (unsigned long long)referrer->target_offset);
    if (referrer->flags & GRAPH_STALE)
        out_text(output, referrer->kind == HEAP_REFERRER_CHAIN ? ", perhaps by a stale word"
                                                               : ", perhaps a stale word");
    if (referrer->is_repeated)
        out_text(output, ", see above");
    if (referrer->is_too_deep)
        out_text(output, ", … (--depth)");
}

/* The offset of the word; TTD_UNKNOWN where there is none. */
static uint64_t referrer_offset(const struct heap_referrer *referrer)
{
    bool is_word = referrer->kind != HEAP_REFERRER_MORE && referrer->offset < REACH_CONTINUES;
    return is_word ? referrer->offset : TTD_UNKNOWN;
}

/* Writes the block that had a word before, and its release, each in a line below the word's. */
static void text_referrer_earlier(struct report *report, const struct heap_referrer *referrer,
                                  uint64_t address)
{
    const struct heap_owner *earlier = referrer->earlier;
    struct text_output *output = report->output;
    int indent = 2 * (int)referrer->depth + 4;
    if (!earlier)
        return;
    out_format(output, "%*swas byte %llu of ", indent, "",
               (unsigned long long)(address - earlier->block.address));
    report_block_text(report, &earlier->block);
    if (earlier->overlapped)
        out_format(output, "\n%*sits release is missing; another block was there at ", indent, "");
    else
        out_format(output, "\n%*sreleased by %s() at ", indent, "",
                   ttd_api_name(earlier->released.api));
    say(output, moment(report, earlier->released.position), " in thread ",
        number(earlier->released.thread), ", ");
    report_owner_frame_text(report, earlier->released.stack);
    out_char(output, '\n');
}

static void text_referrer(struct report *report, const struct heap_referrers *referrers,
                          const struct heap_referrer *referrer)
{
    struct text_output *output = report->output;
    /* One step further in than the block itself, on the first line. */
    for (uint32_t i = 0; i <= referrer->depth; i++)
        out_text(output, "  ");
    if (referrer->kind == HEAP_REFERRER_MORE) {
        say(output, "… and ", counted(referrer->count, "pointer"), " more (--limit)\n");
        return;
    }
    if (referrer->kind == HEAP_REFERRER_RELIC) {
        out_text(output, "released memory, which holds nothing");
    } else if (referrer->kind == HEAP_REFERRER_ROOT) {
        struct heap_place place = referrer_place(referrers, referrer);
        report_place_text(report, &place, true);
    } else if (referrer->kind == HEAP_REFERRER_CHAIN) {
        say(output, "… through ", blocks(referrer->count),
            " like it, each pointed at by the next, up to ",
            hex(heap_nodes_address(&referrers->reach.nodes, referrer->node)));
    } else {
        if (referrer->offset == REACH_LIES_WITHIN)
            out_text(output, "within it, ");
        else if (referrer->offset == REACH_CONTINUES)
            out_text(output, "being reallocated from ");
        else
            out_format(output, "byte %llu of ", (unsigned long long)referrer->offset);
        report_node_text(report, &referrers->reach, referrer->node);
    }
    referrers_text_flags(output, referrer);
    uint64_t address = heap_referrer_address(referrers, referrer);
    if (address != TTD_UNKNOWN)
        say(output, ", word at ", hex(address));
    out_char(output, '\n');
    text_referrer_earlier(report, referrer, address);
}

/* The words of released memory that are not listed. */
static uint64_t referrers_relics_left_out(const struct heap_referrers *referrers)
{
    uint64_t count = referrers->relic_count;
    for (size_t i = 0; i < referrers->count; i++)
        count -= referrers->lines[i].kind == HEAP_REFERRER_RELIC;
    return count;
}

static void referrers_text_lines(struct report *report, const struct heap_referrers *referrers)
{
    uint64_t left_out = referrers_relics_left_out(referrers);
    for (size_t i = 0; i < referrers->count; i++)
        text_referrer(report, referrers, &referrers->lines[i]);
    if (!left_out)
        return;
    say(report->output, "  … and ", counted(left_out, "word"),
        " more of released memory (--limit)\n");
}

/* A block that nothing leads to may still have pointers: from other lost blocks. */
static void text_referrer_total(struct text_output *output, const struct heap_referrers *referrers)
{
    say(output, counted(referrers->total, "pointer"),
        referrers->total == 1 ? " points at it" : " point at it");
    if (referrers->distance == GRAPH_NONE)
        out_text(output, "; nothing leads to it from a variable, stack, register or mapping");
}

void report_pointers_text(struct report *report, const struct heap_referrers *referrers)
{
    struct text_output *output = report->output;
    out_text(output, "By ");
    report_snapshot_text(report, &referrers->reach.snapshot);
    out_text(output, ", ");
    text_referrer_total(output, referrers);
    out_char(output, '\n');
    referrers_text_lines(report, referrers);
}

static void referrers_text_target(struct report *report, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    struct heap_block copy;
    const struct heap_block *block = referrer_block(referrers, referrers->target, &copy);
    struct text_output *output = report->output;
    say(output, BOLD, hex(data->address));
    if (!block) {
        say(output, " is in no block that was live", PLAIN, "\n");
        return;
    }
    if (data->address == block->address)
        out_text(output, " is block ");
    else
        out_format(output, " is byte %llu of block ",
                   (unsigned long long)(data->address - block->address));
    report_node_text(report, &referrers->reach, referrers->target);
    say(output, PLAIN, "\n");
    text_referrer_total(output, referrers);
    out_char(output, '\n');
}

static void text_referrers(struct report *report, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    if (!referrers->reach.snapshot.number) {
        report_no_snapshot_text(report);
        report_certainty_text(report);
        return;
    }
    out_text(report->output, "By ");
    report_snapshot_text(report, &referrers->reach.snapshot);
    out_char(report->output, '\n');
    report_certainty_text(report);
    if (data->group) {
        if (data->number)
            out_format(report->output, "Group %llu of leaks, ", (unsigned long long)data->number);
        else
            out_text(report->output, "The largest group of live blocks, ");
        say(report->output, bytes(data->group->bytes), " in ", blocks(data->group->blocks), " ",
            report_leak_kinds[data->group->kind].text, "\n");
    }
    referrers_text_target(report, data);
    referrers_text_lines(report, referrers);
}

static void referrers_row_root(struct row *row, const struct heap_referrers *referrers,
                               const struct heap_referrer *referrer)
{
    if (referrer->kind != HEAP_REFERRER_ROOT && referrer->kind != HEAP_REFERRER_RELIC) {
        row_null(row, "root");
        return;
    }
    struct heap_place place = referrer_place(referrers, referrer);
    row_place(row, "root", &place, true);
}

static const char *const referrer_kinds[] = {"block", "root", "more", "chain", "relic"};

static void json_referrer(struct row *row, const struct heap_referrers *referrers,
                          const struct heap_referrer *referrer)
{
    const struct heap_owner *earlier = referrer->earlier;
    /* A line that counts further pointers is about no single word. */
    bool is_word = referrer->kind != HEAP_REFERRER_MORE;
    struct heap_block copy;
    row_begin_object(row, NULL);
    row_text(row, "kind", referrer_kinds[referrer->kind]);
    row_unsigned(row, "depth", referrer->depth);
    row_block(row, "block", referrer_block(referrers, referrer->node, &copy));
    row_name(row, "class", report_node_class(row->report, &referrers->reach, referrer->node));
    referrers_row_root(row, referrers, referrer);
    uint64_t address = heap_referrer_address(referrers, referrer);
    row_hex_if(row, "address", address != TTD_UNKNOWN, address);
    row_count(row, "offset", referrer_offset(referrer));
    row_count(row, "target_offset", is_word ? referrer->target_offset : TTD_UNKNOWN);
    row_bool(row, "interior", referrer->flags & GRAPH_INTERIOR);
    row_bool(row, "stale", referrer->flags & GRAPH_STALE);
    row_count(row, "distance",
              is_word && referrer->distance != GRAPH_NONE ? referrer->distance : TTD_UNKNOWN);
    row_bool(row, "repeated", referrer->is_repeated);
    row_bool(row, "cut", referrer->is_too_deep);
    /* Only lines that stand for several pointers count them. */
    row_unsigned(row, "pointers", referrer->count ? referrer->count : 1);
    row_block(row, "earlier_block", earlier ? &earlier->block : NULL);
    if (earlier)
        row_call(row, "earlier_released", &earlier->released);
    else
        row_null(row, "earlier_released");
    row_end_object(row);
}

/* Writes the members about the words that point at the block. */
static void referrers_json_pointers(struct row *row, const struct heap_referrers *referrers)
{
    row_count(row, "distance",
              referrers->distance == GRAPH_NONE ? TTD_UNKNOWN : referrers->distance);
    row_unsigned(row, "total_pointers", referrers->total);
    row_unsigned(row, "total_relics", referrers->relic_count);
    row_begin_array(row, "referrers");
    for (size_t i = 0; i < referrers->count; i++)
        json_referrer(row, referrers, &referrers->lines[i]);
    row_end_array(row);
}

void row_pointers(struct row *row, const char *key, const struct heap_referrers *referrers)
{
    if (!referrers) {
        row_null(row, key);
        return;
    }
    row_begin_object(row, key);
    row_snapshot(row, "snapshot", &referrers->reach.snapshot);
    referrers_json_pointers(row, referrers);
    row_end_object(row);
}

static void json_referrers(struct row *row, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    const struct ttd_snapshot *snapshot = &referrers->reach.snapshot;
    struct heap_block copy;
    row_hex(row, "address", data->address);
    row_count(row, "group", data->group && data->number ? data->number : TTD_UNKNOWN);
    row_certainty(row);
    row_snapshot(row, "snapshot", snapshot->number ? snapshot : NULL);
    row_block(row, "block", referrer_block(referrers, referrers->target, &copy));
    referrers_json_pointers(row, referrers);
}

static void referrers_csv_earlier(struct row *row, const struct heap_owner *earlier)
{
    row_hex_if(row, "earlier_block", earlier, earlier ? earlier->block.address : 0);
    row_unsigned_if(row, "earlier_size", earlier, earlier ? earlier->block.size : 0);
    row_stack(row, "earlier_stack", earlier ? earlier->block.stack : TTD_NONE);
    row_position(row, "earlier_released",
                 earlier ? earlier->released.position : ttd_position_invalid());
    row_stack(row, "earlier_released_stack", earlier ? earlier->released.stack : TTD_NONE);
}

static void csv_referrer(struct row *row, const struct heap_referrers *referrers,
                         const struct heap_referrer *referrer)
{
    struct heap_block copy;
    const struct heap_block *block = NULL;
    uint64_t address = TTD_UNKNOWN;
    if (!row->is_header) {
        block = referrer_block(referrers, referrer->node, &copy);
        address = heap_referrer_address(referrers, referrer);
    }
    row_unsigned(row, "depth", referrer->depth);
    row_text(row, "kind", referrer_kinds[referrer->kind]);
    row_hex_if(row, "block", block, block ? block->address : 0);
    row_unsigned_if(row, "size", block, block ? block->size : 0);
    referrers_row_root(row, referrers, referrer);
    row_hex_if(row, "address", address != TTD_UNKNOWN, address);
    row_count(row, "offset", referrer_offset(referrer));
    row_unsigned_if(row, "target_offset", referrer->kind != HEAP_REFERRER_MORE,
                    referrer->target_offset);
    row_bool(row, "stale", referrer->flags & GRAPH_STALE);
    row_unsigned(row, "pointers", referrer->count ? referrer->count : 1);
    referrers_csv_earlier(row, referrer->earlier);
}

void report_referrers(struct report *report, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_referrers(report, data);
        return;
    }
    row_open(&row, report);
    if (row.is_json) {
        json_referrers(&row, data);
    } else {
        report->left_out += referrers_relics_left_out(referrers);
        ROW_EACH(&row, "referrers", struct heap_referrer, referrer, referrers->lines,
                 referrers->count)
        csv_referrer(&row, referrers, referrer);
    }
    row_end_object(&row);
}
