/* SPDX-License-Identifier: MIT */
/* Stacks and thread-local storage of threads, and what the C library keeps of threads that ended.
 */
#include "snapshot/layout/layout_parts.h"

#include "snapshot/layout/glibc.h"

/* Adds a thread's regions. Nothing of its stack before `begin` is in use. */
static void add_thread(struct layout_search *search, const struct glibc_thread *thread,
                       uint32_t tid, uint64_t begin)
{
    const struct region *around = regions_at(search->regions, thread->pointer);
    uint64_t vector = thread->pointer + 8;
    struct region stack = {
        .begin = begin, .end = thread->tls_begin, .kind = TTD_REGION_STACK, .tid = tid};
    struct region tls = {.begin = thread->tls_begin,
                         .end = thread->tls_end,
                         .kind = TTD_REGION_TLS,
                         .tid = tid,
                         .vector = vector};
    if (around == NULL)
        return;
    if (thread->block_begin == 0) {
        tls.begin = tls.begin > around->begin ? tls.begin : around->begin;
    } else {
        layout_skip(search, thread->block_begin, begin);
        regions_add(&search->refined, &stack);
    }
    regions_add(&search->refined, &tls);
}

/* Adds a living thread that the library knows. */
static void add_living(struct layout_search *search, const struct layout_thread *thread)
{
    struct glibc_thread glibc_thread;
    if (!thread->is_known)
        return;
    const struct region *stack = regions_at(search->regions, thread->stack_begin);
    if (stack != NULL && stack->kind == TTD_REGION_STACK && thread->tid == search->pid &&
        !thread->is_within_frame)
        layout_skip(search, stack->begin, thread->stack_begin);
    if (!glibc_thread_read(search->memory, thread->thread_pointer, &glibc_thread))
        return;
    /* Its stack may be another one for the moment, such as one for signals. */
    bool is_within = !thread->is_within_frame && thread->stack_begin >= glibc_thread.block_begin &&
                     thread->stack_begin < glibc_thread.tls_begin;
    add_thread(search, &glibc_thread, thread->tid,
               is_within ? thread->stack_begin : glibc_thread.block_begin);
}

/* Adds a thread that the library has in a list: one that has ended, or whose registers are not
 * known. A thread that has ended still uses its vector of thread-local storage, and, until it is
 * joined, the value that it returned. */
static void add_listed(void *context, const struct glibc_thread *thread)
{
    struct layout_search *search = context;
    const struct layout_thread *living =
        thread->tid != 0 ? layout_thread_find(search, thread->tid) : NULL;
    if (thread->block_begin == 0 || (living != NULL && living->is_known))
        return;
    if (living != NULL) {
        add_thread(search, thread, thread->tid, thread->block_begin);
        return;
    }
    struct region used_region = {.begin = thread->pointer + 8,
                                 .end =
                                     thread->is_joinable ? thread->block_end : thread->pointer + 16,
                                 .kind = TTD_REGION_TLS,
                                 .vector = thread->pointer + 8};
    layout_skip(search, thread->block_begin, used_region.begin);
    regions_add(&search->refined, &used_region);
    layout_skip(search, used_region.end, thread->block_end);
}

/* Threads are in mappings of the library's own, or in memory of the program. */
static bool may_be_thread(void *context, uint64_t address)
{
    const struct layout_search *search = context;
    const struct region *region = regions_at(search->regions, address);
    return region != NULL && region->kind != REGION_SKIPPED && region->kind != TTD_REGION_MODULE;
}

static bool is_data_of_library(const struct layout_search *search, const struct region *region)
{
    for (size_t i = 0; i < search->subject->module_count; i++)
        if (search->subject->modules[i].id == region->module)
            return region->kind == TTD_REGION_MODULE && region->name == layout_data_name &&
                   layout_is_library(search->subject->modules[i].path);
    return false;
}

/* Cuts out threads, and what the allocator keeps in the library's data. */
void layout_add_threads(struct layout_search *search)
{
    const struct glibc_calls calls = {may_be_thread, add_listed, search};
    for (size_t i = 0; i < search->thread_count; i++)
        add_living(search, &search->threads[i]);
    for (size_t i = 0; i < search->regions->count; i++) {
        const struct region *region = &search->regions->items[i];
        struct memory_span data = {region->begin, region->end};
        if (!is_data_of_library(search, region))
            continue;
        glibc_threads_find(search->memory, data, &calls);
        if (!search->has_arena && glibc_arena_find(search->memory, data, &search->arena)) {
            layout_skip(search, search->arena.lists.begin, search->arena.lists.end);
            search->has_arena = true;
            search->arena_module = region->module;
        }
    }
    regions_refine(search->regions, &search->refined);
}
