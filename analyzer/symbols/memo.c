/* SPDX-License-Identifier: MIT */
#include "symbols/memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void stack_memo_free(struct stack_memo *memo)
{
    for (size_t i = 0; i < memo->chunk_count; i++)
        free(memo->chunks[i]);
    free(memo->chunks);
    free(memo->path);
    *memo = (struct stack_memo){.chunks = NULL};
}

/* Returns the facts about the stacks of a chunk; NULL without memory. */
static uint32_t *memo_facts(struct stack_memo *memo, const struct stack_table *table,
                            const struct stack_chunk *chunk)
{
    if (!memo->chunks) {
        memo->chunks = calloc(table->count, sizeof *memo->chunks);
        if (!memo->chunks)
            return NULL;
        memo->chunk_count = table->count;
    }
    uint32_t **facts = &memo->chunks[chunk - table->chunks];
    if (!*facts)
        *facts = calloc(chunk->count, sizeof **facts);
    return *facts;
}

/* Adds a stack to the path, unless its fact can be found without those of its callers. */
static enum ttd_status memo_add(struct stack_memo *memo, const struct stack_table *table,
                                const struct stack_chunk *chunk, struct stack_memo_step *step,
                                const struct stack_memo_finder *finder, size_t *count)
{
    enum ttd_status status = stack_chunk_get(table, chunk, step->stack.id, &step->stack);
    if (status == TTD_OK && finder->meet)
        status = finder->meet(finder->context, &step->stack, step->fact);
    if (status != TTD_OK || *step->fact)
        return status;
    status = grow_array((void **)&memo->path, &memo->path_capacity, *count + 1, sizeof *memo->path);
    if (status == TTD_OK)
        memo->path[(*count)++] = *step;
    return status;
}

/* Sets memo->path to the stacks without a fact, from `stack` outward, and `fact` to the fact of the
 * first caller that has one; 0 if none has. */
static enum ttd_status memo_climb(struct stack_memo *memo, const struct stack_table *table,
                                  ttd_id stack, const struct stack_memo_finder *finder,
                                  size_t *count, uint32_t *fact)
{
    struct stack_memo_step step = {.stack.id = stack};
    const struct stack_chunk *chunk = NULL;
    uint32_t *facts = NULL;
    enum ttd_status status = TTD_OK;
    *count = 0;
    *fact = 0;
    for (; status == TTD_OK; step.stack.id = step.stack.parent) {
        if (!chunk || step.stack.id - chunk->first >= chunk->count) {
            chunk = stack_table_find(table, step.stack.id);
            if (!chunk)
                return TTD_OK;
            facts = memo_facts(memo, table, chunk);
        }
        if (!facts)
            return TTD_ERROR_NO_MEMORY;
        step.fact = &facts[step.stack.id - chunk->first];
        if (!*step.fact)
            status = memo_add(memo, table, chunk, &step, finder, count);
        if (status == TTD_OK && *step.fact) {
            *fact = *step.fact;
            return TTD_OK;
        }
    }
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status stack_memo_find(struct stack_memo *memo, const struct stack_table *table,
                                ttd_id stack, const struct stack_memo_finder *finder,
                                uint32_t *fact)
{
    size_t count;
    uint32_t caller_fact;
    enum ttd_status status = memo_climb(memo, table, stack, finder, &count, &caller_fact);
    while (status == TTD_OK && count > 0) {
        const struct stack_memo_step *next = &memo->path[--count];
        uint32_t own_fact = 0;
        status = finder->find(finder->context, &next->stack, caller_fact, &own_fact);
        if (status == TTD_OK)
            *next->fact = caller_fact = own_fact;
    }
    if (status == TTD_OK)
        *fact = caller_fact;
    return status;
}

void same_stacks_free(struct same_stacks *same)
{
    map_free(&same->first_modules);
    map_free(&same->stacks);
    map_free(&same->sites);
    stack_memo_free(&same->memo);
    *same = (struct same_stacks){.site_count = 0};
}

static bool memo_same_stacks_text(struct ttd_string a, struct ttd_string b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Returns a number that modules which are alike have in common. */
static uint64_t memo_module_hash(const struct definitions *definitions,
                                 const struct definition_module *module)
{
    struct ttd_string text = {(const char *)module->build_id, module->build_id_size};
    if (!text.size)
        text = definitions_text(definitions, module->path);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool memo_same_module(const struct definitions *definitions,
                             const struct definition_module *a, const struct definition_module *b)
{
    if (a->build_id_size != b->build_id_size || a->end - a->begin != b->end - b->begin)
        return false;
    if (a->build_id_size)
        return memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
    return memo_same_stacks_text(definitions_text(definitions, a->path),
                                 definitions_text(definitions, b->path));
}

/* Notes a module: as like the first of its hash, if it is. */
static enum ttd_status memo_compare_module(struct same_stacks *same, struct hash_map *by_hash,
                                           ttd_id id, const struct definition_module *module)
{
    uint64_t hash = memo_module_hash(same->definitions, module);
    uint32_t first = map_get(by_hash, hash, 1);
    if (first == MAP_NONE)
        return map_set(by_hash, hash, 1, id);
    if (!memo_same_module(same->definitions, definitions_module(same->definitions, first), module))
        return TTD_OK;
    same->has_any = true;
    return map_set(&same->first_modules, id, 0, first);
}

enum ttd_status same_stacks_are_there(struct same_stacks *same, struct definitions *definitions,
                                      bool *are_there)
{
    enum ttd_status status = TTD_OK;
    if (!same->has_compared) {
        struct hash_map by_hash;
        map_init(&by_hash);
        map_init(&same->first_modules);
        map_init(&same->stacks);
        map_init(&same->sites);
        same->definitions = definitions;
        for (size_t run = 0; run < definitions->modules.run_count; run++) {
            const struct idtable_run *modules = &definitions->modules.runs[run];
            const struct definition_module *records = modules->records;
            for (size_t i = 0; i < modules->count && status == TTD_OK; i++)
                status =
                    memo_compare_module(same, &by_hash, modules->first + (ttd_id)i, &records[i]);
        }
        map_free(&by_hash);
        same->has_compared = status == TTD_OK;
    }
    *are_there = same->has_any;
    return status;
}

/* Whether an address has the same names in two modules, and has any. */
static bool memo_same_names(const struct definitions *definitions, ttd_id a, ttd_id b,
                            uint64_t offset)
{
    const struct definition_symbol *left = definitions_symbol(definitions, a, offset);
    const struct definition_symbol *right = definitions_symbol(definitions, b, offset);
    if (!left || !right || !left->count || left->count != right->count)
        return false;
    for (uint32_t i = 0; i < left->count; i++) {
        const struct ttd_symbol_frame *one = &definitions->frames[left->first + i];
        const struct ttd_symbol_frame *other = &definitions->frames[right->first + i];
        if (!definitions_text(definitions, one->function).size || one->line != other->line ||
            !memo_same_stacks_text(definitions_text(definitions, one->function),
                                   definitions_text(definitions, other->function)) ||
            !memo_same_stacks_text(definitions_text(definitions, one->file),
                                   definitions_text(definitions, other->file)))
            return false;
    }
    return true;
}

static ttd_id memo_first_module(const struct same_stacks *same, const struct ttd_stack *stack)
{
    uint32_t first = map_get(&same->first_modules, stack->module, 0);
    if (first == MAP_NONE)
        return stack->module;
    const struct definition_module *module = definitions_module(same->definitions, first);
    bool is_same =
        module && (module->build_id_size ||
                   memo_same_names(same->definitions, first, stack->module, stack->offset));
    return is_same ? first : stack->module;
}

/* Finds the number of an address: equal in modules that are alike. */
static enum ttd_status memo_find_site(struct same_stacks *same, const struct ttd_stack *stack,
                                      uint32_t *site)
{
    ttd_id module = memo_first_module(same, stack);
    *site = map_get(&same->sites, module, stack->offset);
    if (*site != MAP_NONE)
        return TTD_OK;
    *site = ++same->site_count;
    return map_set(&same->sites, module, stack->offset, *site);
}

static enum ttd_status memo_find_first(void *context, const struct ttd_stack *stack, uint32_t above,
                                       uint32_t *fact)
{
    struct same_stacks *same = context;
    uint32_t site;
    enum ttd_status status = memo_find_site(same, stack, &site);
    *fact = status == TTD_OK ? map_get(&same->stacks, above, site) : stack->id;
    if (status == TTD_OK && *fact == MAP_NONE) {
        *fact = stack->id;
        status = map_set(&same->stacks, above, site, stack->id);
    }
    return status;
}

enum ttd_status same_stacks_find(struct same_stacks *same, ttd_id stack, ttd_id *first)
{
    struct stack_memo_finder finder = {.context = same, .find = memo_find_first};
    uint32_t fact = 0;
    enum ttd_status status =
        stack_memo_find(&same->memo, &same->definitions->stacks, stack, &finder, &fact);
    if (status == TTD_OK)
        *first = fact ? fact : stack;
    return status;
}
