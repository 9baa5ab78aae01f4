/* SPDX-License-Identifier: MIT */
#include "report/reachability/leaks_possible.h"

/* Ways that are told apart, and those that text shows. Further ones count together. */
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

static void way_add(struct way_sum *sum, const struct way_sum *part)
{
    sum->groups += part->groups;
    sum->blocks += part->blocks;
    sum->bytes = heap_add(sum->bytes, part->bytes);
}

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
        way_add(&sums->items[found], &part);
    }
}

static void way_text(struct text_output *output, struct heap_way way)
{
    switch (way.kind) {
    case HEAP_WAY_INTO:
        out_text(output, "held by a pointer ");
        report_count(output, way.offset, "byte");
        out_text(output, way.offset < UINT32_MAX ? " into the block" : " or more into the block");
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
    out_char(output, '\n');
    out_bold(output);
    report_count(output, groups->bytes, "byte");
    out_text(output, " in ");
    report_count(output, groups->blocks, "block");
    out_plain(output);
    out_text(output, " possibly lost");
    report_from_sites(report, groups);
    out_text(output, " (--show possible to list)\n");
    for (size_t i = 0; i < sums.count; i++) {
        out_text(output, "    ");
        report_count(output, sums.items[i].blocks, "block");
        out_char(output, ' ');
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

static void way_json(struct json *json, struct heap_way way)
{
    json_text(json, "way", way_names[way.kind]);
    if (way.kind == HEAP_WAY_INTO)
        json_unsigned(json, "way_offset", way.offset);
}

void leaks_possible_json(struct json *json, const struct heap_groups *groups)
{
    struct way_sums sums;
    way_sum_up(groups, WAYS_MAX, &sums);
    json_begin_array(json, "possible_ways");
    for (size_t i = 0; i < sums.count; i++) {
        json_begin_object(json, NULL);
        way_json(json, sums.items[i].way);
        json_unsigned(json, "groups", sums.items[i].groups);
        json_unsigned(json, "blocks", sums.items[i].blocks);
        json_unsigned(json, "bytes", sums.items[i].bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

void leaks_way_json(struct json *json, const struct heap_group *group)
{
    if (group->way.kind != HEAP_WAY_NONE)
        way_json(json, group->way);
}

void leaks_way_csv(struct csv *csv, const struct heap_group *group)
{
    enum heap_way_kind kind = group ? group->way.kind : HEAP_WAY_NONE;
    csv_text(csv, kind == HEAP_WAY_NONE ? "" : way_names[kind]);
    csv_count(csv, kind == HEAP_WAY_INTO ? group->way.offset : TTD_UNKNOWN);
}
