/* SPDX-License-Identifier: MIT */
#include "cli/filter.h"

#include <string.h>
#include <strings.h>

#include "view/glob.h"

#include "symbols/names.h"

void filter_init(struct filter *wanted)
{
    memset(wanted, 0, sizeof *wanted);
}

void filter_free(struct filter *wanted)
{
    stack_memo_free(&wanted->stack_matches);
}

static bool add_action(struct filter *wanted, const char *name, size_t size)
{
    for (int i = TTD_ACTION_ALLOC; i <= TTD_ACTION_DESTROY; i++) {
        const char *known = ttd_action_name((enum ttd_action)i);
        if (strlen(known) == size && strncasecmp(known, name, size) == 0) {
            wanted->actions |= UINT32_C(1) << i;
            return true;
        }
    }
    return false;
}

bool filter_add_actions(struct filter *wanted, const char *text)
{
    for (;;) {
        size_t size = strcspn(text, ",");
        if (!add_action(wanted, text, size))
            return false;
        if (!text[size])
            return true;
        text += size + 1;
    }
}

bool filter_set_thread(struct filter *wanted, const char *text)
{
    wanted->has_thread = true;
    wanted->is_os_thread = strncmp(text, "os:", 3) == 0;
    return number_parse(wanted->is_os_thread ? text + 3 : text, &wanted->thread);
}

bool filter_set_heap(struct filter *wanted, const char *text)
{
    wanted->has_heap = true;
    wanted->heap_name = number_parse(text, &wanted->heap) ? NULL : text;
    return *text;
}

bool filter_add_address(struct filter *wanted, const char *text)
{
    if (wanted->address_count == FILTER_ADDRESSES)
        return false;
    return number_parse_range(text, &wanted->addresses[wanted->address_count++]);
}

bool filter_set_size(struct filter *wanted, const char *text)
{
    wanted->has_size = true;
    return number_parse_range(text, &wanted->size);
}

bool filter_set_stack(struct filter *wanted, const char *text)
{
    wanted->has_stack = true;
    wanted->stack_pattern = *text == '#' ? NULL : text;
    return *text == '#' ? number_parse(text + 1, &wanted->stack) : *text;
}

uint32_t filter_kinds(const struct filter *wanted)
{
    uint32_t kinds = 0;
    if (wanted->is_os_thread)
        kinds |= TTD_KIND_BIT(TTD_KIND_THREADS);
    if (wanted->heap_name)
        kinds |= TTD_KIND_BIT(TTD_KIND_STRINGS);
    if (wanted->stack_pattern)
        kinds |= TTD_KINDS_DEFINITIONS;
    return kinds;
}

static bool passes_thread(const struct filter *wanted, const struct definitions *names,
                          const struct ttd_event *event)
{
    if (!wanted->is_os_thread)
        return event->thread == wanted->thread;
    const struct definition_thread *thread = definitions_thread(names, event->thread);
    return thread && thread->os_id == wanted->thread;
}

static bool passes_heap(const struct filter *wanted, const struct definitions *names,
                        const struct ttd_event *event)
{
    const struct definition_heap *heap = definitions_heap(names, event->heap);
    if (!wanted->heap_name)
        return (heap ? heap->handle : 0) == wanted->heap;
    struct ttd_string name = definitions_text(names, heap ? heap->name : TTD_NONE);
    return name.size == strlen(wanted->heap_name) &&
           memcmp(name.data, wanted->heap_name, name.size) == 0;
}

/* An address matches whatever it is to the call. 0 is no address, unless asked for. */
static bool passes_address(const struct filter *wanted, const struct ttd_event *event)
{
    uint64_t all[] = {event->address, event->base_address, event->previous_address};
    bool uses_heap = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_FREE ||
                     event->action == TTD_ACTION_REALLOC;
    for (size_t i = 0; uses_heap && i < wanted->address_count; i++) {
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            bool is_given = all[k] || (k == 0) == (event->action != TTD_ACTION_FREE);
            if (is_given && number_in_range(all[k], wanted->addresses[i]))
                return true;
        }
    }
    return false;
}

static bool passes_size(const struct filter *wanted, const struct ttd_event *event)
{
    bool has_size = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC ||
                    (event->action == TTD_ACTION_FREE && event->size);
    return has_size && number_in_range(event->size, wanted->size);
}

static bool text_matches(const char *pattern, struct ttd_string text)
{
    return glob_find((struct ttd_string){pattern, strlen(pattern)}, text);
}

#define STACK_DIFFERS UINT32_C(1)
#define STACK_MATCHES UINT32_C(2)

/* A filter at work on a trace. */
struct match {
    const struct filter *wanted;
    struct definitions *names;
};

/* Bytes of names that count for a step. */
#define NAME_STEP 64

static enum ttd_status find_match(void *context, const struct ttd_stack *stack, uint32_t above,
                                  uint32_t *fact)
{
    const struct match *tried = context;
    struct definitions *names = tried->names;
    const char *pattern = tried->wanted->stack_pattern;
    const struct definition_module *module = definitions_module(names, stack->module);
    const struct definition_symbol *symbol =
        definitions_symbol(names, stack->module, stack->offset);
    enum ttd_status status = TTD_OK;
    bool matches = above == STACK_MATCHES ||
                   (module && text_matches(pattern, definitions_text(names, module->path)));
    for (uint32_t i = 0; symbol && i < symbol->count && !matches && status == TTD_OK; i++) {
        struct ttd_string name =
            definitions_function(names, names->frames[symbol->first + i].function);
        matches = text_matches(pattern, name);
        status = stack_table_spend(&names->stacks, 1 + name.size / NAME_STEP);
    }
    *fact = matches ? STACK_MATCHES : STACK_DIFFERS;
    return status;
}

/* A stack matches if one of its frames does. */
static bool passes_pattern(struct filter *wanted, struct definitions *names, ttd_id stack)
{
    struct match tried = {wanted, names};
    struct stack_memo_finder finder = {.context = &tried, .find = find_match};
    uint32_t fact = 0;
    if (wanted->status == TTD_OK)
        wanted->status =
            stack_memo_find(&wanted->stack_matches, &names->stacks, stack, &finder, &fact);
    return fact == STACK_MATCHES;
}

bool filter_passes(struct filter *wanted, struct definitions *names, const struct ttd_event *event)
{
    if (wanted->actions && !(event->action < 32 && wanted->actions >> event->action & 1))
        return false;
    if (wanted->has_thread && !passes_thread(wanted, names, event))
        return false;
    if (wanted->has_heap && !passes_heap(wanted, names, event))
        return false;
    if (wanted->address_count && !passes_address(wanted, event))
        return false;
    if (wanted->has_size && !passes_size(wanted, event))
        return false;
    if (!wanted->has_stack)
        return true;
    if (!wanted->stack_pattern)
        return event->stack == wanted->stack;
    return passes_pattern(wanted, names, event->stack);
}

/* ---- What is named ---- */

const char *filter_option(enum filter_name part)
{
    static const char *const names[FILTER_NAMES] = {"--thread", "--heap", "--stack"};
    return names[part];
}

uint32_t filter_known_kinds(const struct filter *wanted)
{
    uint32_t kinds = 0;
    if (wanted->has_thread)
        kinds |= TTD_KIND_BIT(TTD_KIND_THREADS);
    if (wanted->has_heap)
        kinds |= TTD_KIND_BIT(TTD_KIND_STRINGS) | TTD_KIND_BIT(TTD_KIND_HEAPS);
    if (wanted->has_stack)
        kinds |= TTD_KINDS_DEFINITIONS;
    return kinds;
}

/* Whether a table has a thread or heap that a filter lets pass. */
static bool has_owner(const struct filter *wanted, const struct definitions *names, bool is_thread)
{
    const struct idtable *table = is_thread ? &names->threads : &names->heaps;
    for (size_t run = 0; run < table->run_count; run++) {
        for (size_t i = 0; i < table->runs[run].count; i++) {
            ttd_id id = table->runs[run].first + (ttd_id)i;
            struct ttd_event event = {.thread = id, .heap = id};
            if (is_thread ? passes_thread(wanted, names, &event)
                          : passes_heap(wanted, names, &event))
                return true;
        }
    }
    return false;
}

static bool matches_name(const void *context, struct ttd_string name)
{
    return text_matches(context, name);
}

static enum ttd_status knows_stack(const struct filter *wanted, struct definitions *names,
                                   bool *is_known)
{
    struct ttd_stack stack;
    struct names_matcher matcher = {wanted->stack_pattern, matches_name, .takes_files = false};
    if (wanted->stack_pattern)
        return names_find(names, &matcher, is_known);
    /* 0 is no stack, which events may have. */
    *is_known = !wanted->stack;
    if (!wanted->stack || wanted->stack > UINT32_MAX)
        return TTD_OK;
    enum ttd_status status = definitions_stack(names, (ttd_id)wanted->stack, &stack);
    *is_known = status == TTD_OK;
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status filter_knows(const struct filter *wanted, struct definitions *names,
                             enum filter_name part, bool *is_known)
{
    *is_known = true;
    if (part == FILTER_STACK && wanted->has_stack)
        return knows_stack(wanted, names, is_known);
    if (part == FILTER_THREAD && wanted->has_thread)
        *is_known = has_owner(wanted, names, true);
    if (part == FILTER_HEAP && wanted->has_heap)
        *is_known = has_owner(wanted, names, false);
    return TTD_OK;
}
