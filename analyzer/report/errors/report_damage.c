/* SPDX-License-Identifier: MIT */
/* Damage of the heap: a header of a block that was overwritten. */
#include "report/errors/error_reports.h"

/* Writes the bytes of a header as characters, in the order of their addresses, if all are printable
 * up to those that are 0. */
static void text_characters(struct text_output *output, uint64_t header)
{
    char text[sizeof header + 1] = {0};
    for (size_t i = 0; i < sizeof header; i++)
        text[i] = (char)(header >> 8 * i);
    size_t size = 0;
    while (text[size] >= ' ' && text[size] <= '~')
        size++;
    if (size >= 4 && (size == sizeof header || header >> 8 * size == 0))
        out_format(output, " (\"%s\")", text);
}

static void text_damage_header(struct text_output *output, const struct heap_finding *finding)
{
    out_text(output, "  header ");
    out_hex(output, finding->address);
    out_text(output, " is ");
    out_hex(output, finding->damage.header);
    text_characters(output, finding->damage.header);
    out_format(output, " in snapshot %u\n", finding->damage.snapshot);
}

/* Whether the finding is about a block that was released. */
static bool is_of_released(const struct heap_finding *finding)
{
    return !finding->block_address && finding->neighbours.before.address &&
           finding->neighbours.after.address != finding->address + 8;
}

/* Writes which block the finding is about, and the known facts about its header. */
static void text_damage_subject(struct text_output *output, const struct heap_finding *finding)
{
    bool is_released = is_of_released(finding);
    const struct heap_neighbour *block =
        is_released ? &finding->neighbours.before : &finding->neighbours.after;
    bool has_before = finding->block_address;
    out_text(output, is_released ? "  released block " : "  block ");
    out_hex(output, has_before ? finding->block_address : block->address);
    out_text(output, ", ");
    report_count(output, has_before ? finding->block_size : block->size, "byte");
    if (!has_before && !is_released)
        out_text(output, ": its header was overwritten\n");
    else if (is_released || finding->damage.is_adjacent)
        out_text(output, ": the header behind it was overwritten\n");
    else
        out_text(output, ": memory of the allocator behind it is damaged\n");
    text_damage_header(output, finding);
}

/* A block may have been overrun that lay there before: no snapshot shows when. */
static void text_damage_cause(struct text_output *output, const struct heap_finding *finding)
{
    bool has_header = finding->neighbours.after.address == finding->address + 8;
    if (is_of_released(finding)) {
        out_text(output, "  the block, or one that lay there before, was written beyond its end\n");
    } else if (!finding->block_address) {
        out_text(output, "  by a write before its start, or beyond the end of a block that is not "
                         "live\n");
    } else if (finding->damage.is_adjacent) {
        out_text(output, "  the block, or one that lay there before, was written ");
        report_count(output, finding->damage.beyond, "byte");
        out_text(output, " or more\n  beyond its end");
        out_text(output, has_header ? "; or the next block was, before its start\n" : "\n");
    }
}

/* Writes the released block before the header, if the finding is about the block behind. */
static void text_damage_released(struct report *report, const struct heap_finding *finding)
{
    const struct heap_neighbour *before = &finding->neighbours.before;
    if (!before->address || is_of_released(finding))
        return;
    out_text(report->output, "  released block ");
    out_hex(report->output, before->address);
    out_text(report->output, ", ");
    report_count(report->output, before->size, "byte");
    out_text(report->output, ", lay before it\n");
    report_call_text(report, "allocated", &before->allocated);
}

void report_damage_text(struct report *report, const struct heap_finding *finding)
{
    struct text_output *output = report->output;
    const struct heap_neighbour *after = &finding->neighbours.after;
    text_damage_subject(output, finding);
    text_damage_cause(output, finding);
    text_damage_released(report, finding);
    if (!finding->block_address || !after->address)
        return;
    out_text(output, "  next block ");
    out_hex(output, after->address);
    out_text(output, ", ");
    report_count(output, after->size, "byte");
    out_char(output, '\n');
    report_call_text(report, "allocated", &after->allocated);
}

void row_damage(struct row *row, const struct heap_finding *finding)
{
    const struct heap_damage *damage = &finding->damage;
    if (finding->kind != HEAP_ERROR_HEAP_DAMAGE) {
        row_null(row, "damage");
        return;
    }
    row_begin_object(row, "damage");
    row_unsigned(row, "snapshot", damage->snapshot);
    row_position(row, "position", damage->position);
    row_hex(row, "header", damage->header);
    row_bool(row, "adjacent", damage->is_adjacent);
    row_count(row, "bytes_beyond", damage->is_adjacent ? damage->beyond : TTD_UNKNOWN);
    row_end_object(row);
}
