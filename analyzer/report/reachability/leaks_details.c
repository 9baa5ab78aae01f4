/* SPDX-License-Identifier: MIT */
#include "report/reachability/reachability_reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections/sections.h"

/* Number of ways that are distinguished, and that text shows. Further ones count together. */
#define WAYS_MAX   32
#define WAYS_SHOWN 4

struct way_sum {
    struct heap_way way;
    uint64_t groups;
    uint64_t blocks;
    uint64_t bytes;
};

/* Sums by way, in the order of the largest group of each. The last one has all further ways. */
struct way_sums {
    struct way_sum items[WAYS_MAX];
    size_t count;
};

static const char *const way_names[] = {[HEAP_WAY_INTO] = "into",
                                        [HEAP_WAY_OUTSIDE] = "outside",
                                        [HEAP_WAY_BELOW] = "below",
                                        [HEAP_WAY_SEVERAL] = "several"};

static void way_sum_up(const struct heap_groups *groups, size_t ways_max, struct way_sums *sums)
{
    sums->count = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct heap_group *group = &groups->items[i];
        struct way_sum part = {group->way, 1, group->blocks, group->bytes};
        size_t found = 0;
        if (group->way.kind == HEAP_WAY_NONE)
            continue;
        while (found < sums->count && (sums->items[found].way.kind != group->way.kind ||
                                       sums->items[found].way.offset != group->way.offset))
            found++;
        if (found == ways_max) {
            found--;
            sums->items[found].way = (struct heap_way){.kind = HEAP_WAY_SEVERAL};
        }
        if (found == sums->count)
            sums->items[sums->count++] = (struct way_sum){.way = group->way};
        struct way_sum *sum = &sums->items[found];
        sum->groups += part.groups;
        sum->blocks += part.blocks;
        sum->bytes = heap_add(sum->bytes, part.bytes);
    }
}

static void way_text(struct text_output *output, struct heap_way way)
{
    switch (way.kind) {
    case HEAP_WAY_INTO:
        out_text(output, "held by a pointer ");
        say(output, bytes(way.offset),
            way.offset < UINT32_MAX ? " into the block" : " or more into the block");
        break;
    case HEAP_WAY_OUTSIDE:
        out_text(output, "held by words of the heap outside of blocks");
        break;
    case HEAP_WAY_BELOW:
        out_text(output, "held by others that are possibly lost");
        break;
    default:
        out_text(output, "held in several such ways");
    }
}

size_t leaks_listed(const struct report_leaks *data)
{
    size_t possible = data->leaks->kinds[HEAP_POSSIBLY_LOST].count;
    return data->folds_possible && possible > 1 ? data->groups->count - possible
                                                : data->groups->count;
}

void leaks_possible_text(struct report *report, const struct report_leaks *data)
{
    const struct heap_groups *groups = &data->leaks->kinds[HEAP_POSSIBLY_LOST];
    struct text_output *output = report->output;
    struct way_sums sums;
    if (leaks_listed(data) == data->groups->count)
        return;
    way_sum_up(groups, WAYS_SHOWN, &sums);
    say(output, "\n", BOLD, bytes(groups->bytes), " in ", blocks(groups->blocks), PLAIN,
        " possibly lost");
    report_from_sites(report, groups);
    out_text(output, " (--show possible to list)\n");
    for (size_t i = 0; i < sums.count; i++) {
        say(output, "    ", blocks(sums.items[i].blocks), " ");
        way_text(output, sums.items[i].way);
        out_char(output, '\n');
    }
}

void leaks_way_text(struct report *report, const struct heap_group *group)
{
    if (group->way.kind == HEAP_WAY_NONE)
        return;
    out_text(report->output, "    ");
    way_text(report->output, group->way);
    out_char(report->output, '\n');
}

void row_possible_ways(struct row *row, const struct heap_groups *groups)
{
    struct way_sums sums;
    way_sum_up(groups, WAYS_MAX, &sums);
    row_begin_array(row, "possible_ways");
    for (size_t i = 0; i < sums.count; i++) {
        row_begin_object(row, NULL);
        row_way(row, sums.items[i].way);
        row_unsigned(row, "groups", sums.items[i].groups);
        row_unsigned(row, "blocks", sums.items[i].blocks);
        row_unsigned(row, "bytes", sums.items[i].bytes);
        row_end_object(row);
    }
    row_end_array(row);
}

void row_way(struct row *row, struct heap_way way)
{
    if (row_has(row, "way", way.kind != HEAP_WAY_NONE))
        row_text(row, "way", way_names[way.kind]);
    if (row_has(row, "way_offset", way.kind == HEAP_WAY_INTO))
        row_unsigned(row, "way_offset", way.offset);
}

/* Call sites below a group that are shown. */
#define BELOW_SHOWN 3

/* The largest call sites below a group, and how many more there are. */
struct below_sites {
    struct heap_below largest[BELOW_SHOWN];
    size_t count;
    size_t more;
};

static int below_compare_stacks(const void *a, const void *b)
{
    const struct heap_below *x = a, *y = b;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static int below_compare_sizes(const void *a, const void *b)
{
    const struct heap_below *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return below_compare_stacks(a, b);
}

/* Copies a ring; NULL without memory. */
static struct heap_below *below_copy(const struct heap_below *ring, size_t *count)
{
    const struct heap_below *item = ring;
    *count = 0;
    do {
        ++*count;
        item = item->next;
    } while (item != ring);
    struct heap_below *copy = malloc(*count * sizeof *copy);
    for (size_t i = 0; copy && i < *count; i++, item = item->next)
        copy[i] = *item;
    return copy;
}

/* Sums up a ring by stack, since groups that were joined may have the same one. */
static struct below_sites below_sum(struct report *report, const struct heap_group *group)
{
    struct below_sites sites = {.count = 0};
    size_t count, sums = 0;
    if (!group || !group->below)
        return sites;
    struct heap_below *items = below_copy(group->below, &count);
    if (!items) {
        report->status = TTD_ERROR_NO_MEMORY;
        return sites;
    }
    qsort(items, count, sizeof *items, below_compare_stacks);
    for (size_t i = 1; i < count; i++) {
        if (items[i].stack != items[sums].stack) {
            items[++sums] = items[i];
            continue;
        }
        items[sums].blocks += items[i].blocks;
        items[sums].bytes = heap_add(items[sums].bytes, items[i].bytes);
    }
    sums++;
    qsort(items, sums, sizeof *items, below_compare_sizes);
    sites.count = sums < BELOW_SHOWN ? sums : BELOW_SHOWN;
    sites.more = sums - sites.count;
    memcpy(sites.largest, items, sites.count * sizeof *items);
    free(items);
    return sites;
}

static void details_text_below(struct report *report, const struct heap_group *group)
{
    struct text_output *output = report->output;
    struct below_sites sites = below_sum(report, group);
    for (size_t i = 0; i < sites.count; i++) {
        const struct heap_below *item = &sites.largest[i];
        say(output, i ? "             " : "  below it:  ", bytes(item->bytes), " in ",
            blocks(item->blocks), ", stack #", number(item->stack), ", ");
        report_owner_frame_text(report, item->stack);
        out_char(output, '\n');
    }
    if (!sites.more)
        return;
    say(output, "             … and ", counted(sites.more, "stack"), " more\n");
}

static struct heap_place leak_holder_place(const struct report_leaks *data,
                                           const struct heap_holder *holder)
{
    return heap_place_of(&data->leaks->places, holder->region, holder->offset);
}

static void details_text_holder(struct report *report, const struct report_leaks *data,
                                const struct heap_holder *holder)
{
    struct text_output *output = report->output;
    out_text(output, ", held by ");
    if (!holder->block.address) {
        struct heap_place place = leak_holder_place(data, holder);
        report_place_text(report, &place, true);
        return;
    }
    say(output, "block ", hex(holder->block.address), " of ", bytes(holder->block.size));
}

void leaks_details_text(struct report *report, const struct report_leaks *data,
                        const struct heap_group *group, size_t number)
{
    struct text_output *output = report->output;
    say(output, "  group ", number(number), ":   ",
        group->blocks == 1 ? "block " : "the first is block ", hex(group->address));
    if (group->holder)
        details_text_holder(report, data, group->holder);
    out_char(output, '\n');
    details_text_below(report, group);
}

static void details_row_holder(struct row *row, const struct report_leaks *data,
                               const struct heap_holder *holder)
{
    bool is_root = holder && !holder->block.address;
    struct heap_place place;
    if (is_root)
        place = leak_holder_place(data, holder);
    if (!holder) {
        row_null(row, "holder");
        return;
    }
    if (!row->is_json) {
        if (is_root)
            row_place(row, "holder", &place, true);
        else
            row_hex(row, "holder", holder->block.address);
        return;
    }
    row_begin_object(row, "holder");
    row_text(row, "kind", is_root ? "root" : "block");
    row_block(row, "block", is_root ? NULL : &holder->block);
    if (is_root)
        row_place(row, "root", &place, true);
    else
        row_null(row, "root");
    row_end_object(row);
}

/* Writes the largest call sites below a group; in CSV as texts such as "4096:12". */
static void details_row_below(struct row *row, const struct heap_group *group)
{
    struct below_sites sites = below_sum(row->report, group);
    bool is_field = !row->is_json && row_begin_field(row, "below");
    if (row->is_json)
        row_unsigned(row, "below_stacks", sites.count + sites.more);
    row_begin_array(row, "below");
    for (size_t i = 0; i < sites.count; i++) {
        char text[48];
        row_begin_object(row, NULL);
        row_unsigned(row, "blocks", sites.largest[i].blocks);
        row_unsigned(row, "bytes", sites.largest[i].bytes);
        row_unsigned(row, "stack_id", sites.largest[i].stack);
        row_stack(row, "stack", sites.largest[i].stack);
        row_end_object(row);
        int size = snprintf(text, sizeof text, "%llu:%u",
                            (unsigned long long)sites.largest[i].bytes, sites.largest[i].stack);
        if (is_field)
            row_field_text(row, (struct ttd_string){text, (size_t)size}, !i);
    }
    row_end_array(row);
    if (is_field)
        row_end_field(row);
}

void row_leak_details(struct row *row, const struct report_leaks *data,
                      const struct heap_group *group, size_t number)
{
    row_unsigned_if(row, "group", group, number);
    row_hex_if(row, "address", group, group ? group->address : 0);
    if (!row->is_json || group->kind == HEAP_POSSIBLY_LOST ||
        report_leak_kinds[group->kind].held_by)
        details_row_holder(row, data, group ? group->holder : NULL);
    if (!row->is_json || (data->leaks->snapshot.number && group->kind == HEAP_DEFINITELY_LOST))
        details_row_below(row, group);
}
