/* SPDX-License-Identifier: MIT */
/* One block in one line, or as an object. */
#include "report/sections/sections.h"

#include "view/allocators.h"

/* The first frame of report->frames that only passes memory on to no other; NULL if there are no
 * frames. */
static const struct frame *block_owner_frame(const struct report *report)
{
    const struct frame_list *list = &report->frames;
    for (size_t i = 0; i < list->count; i++) {
        const struct frame *frame = &list->frames[i];
        if (!allocators_have(frame->function) &&
            !allocators_wrap(definitions_canonical(report->definitions, frame->name)))
            return frame;
    }
    return list->count ? &list->frames[0] : NULL;
}

static void text_block_fields(struct report *report, const struct heap_block *block,
                              struct ttd_string class_name)
{
    struct text_output *output = report->output;
    out_hex(output, block->address);
    out_text(output, ", ");
    report_count(output, block->size, "byte");
    if (class_name.size) {
        out_text(output, ", ");
        report_function_text(report, class_name);
    }
    out_format(output, ", allocated by %s() at ", ttd_api_name(block->api));
    report_position_text(report, block->allocated);
    out_format(output, " in thread %u", block->thread);
    if (heap_is_unknown(block->allocated, report->unknown_before))
        out_text(output, ", unknown: perhaps released while recording was off");
    report_expand(report, block->stack);
    const struct frame *owner = block_owner_frame(report);
    if (!owner)
        return;
    out_text(output, ", ");
    report_frame_text(report, owner);
}

void report_owner_frame_text(struct report *report, ttd_id stack)
{
    report_expand(report, stack);
    const struct frame *owner = block_owner_frame(report);
    if (owner)
        report_frame_text(report, owner);
    else
        out_text(report->output, "(no stack was recorded)");
}

void report_block_text(struct report *report, const struct heap_block *block)
{
    text_block_fields(report, block, (struct ttd_string){"", 0});
}

struct ttd_string report_node_class(struct report *report, const struct heap_reach *reach,
                                    uint32_t node)
{
    uint32_t index =
        reach->node_classes && node < reach->nodes.count ? reach->node_classes[node] : 0;
    return index ? definitions_class(report->definitions, reach->classes[index - 1].name)
                 : (struct ttd_string){"", 0};
}

void report_node_text(struct report *report, const struct heap_reach *reach, uint32_t node)
{
    struct heap_block block = heap_nodes_block(&reach->nodes, node);
    text_block_fields(report, &block, report_node_class(report, reach, node));
}

void report_block_json(struct report *report, struct json *json, const char *key,
                       const struct heap_block *block)
{
    if (!block) {
        json_null(json, key);
        return;
    }
    struct heap_call allocated = heap_call_of_block(block);
    json_begin_object(json, key);
    json_hex(json, "address", block->address);
    json_unsigned(json, "size", block->size);
    report_call_json(report, json, "allocated", &allocated);
    json_bool(json, "unknown", heap_is_unknown(block->allocated, report->unknown_before));
    json_end_object(json);
}
