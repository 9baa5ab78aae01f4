/* SPDX-License-Identifier: MIT */
/* The report of `referrers`: a tree of the words that point at a block. */
#include "report/reachability/reachability_reports.h"
#include "report/sections/place.h"
#include "reach/in_flight.h"

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

static void text_flags(struct text_output *output, const struct heap_referrer *referrer)
{
    if (referrer->target_offset && referrer->kind != HEAP_REFERRER_CHAIN)
        out_format(output, ", to its byte %llu", (unsigned long long)referrer->target_offset);
    if (referrer->flags & GRAPH_STALE)
        out_text(output, ", perhaps a stale word");
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
    report_position_text(report, earlier->released.position);
    out_format(output, " in thread %u, ", earlier->released.thread);
    report_owner_frame_text(report, earlier->released.stack);
    out_char(output, '\n');
}

static void text_referrer(struct report *report, const struct heap_referrers *referrers,
                          const struct heap_referrer *referrer)
{
    struct text_output *output = report->output;
    /* One step further in than the block itself, which is the first line. */
    for (uint32_t i = 0; i <= referrer->depth; i++)
        out_text(output, "  ");
    if (referrer->kind == HEAP_REFERRER_MORE) {
        out_text(output, "… and ");
        report_count(output, referrer->count, "pointer");
        out_text(output, " more (--limit)\n");
        return;
    }
    if (referrer->kind == HEAP_REFERRER_RELIC) {
        out_text(output, "released memory, which holds nothing");
    } else if (referrer->kind == HEAP_REFERRER_ROOT) {
        struct heap_place place = referrer_place(referrers, referrer);
        report_place_text(report, &place, true);
    } else if (referrer->kind == HEAP_REFERRER_CHAIN) {
        out_text(output, "… through ");
        report_count(output, referrer->count, "block");
        out_text(output, " like it, each pointed at by the next, up to ");
        out_hex(output, heap_nodes_address(&referrers->reach.nodes, referrer->node));
    } else {
        if (referrer->offset == REACH_LIES_WITHIN)
            out_text(output, "within it, ");
        else if (referrer->offset == REACH_CONTINUES)
            out_text(output, "being reallocated from ");
        else
            out_format(output, "byte %llu of ", (unsigned long long)referrer->offset);
        report_node_text(report, &referrers->reach, referrer->node);
    }
    text_flags(output, referrer);
    uint64_t address = heap_referrer_address(referrers, referrer);
    if (address != TTD_UNKNOWN) {
        out_text(output, ", word at ");
        out_hex(output, address);
    }
    out_char(output, '\n');
    text_referrer_earlier(report, referrer, address);
}

/* The words of released memory that are not listed. */
static uint64_t relics_left_out(const struct heap_referrers *referrers)
{
    uint64_t count = referrers->relic_count;
    for (size_t i = 0; i < referrers->count; i++)
        count -= referrers->lines[i].kind == HEAP_REFERRER_RELIC;
    return count;
}

static void text_lines(struct report *report, const struct heap_referrers *referrers)
{
    uint64_t left_out = relics_left_out(referrers);
    for (size_t i = 0; i < referrers->count; i++)
        text_referrer(report, referrers, &referrers->lines[i]);
    if (!left_out)
        return;
    out_text(report->output, "  … and ");
    report_count(report->output, left_out, "word");
    out_text(report->output, " more of released memory (--limit)\n");
}

/* A block that nothing leads to may still have pointers: from other lost blocks. */
static void text_referrer_total(struct text_output *output, const struct heap_referrers *referrers)
{
    report_count(output, referrers->total, "pointer");
    out_text(output, referrers->total == 1 ? " points at it" : " point at it");
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
    text_lines(report, referrers);
}

static void text_target(struct report *report, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    struct heap_block copy;
    const struct heap_block *block = referrer_block(referrers, referrers->target, &copy);
    struct text_output *output = report->output;
    out_bold(output);
    out_hex(output, data->address);
    if (!block) {
        out_text(output, " is in no block that was live");
        out_plain(output);
        out_char(output, '\n');
        return;
    }
    if (data->address == block->address)
        out_text(output, " is block ");
    else
        out_format(output, " is byte %llu of block ",
                   (unsigned long long)(data->address - block->address));
    report_node_text(report, &referrers->reach, referrers->target);
    out_plain(output);
    out_char(output, '\n');
    text_referrer_total(output, referrers);
    out_char(output, '\n');
}

void text_referrers(struct report *report, const struct report_referrers *data)
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
        out_format(report->output, "Group %llu of leaks, ", (unsigned long long)data->number);
        report_count(report->output, data->group->bytes, "byte");
        out_text(report->output, " in ");
        report_count(report->output, data->group->blocks, "block");
        out_format(report->output, " %s\n", report_leak_kinds[data->group->kind].text);
    }
    text_target(report, data);
    text_lines(report, referrers);
}

static void json_referrer(struct report *report, struct json *json,
                          const struct heap_referrers *referrers,
                          const struct heap_referrer *referrer)
{
    static const char *const kinds[] = {"block", "root", "more", "chain", "relic"};
    bool is_root = referrer->kind == HEAP_REFERRER_ROOT || referrer->kind == HEAP_REFERRER_RELIC;
    const struct heap_owner *earlier = referrer->earlier;
    /* A line that counts further pointers is about no single word. */
    bool is_word = referrer->kind != HEAP_REFERRER_MORE;
    struct heap_block copy;
    json_begin_object(json, NULL);
    json_text(json, "kind", kinds[referrer->kind]);
    json_unsigned(json, "depth", referrer->depth);
    report_block_json(report, json, "block", referrer_block(referrers, referrer->node, &copy));
    json_name(json, "class", report_node_class(report, &referrers->reach, referrer->node));
    if (is_root) {
        struct heap_place place = referrer_place(referrers, referrer);
        report_place_json(report, json, "root", &place, true);
    } else {
        json_null(json, "root");
    }
    uint64_t address = heap_referrer_address(referrers, referrer);
    json_hex_if(json, "address", address != TTD_UNKNOWN, address);
    json_count(json, "offset", referrer_offset(referrer));
    json_count(json, "target_offset", is_word ? referrer->target_offset : TTD_UNKNOWN);
    json_bool(json, "interior", referrer->flags & GRAPH_INTERIOR);
    json_bool(json, "stale", referrer->flags & GRAPH_STALE);
    json_count(json, "distance",
               is_word && referrer->distance != GRAPH_NONE ? referrer->distance : TTD_UNKNOWN);
    json_bool(json, "repeated", referrer->is_repeated);
    json_bool(json, "cut", referrer->is_too_deep);
    /* Only lines that stand for several pointers count them. */
    json_unsigned(json, "pointers", referrer->count ? referrer->count : 1);
    report_block_json(report, json, "earlier_block", earlier ? &earlier->block : NULL);
    if (earlier)
        report_call_json(report, json, "earlier_released", &earlier->released);
    else
        json_null(json, "earlier_released");
    json_end_object(json);
}

/* Writes the members about the words that point at the block. */
static void json_pointers(struct report *report, struct json *json,
                          const struct heap_referrers *referrers)
{
    json_count(json, "distance",
               referrers->distance == GRAPH_NONE ? TTD_UNKNOWN : referrers->distance);
    json_unsigned(json, "total_pointers", referrers->total);
    json_unsigned(json, "total_relics", referrers->relic_count);
    json_begin_array(json, "referrers");
    for (size_t i = 0; i < referrers->count; i++)
        json_referrer(report, json, referrers, &referrers->lines[i]);
    json_end_array(json);
}

void report_pointers_json(struct report *report, struct json *json, const char *key,
                          const struct heap_referrers *referrers)
{
    if (!referrers) {
        json_null(json, key);
        return;
    }
    json_begin_object(json, key);
    report_snapshot_json(json, "snapshot", &referrers->reach.snapshot);
    json_pointers(report, json, referrers);
    json_end_object(json);
}

void json_referrers(struct report *report, const struct report_referrers *data)
{
    const struct heap_referrers *referrers = data->referrers;
    const struct ttd_snapshot *snapshot = &referrers->reach.snapshot;
    struct heap_block copy;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_hex(&json, "address", data->address);
    json_count(&json, "group", data->group ? data->number : TTD_UNKNOWN);
    report_certainty_json(report, &json);
    report_snapshot_json(&json, "snapshot", snapshot->number ? snapshot : NULL);
    report_block_json(report, &json, "block", referrer_block(referrers, referrers->target, &copy));
    json_pointers(report, &json, referrers);
    json_end_object(&json);
}

static void csv_earlier(struct report *report, struct csv *csv, const struct heap_owner *earlier)
{
    csv_hex_if(csv, earlier, earlier ? earlier->block.address : 0);
    csv_unsigned_if(csv, earlier, earlier ? earlier->block.size : 0);
    report_stack_csv(report, csv, earlier ? earlier->block.stack : TTD_NONE);
    csv_position(csv, earlier ? earlier->released.position : ttd_position_invalid());
    report_stack_csv(report, csv, earlier ? earlier->released.stack : TTD_NONE);
}

void csv_referrers(struct report *report, const struct report_referrers *data)
{
    static const char *const kinds[] = {"block", "root", "more", "chain", "relic"};
    const struct heap_referrers *referrers = data->referrers;
    struct csv csv;
    report_csv_begin(report, &csv);
    report->left_out += relics_left_out(referrers);
    csv_header(&csv, "depth,kind,block,size,root,address,offset,target_offset,stale,pointers,"
                     "earlier_block,earlier_size,earlier_stack,earlier_released,"
                     "earlier_released_stack");
    for (size_t i = 0; i < referrers->count; i++) {
        const struct heap_referrer *referrer = &referrers->lines[i];
        struct heap_block copy;
        const struct heap_block *block = referrer_block(referrers, referrer->node, &copy);
        bool is_word = referrer->kind != HEAP_REFERRER_MORE;
        csv_unsigned(&csv, referrer->depth);
        csv_text(&csv, kinds[referrer->kind]);
        csv_hex_if(&csv, block, block ? block->address : 0);
        csv_unsigned_if(&csv, block, block ? block->size : 0);
        if (referrer->kind == HEAP_REFERRER_ROOT || referrer->kind == HEAP_REFERRER_RELIC) {
            struct heap_place place = referrer_place(referrers, referrer);
            report_place_csv(report, &csv, &place, true);
        } else {
            csv_empty(&csv);
        }
        uint64_t address = heap_referrer_address(referrers, referrer);
        csv_hex_if(&csv, address != TTD_UNKNOWN, address);
        csv_count(&csv, referrer_offset(referrer));
        csv_unsigned_if(&csv, is_word, referrer->target_offset);
        csv_bool(&csv, referrer->flags & GRAPH_STALE);
        csv_unsigned(&csv, referrer->count ? referrer->count : 1);
        csv_earlier(report, &csv, referrer->earlier);
        csv_end_row(&csv);
    }
}
