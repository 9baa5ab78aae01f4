/* SPDX-License-Identifier: MIT */
#include "symbols/trace_definitions.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "common/search.h"
#include "symbols/canonical.h"

#define FIRST_CAPACITY 16

void idtable_init(struct idtable *table, size_t record_size)
{
    *table = (struct idtable){.record_size = record_size};
}

void idtable_free(struct idtable *table)
{
    for (size_t i = 0; i < table->run_count; i++)
        table_free(table->runs[i].records, table->runs[i].capacity * table->record_size);
    free(table->runs);
    idtable_init(table, table->record_size);
}

/* Finds the run to append `id` to: the last one, or a new one after it; NULL if `id` is not new. */
static enum ttd_status definitions_run_for(struct idtable *table, ttd_id id,
                                           struct idtable_run **run)
{
    *run = NULL;
    if (table->run_count) {
        struct idtable_run *last = &table->runs[table->run_count - 1];
        uint64_t next = (uint64_t)last->first + last->count;
        if (id == next)
            *run = last;
        if (id <= next)
            return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->runs, &table->run_capacity,
                                        table->run_count + 1, sizeof *table->runs);
    if (status != TTD_OK)
        return status;
    *run = &table->runs[table->run_count++];
    **run = (struct idtable_run){.first = id};
    return TTD_OK;
}

/* Makes room for one more record. */
static enum ttd_status definitions_idtable_reserve(struct idtable_run *run, size_t record_size)
{
    if (run->count < run->capacity)
        return TTD_OK;
    if (run->capacity > SIZE_MAX / 2 / record_size)
        return TTD_ERROR_NO_MEMORY;
    size_t capacity = run->capacity ? 2 * run->capacity : FIRST_CAPACITY;
    void *records = table_resize(run->records, run->capacity * record_size, capacity * record_size);
    if (!records)
        return TTD_ERROR_NO_MEMORY;
    run->records = records;
    run->capacity = capacity;
    return TTD_OK;
}

enum ttd_status idtable_add(struct idtable *table, ttd_id id, void **record)
{
    *record = NULL;
    struct idtable_run *run;
    enum ttd_status status = definitions_run_for(table, id, &run);
    if (status != TTD_OK || !run)
        return status;
    status = definitions_idtable_reserve(run, table->record_size);
    if (status != TTD_OK)
        return status;
    *record = (char *)run->records + run->count++ * table->record_size;
    return TTD_OK;
}

void *idtable_get(const struct idtable *table, ttd_id id)
{
    size_t after = 0, end = table->run_count;
    SEARCH_SORTED(after, end, middle, table->runs[middle].first <= id);
    const struct idtable_run *run = after ? &table->runs[after - 1] : NULL;
    return run && id - run->first < run->count
               ? (char *)run->records + (id - run->first) * table->record_size
               : NULL;
}

size_t idtable_count(const struct idtable *table)
{
    size_t count = 0;
    for (size_t i = 0; i < table->run_count; i++)
        count += table->runs[i].count;
    return count;
}

void definitions_init(struct definitions *definitions)
{
    memset(definitions, 0, sizeof *definitions);
    idtable_init(&definitions->strings, sizeof(struct definition_string));
    idtable_init(&definitions->modules, sizeof(struct definition_module));
    idtable_init(&definitions->threads, sizeof(struct definition_thread));
    idtable_init(&definitions->heaps, sizeof(struct definition_heap));
    map_init(&definitions->symbol_index);
}

void definitions_free(struct definitions *definitions)
{
    idtable_free(&definitions->strings);
    stack_table_free(&definitions->stacks);
    idtable_free(&definitions->modules);
    idtable_free(&definitions->threads);
    idtable_free(&definitions->heaps);
    map_free(&definitions->symbol_index);
    free(definitions->symbols);
    free(definitions->frames);
    arena_free(&definitions->text);
    demangler_free(&definitions->demangler);
}

static enum ttd_status definitions_add_string(struct definitions *definitions,
                                              const struct ttd_string_definition *string)
{
    void *record;
    enum ttd_status status = idtable_add(&definitions->strings, string->id, &record);
    if (status != TTD_OK || !record)
        return status;
    struct definition_string *definition = record;
    definition->size = (uint32_t)string->text.size;
    definition->text = arena_copy(&definitions->text, string->text.data, string->text.size);
    if (definition->text)
        return TTD_OK;
    definition->size = 0;
    return TTD_ERROR_NO_MEMORY;
}

static enum ttd_status definitions_add_module(struct definitions *definitions,
                                              const struct ttd_module *module)
{
    if (module->action == TTD_MODULE_UNLOAD) {
        struct definition_module *existing = idtable_get(&definitions->modules, module->id);
        if (existing)
            existing->unloaded = module->position;
        return TTD_OK;
    }
    void *record;
    enum ttd_status status = idtable_add(&definitions->modules, module->id, &record);
    if (status != TTD_OK || !record)
        return status;
    struct definition_module *definition = record;
    *definition = (struct definition_module){.path = module->path,
                                             .bias = module->bias,
                                             .begin = module->begin,
                                             .end = module->end,
                                             .loaded = module->position,
                                             .unloaded = ttd_position_invalid()};
    definition->build_id_size =
        module->build_id_size <= TTD_BUILD_ID_MAX ? module->build_id_size : 0;
    memcpy(definition->build_id, module->build_id, definition->build_id_size);
    return TTD_OK;
}

static enum ttd_status definitions_add_thread(struct definitions *definitions,
                                              const struct ttd_thread *thread)
{
    if (thread->action == TTD_THREAD_END) {
        struct definition_thread *definition = idtable_get(&definitions->threads, thread->id);
        if (definition) {
            definition->end = thread->position;
            if (thread->name != TTD_NONE)
                definition->name = thread->name;
        }
        return TTD_OK;
    }
    void *record;
    enum ttd_status status = idtable_add(&definitions->threads, thread->id, &record);
    if (status != TTD_OK || !record)
        return status;
    *(struct definition_thread *)record = (struct definition_thread){
        thread->os_id, thread->name, thread->position, ttd_position_invalid()};
    return TTD_OK;
}

static enum ttd_status definitions_add_heap(struct definitions *definitions,
                                            const struct ttd_heap *heap)
{
    void *record;
    enum ttd_status status = idtable_add(&definitions->heaps, heap->id, &record);
    if (status == TTD_OK && record)
        *(struct definition_heap *)record =
            (struct definition_heap){.handle = heap->handle, .name = heap->name};
    return status;
}

/* Keeps the first parent of a heap: only a damaged trace has others. */
static void definitions_add_heap_parent(struct definitions *definitions,
                                        const struct ttd_heap_parent *parent)
{
    struct definition_heap *heap = idtable_get(&definitions->heaps, parent->heap);
    if (heap && heap->parent == TTD_NONE)
        heap->parent = parent->parent;
}

/* Later names of the same address replace earlier ones, because they come from a source that knew
 * more. */
static enum ttd_status definitions_add_symbol(struct definitions *definitions,
                                              const struct ttd_symbol *symbol)
{
    enum ttd_status status =
        grow_array((void **)&definitions->symbols, &definitions->symbol_capacity,
                   definitions->symbol_count + 1, sizeof *definitions->symbols);
    if (status == TTD_OK)
        status =
            grow_array((void **)&definitions->frames, &definitions->frame_capacity,
                       definitions->frame_count + symbol->frame_count, sizeof *definitions->frames);
    if (status == TTD_OK)
        status = map_set(&definitions->symbol_index, symbol->module, symbol->offset,
                         (uint32_t)definitions->symbol_count);
    if (status != TTD_OK)
        return status;
    definitions->symbols[definitions->symbol_count++] =
        (struct definition_symbol){definitions->frame_count, symbol->frame_count};
    for (uint32_t i = 0; i < symbol->frame_count; i++)
        definitions->frames[definitions->frame_count++] = symbol->frames[i];
    return TTD_OK;
}

enum ttd_status definitions_add(struct definitions *definitions, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_STACKS)
        return stack_table_add(&definitions->stacks, batch);
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        switch (batch->kind) {
        case TTD_KIND_STRINGS:
            status = definitions_add_string(definitions, &batch->u.strings[i]);
            break;
        case TTD_KIND_MODULES:
            status = definitions_add_module(definitions, &batch->u.modules[i]);
            break;
        case TTD_KIND_HEAP_PARENTS:
            definitions_add_heap_parent(definitions, &batch->u.heap_parents[i]);
            break;
        case TTD_KIND_SYMBOLS:
            status = definitions_add_symbol(definitions, &batch->u.symbols[i]);
            break;
        case TTD_KIND_THREADS:
            status = definitions_add_thread(definitions, &batch->u.threads[i]);
            break;
        case TTD_KIND_HEAPS:
            status = definitions_add_heap(definitions, &batch->u.heaps[i]);
            break;
        default:
            return TTD_OK;
        }
    }
    return status;
}

struct definition_string *definitions_string(const struct definitions *definitions, ttd_id id)
{
    return idtable_get(&definitions->strings, id);
}

enum ttd_status definitions_stack(const struct definitions *definitions, ttd_id id,
                                  struct ttd_stack *stack)
{
    return stack_table_get(&definitions->stacks, id, stack);
}

const struct definition_module *definitions_module(const struct definitions *definitions, ttd_id id)
{
    return idtable_get(&definitions->modules, id);
}

const struct definition_thread *definitions_thread(const struct definitions *definitions, ttd_id id)
{
    return idtable_get(&definitions->threads, id);
}

const struct definition_heap *definitions_heap(const struct definitions *definitions, ttd_id id)
{
    return idtable_get(&definitions->heaps, id);
}

uint64_t definitions_heap_handle(const struct definitions *definitions, ttd_id id)
{
    const struct definition_heap *heap = definitions_heap(definitions, id);
    return heap ? heap->handle : 0;
}

const struct definition_symbol *definitions_symbol(const struct definitions *definitions,
                                                   ttd_id module, uint64_t offset)
{
    uint32_t index = map_get(&definitions->symbol_index, module, offset);
    return index == MAP_NONE ? NULL : &definitions->symbols[index];
}

struct ttd_string definitions_text(const struct definitions *definitions, ttd_id id)
{
    const struct definition_string *string = definitions_string(definitions, id);
    return string ? (struct ttd_string){string->text, string->size} : (struct ttd_string){"", 0};
}

/* Sets the name that is shown: `text`, or the string itself if its size is 0. */
static void definitions_set_display(struct definitions *definitions,
                                    struct definition_string *string, struct ttd_string text)
{
    string->display = text.size ? arena_copy(&definitions->text, text.data, text.size) : NULL;
    string->display_size = (uint32_t)text.size;
    if (string->display)
        return;
    string->display = string->text;
    string->display_size = string->size;
}

/* Returns the public name of a function of the GNU C library, whose symbols for its own use begin
 * with __GI_: __GI___strdup is strdup, __GI___libc_malloc is __libc_malloc. Other names are
 * themselves. */
static struct ttd_string definitions_public_name(struct ttd_string name)
{
    static const char own[] = "__GI_", reserved[] = "__", kept[] = "__libc_";
    size_t size = sizeof own - 1;
    if (name.size <= size || memcmp(name.data, own, size) != 0)
        return name;
    name = (struct ttd_string){name.data + size, name.size - size};
    size = sizeof reserved - 1;
    bool is_kept = name.size <= size || memcmp(name.data, reserved, size) != 0 ||
                   (name.size >= sizeof kept - 1 && memcmp(name.data, kept, sizeof kept - 1) == 0);
    return is_kept ? name : (struct ttd_string){name.data + size, name.size - size};
}

struct ttd_string definitions_function(struct definitions *definitions, ttd_id id)
{
    struct definition_string *string = definitions_string(definitions, id);
    if (!string)
        return (struct ttd_string){"", 0};
    if (!string->display) {
        struct ttd_string name = {string->text, string->size};
        definitions_set_display(definitions, string, demangler_find(&definitions->demangler, name));
        if (string->display == string->text) {
            struct ttd_string shown = definitions_public_name(name);
            string->display = shown.data;
            string->display_size = (uint32_t)shown.size;
        }
    }
    return (struct ttd_string){string->display, string->display_size};
}

/* Demangles the name of a class: its type_info's name without the prefix. */
static struct ttd_string definitions_demangle_class(struct definitions *definitions,
                                                    const struct definition_string *string)
{
    static const char before[] = "typeinfo name for ";
    size_t skipped = sizeof before - 1;
    struct ttd_string text = {"", 0};
    char *mangled = malloc(sizeof "_ZTS" + string->size);
    if (!mangled)
        return text;
    memcpy(mangled, "_ZTS", 4);
    memcpy(mangled + 4, string->text, string->size);
    mangled[4 + string->size] = '\0';
    text = demangler_find(&definitions->demangler, (struct ttd_string){mangled, 4 + string->size});
    free(mangled);
    if (text.size <= skipped || memcmp(text.data, before, skipped) != 0)
        return (struct ttd_string){"", 0};
    return (struct ttd_string){text.data + skipped, text.size - skipped};
}

struct ttd_string definitions_class(struct definitions *definitions, ttd_id id)
{
    struct definition_string *string = definitions_string(definitions, id);
    if (!string)
        return (struct ttd_string){"", 0};
    if (!string->display)
        definitions_set_display(definitions, string,
                                definitions_demangle_class(definitions, string));
    return (struct ttd_string){string->display, string->display_size};
}

struct ttd_string definitions_canonical(struct definitions *definitions, ttd_id id)
{
    struct ttd_string name = definitions_function(definitions, id);
    struct definition_string *string = definitions_string(definitions, id);
    if (!string || string->canonical)
        return string ? (struct ttd_string){string->canonical, string->canonical_size} : name;
    char *text = malloc(CANONICAL_ROOM(name.size));
    size_t size = text ? canonical_name(name, text) : 0;
    /* Most names of C are canonical: they share the text. */
    bool is_same = text && size == name.size && memcmp(text, name.data, size) == 0;
    string->canonical = is_same || !text ? name.data : arena_copy(&definitions->text, text, size);
    string->canonical_size = (uint32_t)size;
    /* Without memory the name stands for its canonical form: a fingerprint may then differ, but
     * nothing fails. */
    if (!string->canonical || !text) {
        string->canonical = name.data;
        string->canonical_size = (uint32_t)name.size;
    }
    free(text);
    return (struct ttd_string){string->canonical, string->canonical_size};
}

static bool definitions_has_module(const struct definitions *definitions,
                                   const struct names_matcher *matcher)
{
    for (size_t run = 0; run < definitions->modules.run_count; run++) {
        const struct definition_module *records = definitions->modules.runs[run].records;
        for (size_t i = 0; i < definitions->modules.runs[run].count; i++) {
            if (matcher->matches(matcher->context, definitions_text(definitions, records[i].path)))
                return true;
        }
    }
    return false;
}

/* The use of a string: one string may name a function and a file. */
enum { AS_FUNCTION, AS_FILE };

static enum ttd_status definitions_names_ask_matcher(struct definitions *definitions,
                                                     const struct names_matcher *matcher,
                                                     struct hash_map *asked, ttd_id id,
                                                     unsigned purpose, bool *has_match)
{
    if (id == TTD_NONE || map_get(asked, id, purpose) != MAP_NONE)
        return TTD_OK;
    struct ttd_string name = purpose == AS_FUNCTION ? definitions_function(definitions, id)
                                                    : definitions_text(definitions, id);
    *has_match = matcher->matches(matcher->context, name);
    return map_set(asked, id, purpose, true);
}

enum ttd_status names_find(struct definitions *definitions, const struct names_matcher *matcher,
                           bool *has_match)
{
    struct hash_map asked;
    map_init(&asked);
    enum ttd_status status = TTD_OK;
    bool has = definitions_has_module(definitions, matcher);
    for (size_t i = 0; i < definitions->frame_count && status == TTD_OK && !has; i++) {
        const struct ttd_symbol_frame *symbol_frame = &definitions->frames[i];
        status = definitions_names_ask_matcher(definitions, matcher, &asked, symbol_frame->function,
                                               AS_FUNCTION, &has);
        if (status == TTD_OK && !has && matcher->takes_files)
            status = definitions_names_ask_matcher(definitions, matcher, &asked, symbol_frame->file,
                                                   AS_FILE, &has);
    }
    map_free(&asked);
    if (status == TTD_OK)
        *has_match = has;
    return status;
}

void stack_table_free(struct stack_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        ttd_stacks_close(table->chunks[i].stacks);
    free(table->chunks);
    memset(table, 0, sizeof *table);
}

enum ttd_status stack_table_add(struct stack_table *table, const struct ttd_batch *batch)
{
    const struct stack_chunk *last = table->count ? &table->chunks[table->count - 1] : NULL;
    /* The first definition of an identifier counts. A crafted chunk may define some identifiers
     * again and others for the first time: only the latter are added. */
    uint64_t defined = last ? (uint64_t)last->first + last->count : 0;
    uint64_t first = batch->chunk.first_record > defined ? batch->chunk.first_record : defined;
    uint64_t after = batch->chunk.first_record + batch->chunk.record_count;
    if (after <= first)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&table->chunks, &table->capacity, table->count + 1,
                                        sizeof *table->chunks);
    struct stack_chunk chunk = {.first = (ttd_id)first, .count = (uint32_t)(after - first)};
    if (status == TTD_OK)
        status = ttd_stacks_open(batch, NULL, &chunk.stacks);
    if (status == TTD_OK)
        table->chunks[table->count++] = chunk;
    return status;
}

/* Chunks do not overlap and are sorted, so the search is a binary one. A trace has thousands of
 * them. */
struct stack_chunk *stack_table_find(const struct stack_table *table, ttd_id id)
{
    size_t after = 0, end = table->count;
    SEARCH_SORTED(after, end, middle, table->chunks[middle].first <= id);
    struct stack_chunk *chunk = after ? &table->chunks[after - 1] : NULL;
    return chunk && id - chunk->first < chunk->count ? chunk : NULL;
}

/* Once the steps are spent none are left for cheaper work either: a command that has reached its
 * limit must not go on with a part of its findings. */
enum ttd_status stack_table_spend(const struct stack_table *table, uint64_t steps)
{
    if (!table->steps)
        return TTD_OK;
    bool is_enough = steps <= *table->steps;
    *table->steps = is_enough ? *table->steps - steps : 0;
    return is_enough ? TTD_OK : TTD_ERROR_LIMIT;
}

enum ttd_status stack_table_get(const struct stack_table *table, ttd_id id, struct ttd_stack *stack)
{
    const struct stack_chunk *chunk = stack_table_find(table, id);
    return chunk ? stack_chunk_get(table, chunk, id, stack) : TTD_END;
}

enum ttd_status stack_chunk_get(const struct stack_table *table, const struct stack_chunk *chunk,
                                ttd_id id, struct ttd_stack *stack)
{
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = stack_table_spend(table, 1);
    if (status != TTD_OK)
        return status;
    status = ttd_stacks_get(chunk->stacks, id, stack, &error);
    /* Damage ends the stack at this frame. The report goes on, and says that the trace is damaged.
     */
    if (status != TTD_ERROR_CORRUPT)
        return status;
    if (table->damage.tell)
        table->damage.tell(table->damage.context, &error);
    return TTD_END;
}
