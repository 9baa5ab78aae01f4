/* SPDX-License-Identifier: MIT */
#include "cli/options/filter.h"

#include <string.h>
#include <strings.h>

#include "view/function_names.h"

#include "symbols/trace_definitions.h"

void filter_free(struct filter *filter)
{
    stack_memo_free(&filter->stack_matches);
}

static bool filter_add_action(struct filter *filter, const char *name, size_t size)
{
    for (int i = TTD_ACTION_ALLOC; i <= TTD_ACTION_DESTROY; i++) {
        const char *action_name = ttd_action_name((enum ttd_action)i);
        if (strlen(action_name) == size && strncasecmp(action_name, name, size) == 0) {
            filter->actions |= UINT32_C(1) << i;
            return true;
        }
    }
    return false;
}

bool filter_add_actions(const char *text, void *context)
{
    struct filter *filter = context;
    for (;;) {
        size_t size = strcspn(text, ",");
        if (!filter_add_action(filter, text, size))
            return false;
        if (!text[size])
            return true;
        text += size + 1;
    }
}

bool filter_set_thread(const char *text, void *context)
{
    struct filter *filter = context;
    filter->has_thread = true;
    filter->is_os_thread = strncmp(text, "os:", 3) == 0;
    return number_parse(filter->is_os_thread ? text + 3 : text, &filter->thread);
}

bool filter_set_heap(const char *text, void *context)
{
    struct filter *filter = context;
    /* A number is taken for a handle, so a heap whose name is a number can only be named by its
     * handle or its own number. */
    filter->has_heap = true;
    filter->is_heap_id = *text == '#';
    if (filter->is_heap_id)
        return number_parse(text + 1, &filter->heap);
    filter->heap_name = number_parse(text, &filter->heap) ? NULL : text;
    return *text;
}

bool filter_add_address(const char *text, void *context)
{
    struct filter *filter = context;
    if (filter->address_count == FILTER_ADDRESSES)
        return false;
    return number_parse_range(text, &filter->addresses[filter->address_count++]);
}

bool filter_set_size(const char *text, void *context)
{
    struct filter *filter = context;
    filter->has_size = true;
    return number_parse_range(text, &filter->size);
}

bool filter_set_stack(const char *text, void *context)
{
    struct filter *filter = context;
    /* A number is an identifier, with or without '#', as reports print it; a name that is a number
     * can be given as '*12*'. */
    filter->has_stack = true;
    filter->stack_pattern = NULL;
    if (number_parse(text + (*text == '#'), &filter->stack))
        return true;
    filter->stack_pattern = text;
    return *text && *text != '#';
}

uint32_t filter_kinds(const struct filter *filter)
{
    uint32_t kinds = 0;
    if (filter->is_os_thread)
        kinds |= TTD_KIND_BIT(TTD_KIND_THREADS);
    if (filter->heap_name)
        kinds |= TTD_KIND_BIT(TTD_KIND_STRINGS);
    if (filter->stack_pattern)
        kinds |= TTD_KINDS_DEFINITIONS;
    return kinds;
}

static bool filter_passes_thread(const struct filter *filter, const struct definitions *definitions,
                                 const struct ttd_event *event)
{
    if (!filter->is_os_thread)
        return event->thread == filter->thread;
    const struct definition_thread *thread = definitions_thread(definitions, event->thread);
    return thread && thread->os_id == filter->thread;
}

static bool filter_passes_heap(const struct filter *filter, const struct definitions *definitions,
                               const struct ttd_event *event)
{
    const struct definition_heap *heap = definitions_heap(definitions, event->heap);
    if (filter->is_heap_id)
        return event->heap == filter->heap;
    if (!filter->heap_name)
        return (heap ? heap->handle : 0) == filter->heap;
    struct ttd_string name = definitions_text(definitions, heap ? heap->name : TTD_NONE);
    return name.size == strlen(filter->heap_name) &&
           memcmp(name.data, filter->heap_name, name.size) == 0;
}

/* An address matches in any role: allocated, released, or the previous one. 0 means no address
 * where the action has none, and matches only where the call had it. */
static bool filter_passes_address(const struct filter *filter, const struct ttd_event *event)
{
    uint64_t addresses[] = {event->address, event->base_address, event->previous_address};
    bool reallocates = event->action == TTD_ACTION_REALLOC;
    bool allocates = event->action == TTD_ACTION_ALLOC || reallocates;
    bool releases = event->action == TTD_ACTION_FREE || reallocates;
    bool are_given[] = {allocates, releases, reallocates};
    for (size_t i = 0; (allocates || releases) && i < filter->address_count; i++) {
        for (size_t k = 0; k < sizeof addresses / sizeof addresses[0]; k++) {
            if ((addresses[k] || are_given[k]) &&
                number_in_range(addresses[k], filter->addresses[i]))
                return true;
        }
    }
    return false;
}

static bool filter_passes_size(const struct filter *filter, const struct ttd_event *event)
{
    bool has_size = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC ||
                    (event->action == TTD_ACTION_FREE && event->size);
    return has_size && number_in_range(event->size, filter->size);
}

static bool filter_text_matches(const char *pattern, struct ttd_string text)
{
    return glob_find((struct ttd_string){pattern, strlen(pattern)}, text);
}

#define STACK_DIFFERS UINT32_C(1)
#define STACK_MATCHES UINT32_C(2)

/* A filter, and the trace that it is applied to. */
struct match {
    const struct filter *filter;
    struct definitions *definitions;
};

/* Bytes of names that cost one step. */
#define NAME_STEP 64

static enum ttd_status filter_find_match(void *context, const struct ttd_stack *stack,
                                         uint32_t caller_fact, uint32_t *fact)
{
    const struct match *match = context;
    struct definitions *definitions = match->definitions;
    const char *pattern = match->filter->stack_pattern;
    const struct definition_module *module = definitions_module(definitions, stack->module);
    const struct definition_symbol *symbol =
        definitions_symbol(definitions, stack->module, stack->offset);
    enum ttd_status status = TTD_OK;
    bool matches =
        caller_fact == STACK_MATCHES ||
        (module && filter_text_matches(pattern, definitions_text(definitions, module->path)));
    for (uint32_t i = 0; symbol && i < symbol->count && !matches && status == TTD_OK; i++) {
        struct ttd_string name =
            definitions_function(definitions, definitions->frames[symbol->first + i].function);
        matches = filter_text_matches(pattern, name);
        status = stack_table_spend(&definitions->stacks, 1 + name.size / NAME_STEP);
    }
    *fact = matches ? STACK_MATCHES : STACK_DIFFERS;
    return status;
}

/* A stack matches if one of its frames does. */
static bool filter_passes_pattern(struct filter *filter, struct definitions *definitions,
                                  ttd_id stack)
{
    struct match match = {filter, definitions};
    struct stack_memo_finder finder = {.context = &match, .find = filter_find_match};
    uint32_t fact = 0;
    if (filter->status == TTD_OK)
        filter->status =
            stack_memo_find(&filter->stack_matches, &definitions->stacks, stack, &finder, &fact);
    return fact == STACK_MATCHES;
}

bool filter_passes(struct filter *filter, struct definitions *definitions,
                   const struct ttd_event *event)
{
    if (filter->actions && !(event->action < 32 && filter->actions >> event->action & 1))
        return false;
    if (filter->has_thread && !filter_passes_thread(filter, definitions, event))
        return false;
    if (filter->has_heap && !filter_passes_heap(filter, definitions, event))
        return false;
    if (filter->address_count && !filter_passes_address(filter, event))
        return false;
    if (filter->has_size && !filter_passes_size(filter, event))
        return false;
    if (!filter->has_stack)
        return true;
    if (!filter->stack_pattern)
        return event->stack == filter->stack;
    return filter_passes_pattern(filter, definitions, event->stack);
}

/* ---- Names ---- */

const char *filter_option(enum filter_name part)
{
    static const char *const names[FILTER_NAMES] = {"--thread", "--heap", "--stack"};
    return names[part];
}

uint32_t filter_known_kinds(const struct filter *filter)
{
    uint32_t kinds = 0;
    if (filter->has_thread)
        kinds |= TTD_KIND_BIT(TTD_KIND_THREADS);
    if (filter->has_heap)
        kinds |= TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_HEAPS);
    if (filter->has_stack)
        kinds |= TTD_KINDS_DEFINITIONS;
    return kinds;
}

/* Whether the trace has a thread or heap that the filter lets pass. */
static bool filter_has_owner(const struct filter *filter, const struct definitions *definitions,
                             bool is_thread)
{
    const struct idtable *table = is_thread ? &definitions->threads : &definitions->heaps;
    for (size_t run = 0; run < table->run_count; run++) {
        for (size_t i = 0; i < table->runs[run].count; i++) {
            ttd_id id = table->runs[run].first + (ttd_id)i;
            struct ttd_event event = {.thread = id, .heap = id};
            if (is_thread ? filter_passes_thread(filter, definitions, &event)
                          : filter_passes_heap(filter, definitions, &event))
                return true;
        }
    }
    return false;
}

static bool filter_matches_name(const void *context, struct ttd_string name)
{
    return filter_text_matches(context, name);
}

static enum ttd_status filter_knows_stack(const struct filter *filter,
                                          struct definitions *definitions, bool *is_known)
{
    struct ttd_stack stack;
    struct names_matcher matcher = {filter->stack_pattern, filter_matches_name,
                                    .takes_files = false};
    if (filter->stack_pattern)
        return names_find(definitions, &matcher, is_known);
    /* 0 is valid: events without a stack have it. */
    *is_known = !filter->stack;
    if (!filter->stack || filter->stack > UINT32_MAX)
        return TTD_OK;
    enum ttd_status status = definitions_stack(definitions, (ttd_id)filter->stack, &stack);
    *is_known = status == TTD_OK;
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status filter_knows(const struct filter *filter, struct definitions *definitions,
                             enum filter_name part, bool *is_known)
{
    *is_known = true;
    if (part == FILTER_STACK && filter->has_stack)
        return filter_knows_stack(filter, definitions, is_known);
    if (part == FILTER_THREAD && filter->has_thread)
        *is_known = filter_has_owner(filter, definitions, true);
    if (part == FILTER_HEAP && filter->has_heap)
        *is_known = filter_has_owner(filter, definitions, false);
    return TTD_OK;
}
