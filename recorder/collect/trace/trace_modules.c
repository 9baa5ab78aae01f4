/* SPDX-License-Identifier: MIT */
#include "collect/trace/trace_modules.h"

#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "collect/trace/module_files.h"

bool modules_init(struct modules *modules)
{
    *modules = (struct modules){0};
    return stacks_init(&modules->addresses);
}

void modules_free(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        module_files_release(&modules->items[i]);
        free(modules->items[i].path);
    }
    free(modules->items);
    free(modules->frames);
    stacks_free(&modules->addresses);
}

bool modules_add(struct modules *modules, const struct module *module)
{
    void *items =
        array_grow(modules->items, modules->count, &modules->capacity, sizeof *modules->items);
    if (!items)
        return false;
    modules->items = items;
    char *path = strdup(module->path);
    if (!path)
        return false;
    struct module *added_module = &modules->items[modules->count++];
    *added_module = *module;
    added_module->path = path;
    added_module->is_loaded = true;
    return true;
}

size_t modules_at(const struct modules *modules, uint64_t begin)
{
    for (size_t i = modules->count; i-- > 0;)
        if (modules->items[i].is_loaded && modules->items[i].begin == begin)
            return i;
    return SIZE_MAX;
}

void modules_unload(struct modules *modules, size_t index)
{
    struct module *module = &modules->items[index];
    module->is_loaded = false;
    stacks_forget(&modules->addresses, module->begin, module->end);
}

void modules_forget(struct modules *modules)
{
    stacks_forget(&modules->addresses, 0, UINT64_MAX);
}

/* A return address may lie just past the end of its function, and so of its module. */
static bool modules_has(const struct module *module, uint64_t pc)
{
    return module->is_loaded && pc > module->begin && pc <= module->end;
}

static struct frame modules_locate(struct modules *modules, uint64_t pc)
{
    size_t index = modules->hint;
    if (index >= modules->count || !modules_has(&modules->items[index], pc)) {
        index = modules->count;
        while (index-- > 0 && !modules_has(&modules->items[index], pc))
            ;
        if (index == SIZE_MAX)
            return (struct frame){.module = TTD_NONE, .offset = pc, .is_settled = true};
        modules->hint = index;
    }
    return (struct frame){.module = (ttd_id)(index + 1), .offset = pc - modules->items[index].bias};
}

const struct frame *modules_frame(struct modules *modules, uint64_t pc)
{
    uint32_t hash = stacks_hash(&modules->addresses, 0, pc);
    struct stack_entry *entry = stacks_find(&modules->addresses, hash, TTD_NONE, pc);
    if (!entry)
        return NULL;
    if (entry->id != TTD_NONE)
        return &modules->frames[entry->id - 1];
    void *frames = array_grow(modules->frames, modules->frame_count, &modules->frame_capacity,
                              sizeof *modules->frames);
    if (!frames)
        return NULL;
    modules->frames = frames;
    modules->frames[modules->frame_count++] = modules_locate(modules, pc);
    entry->id = (ttd_id)modules->frame_count;
    return &modules->frames[entry->id - 1];
}
