/* SPDX-License-Identifier: MIT */
#include "symbols/frames.h"

#include <stdlib.h>

#include "base/grow.h"

void frame_list_free(struct frame_list *list)
{
    free(list->frames);
    *list = (struct frame_list){0};
}

enum ttd_status frame_list_push(struct frame_list *list, const struct frame *frame)
{
    enum ttd_status status =
        grow_array((void **)&list->frames, &list->capacity, list->count + 1, sizeof *list->frames);
    if (status == TTD_OK)
        list->frames[list->count++] = *frame;
    return status;
}

/* Bytes of names that cost one step, because whoever asks for a frame reads its names. */
#define NAME_STEP 64

static enum ttd_status spend(const struct definitions *definitions, const struct frame *frame)
{
    uint64_t bytes = (uint64_t)frame->function.size + frame->file.size + frame->module.size;
    return stack_table_spend(&definitions->stacks, 1 + bytes / NAME_STEP);
}

enum ttd_status frame_list_add(struct frame_list *list, struct definitions *definitions,
                               const struct ttd_stack *stack)
{
    struct frame frame = {
        .module_id = stack->module, .offset = stack->offset, .address = stack->offset};
    const struct definition_module *module = definitions_module(definitions, stack->module);
    if (module) {
        frame.module = definitions_text(definitions, module->path);
        frame.address += module->bias;
    }
    const struct definition_symbol *symbol =
        definitions_symbol(definitions, stack->module, stack->offset);
    enum ttd_status status = TTD_OK;
    /* Without names the frame has its module and offset, which a later lookup can still name. */
    if (!symbol || !symbol->count) {
        status = spend(definitions, &frame);
        return status == TTD_OK ? frame_list_push(list, &frame) : status;
    }
    for (uint32_t i = 0; i < symbol->count && status == TTD_OK; i++) {
        const struct ttd_symbol_frame *name = &definitions->frames[symbol->first + i];
        frame.function = definitions_function(definitions, name->function);
        frame.symbol = definitions_text(definitions, name->function);
        frame.name = name->function;
        frame.file = definitions_text(definitions, name->file);
        frame.line = name->line;
        frame.is_inlined = i + 1 < symbol->count;
        status = spend(definitions, &frame);
        if (status == TTD_OK)
            status = frame_list_push(list, &frame);
    }
    return status;
}

enum ttd_status frame_list_expand(struct frame_list *list, struct definitions *definitions,
                                  ttd_id stack)
{
    return frame_list_begin(list, definitions, stack, FRAME_LIST_MAX);
}

enum ttd_status frame_list_begin(struct frame_list *list, struct definitions *definitions,
                                 ttd_id stack, size_t max_count)
{
    list->count = 0;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && list->count < max_count) {
        struct ttd_stack current;
        status = definitions_stack(definitions, stack, &current);
        if (status == TTD_OK)
            status = frame_list_add(list, definitions, &current);
        if (status == TTD_OK)
            stack = current.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}
