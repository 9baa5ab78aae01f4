/* SPDX-License-Identifier: MIT */
#include "symbols/frames.h"

#include <stdlib.h>

#include "base/grow.h"

void frame_list_free(struct frame_list *list)
{
    free(list->items);
    *list = (struct frame_list){0};
}

enum ttd_status frame_list_push(struct frame_list *list, const struct frame *item)
{
    enum ttd_status status =
        grow_array((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status == TTD_OK)
        list->items[list->count++] = *item;
    return status;
}

/* Bytes of names that are a step: whoever asks for a frame reads them. */
#define NAME_STEP 64

static enum ttd_status spend(const struct definitions *all, const struct frame *item)
{
    uint64_t bytes = (uint64_t)item->function.size + item->file.size + item->module.size;
    return stack_table_spend(&all->stacks, 1 + bytes / NAME_STEP);
}

enum ttd_status frame_list_add(struct frame_list *list, struct definitions *all,
                               const struct ttd_stack *stack)
{
    struct frame item = {
        .module_id = stack->module, .offset = stack->offset, .address = stack->offset};
    const struct definition_module *module = definitions_module(all, stack->module);
    if (module) {
        item.module = definitions_text(all, module->path);
        item.address += module->bias;
    }
    const struct definition_symbol *symbol = definitions_symbol(all, stack->module, stack->offset);
    enum ttd_status status = TTD_OK;
    if (!symbol || !symbol->count) {
        status = spend(all, &item);
        return status == TTD_OK ? frame_list_push(list, &item) : status;
    }
    for (uint32_t i = 0; i < symbol->count && status == TTD_OK; i++) {
        const struct ttd_symbol_frame *name = &all->frames[symbol->first + i];
        item.function = definitions_function(all, name->function);
        item.symbol = definitions_text(all, name->function);
        item.name = name->function;
        item.file = definitions_text(all, name->file);
        item.line = name->line;
        item.is_inlined = i + 1 < symbol->count;
        status = spend(all, &item);
        if (status == TTD_OK)
            status = frame_list_push(list, &item);
    }
    return status;
}

enum ttd_status frame_list_expand(struct frame_list *list, struct definitions *all, ttd_id stack)
{
    return frame_list_begin(list, all, stack, FRAME_LIST_MAX);
}

enum ttd_status frame_list_begin(struct frame_list *list, struct definitions *all, ttd_id stack,
                                 size_t most)
{
    list->count = 0;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && list->count < most) {
        struct ttd_stack item;
        status = definitions_stack(all, stack, &item);
        if (status == TTD_OK)
            status = frame_list_add(list, all, &item);
        if (status == TTD_OK)
            stack = item.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}
