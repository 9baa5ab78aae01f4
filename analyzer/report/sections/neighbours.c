/* SPDX-License-Identifier: MIT */
/* The blocks beside an address, which often tell whose pointer has gone astray. */
#include "report/sections/sections.h"

static void text_one(struct report *report, const struct heap_neighbour *block, uint64_t apart,
                     bool is_before)
{
    struct text_output *output = report->output;
    if (!block->address)
        return;
    out_text(output, is_before ? "  the block before it, at " : "  the block behind it, at ");
    out_hex(output, block->address);
    out_text(output, is_before ? ", begins " : ", ");
    report_count(output, apart, "byte");
    out_text(output, is_before ? " before it and has " : " behind it, has ");
    report_count(output, block->size, "byte");
    out_char(output, '\n');
    report_call_text(report, "allocated", &block->allocated);
}

void report_neighbours_text(struct report *report, const struct heap_neighbours *neighbours,
                            uint64_t address)
{
    text_one(report, &neighbours->before, address - neighbours->before.address, true);
    text_one(report, &neighbours->after, neighbours->after.address - address, false);
}

static void json_one(struct report *report, struct json *json, const char *key,
                     const struct heap_neighbour *block)
{
    if (!block->address) {
        json_null(json, key);
        return;
    }
    json_begin_object(json, key);
    json_hex(json, "address", block->address);
    json_unsigned(json, "size", block->size);
    report_call_json(report, json, "allocated", &block->allocated);
    json_end_object(json);
}

void report_neighbours_json(struct report *report, struct json *json,
                            const struct heap_neighbours *neighbours)
{
    json_one(report, json, "before", &neighbours->before);
    json_one(report, json, "after", &neighbours->after);
}
