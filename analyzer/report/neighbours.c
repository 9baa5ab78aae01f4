/* SPDX-License-Identifier: MIT */
#include "report/format.h"

static void text_one(struct report *to, const struct heap_neighbour *block, uint64_t apart,
                     bool is_before)
{
    struct out *output = to->output;
    if (!block->address)
        return;
    out_text(output, is_before ? "  the block before it, at " : "  the block behind it, at ");
    out_hex(output, block->address);
    out_text(output, is_before ? ", begins " : ", ");
    report_count(output, apart, "byte");
    out_text(output, is_before ? " before it and has " : " behind it, has ");
    report_count(output, block->size, "byte");
    out_char(output, '\n');
    report_place_text(to, "allocated", &block->allocated);
}

void report_neighbours_text(struct report *to, const struct heap_neighbours *neighbours,
                            uint64_t address)
{
    text_one(to, &neighbours->before, address - neighbours->before.address, true);
    text_one(to, &neighbours->after, neighbours->after.address - address, false);
}

static void json_one(struct report *to, struct json *writer, const char *key,
                     const struct heap_neighbour *block)
{
    if (!block->address) {
        json_null(writer, key);
        return;
    }
    json_begin_object(writer, key);
    json_hex(writer, "address", block->address);
    json_unsigned(writer, "size", block->size);
    report_place_json(to, writer, "allocated", &block->allocated);
    json_end_object(writer);
}

void report_neighbours_json(struct report *to, struct json *writer,
                            const struct heap_neighbours *neighbours)
{
    json_one(to, writer, "before", &neighbours->before);
    json_one(to, writer, "after", &neighbours->after);
}
