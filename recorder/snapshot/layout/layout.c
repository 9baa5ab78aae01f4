/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/layout.h"

#include <string.h>

#include "channel.h"
#include "snapshot/layout/layout_parts.h"

static bool layout_begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

const struct layout_thread *layout_thread_find(const struct layout_search *search, uint32_t tid)
{
    size_t low = 0, high = search->thread_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (search->threads[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < search->thread_count && search->threads[low].tid == tid;
    return is_found ? &search->threads[low] : NULL;
}

void layout_skip(struct layout_search *search, uint64_t begin, uint64_t end)
{
    struct region region = {.begin = begin, .end = end, .kind = REGION_SKIPPED};
    regions_add(&search->refined, &region);
}

static bool is_channel(const struct layout_search *search, const struct mapping *mapping)
{
    return mapping->inode == search->subject->channel_inode &&
           layout_begins_with(mapping->name, CHANNEL_NAME);
}

static struct region layout_region(const struct layout_search *search,
                                   const struct mapping *mapping)
{
    const char *name = mapping->name;
    struct region region = {
        .begin = mapping->begin,
        .end = mapping->end,
        .kind = mapping->is_file || mapping->is_shared ? TTD_REGION_FILE : TTD_REGION_ANONYMOUS,
        .name = *name != '\0' ? name : NULL,
    };
    if (mapping->is_file) {
        if (is_channel(search, mapping))
            region.kind = REGION_SKIPPED;
    } else if (strcmp(name, "[stack]") == 0) {
        /* The stack of a main thread that has ended is no root. */
        region.kind =
            layout_thread_find(search, search->pid) != NULL ? TTD_REGION_STACK : REGION_SKIPPED;
        region.tid = search->pid;
        region.name = NULL;
    }
    return region;
}

/* Adds the pages of a mapping that were written before it was protected. */
static void add_written(struct layout_search *search, const struct mapping *mapping)
{
    struct memory_span spans[MEMORY_SPANS];
    for (uint64_t address = mapping->begin;
         address < mapping->end && !memory_is_late(search->memory);) {
        size_t count = memory_written(search->memory, &address, mapping->end, spans);
        for (size_t i = 0; i < count; i++) {
            struct region region = layout_region(search, mapping);
            region.begin = spans[i].begin;
            region.end = spans[i].end;
            regions_add(search->regions, &region);
        }
    }
}

/* Whether a mapping is of a loaded module: what the program has not written there is the file's. */
static bool is_of_module(const struct layout_search *search, const struct mapping *mapping)
{
    for (size_t i = 0; i < search->subject->module_count; i++)
        if (mapping->begin >= search->subject->modules[i].begin &&
            mapping->begin < search->subject->modules[i].end)
            return true;
    return false;
}

/* Whether a mapping is of a queue of the kernel's: io_uring or AIO. What the program has submitted
 * there is the kernel's until it is done. */
static bool is_kernel_queue(const struct mapping *mapping)
{
    return layout_begins_with(mapping->name, "anon_inode:[io_uring]") ||
           layout_begins_with(mapping->name, "/[aio]");
}

/* Adds what the program may have pointers in: where it can write, or could before it protected what
 * it wrote, or before another mapping of the same memory was gone. */
static void add_mapping(struct layout_search *search, const struct mapping *mapping)
{
    struct region region = layout_region(search, mapping);
    bool is_private_module =
        mapping->is_file && !mapping->is_shared && is_of_module(search, mapping);
    enum backing_kind kind =
        is_private_module ? BACKING_OLD : backing_of(&search->backing, mapping);
    bool is_own = kind == BACKING_ANONYMOUS || kind == BACKING_OLD;
    if (!mapping->is_file && layout_begins_with(mapping->name, "[v")) /* [vvar], [vdso] */
        return;
    region.untouched = (unsigned char)backing_untouched(kind);
    region.is_device = kind == BACKING_DEVICE;
    uint64_t fault_address = search->subject->fault_address;
    bool is_named = fault_address >= mapping->begin && fault_address < mapping->end &&
                    !is_of_module(search, mapping);
    if (mapping->is_writable || !is_own || is_named)
        regions_add(search->regions, &region);
    else if (!mapping->is_shared)
        add_written(search, mapping);
}

/* Cuts out the memory that the recorder has mapped for itself. */
static void add_own(struct layout_search *search)
{
    enum { PARTS_MAX = 4096 };
    struct own_memory part;
    uint64_t address = search->subject->own_memory;
    for (int i = 0; i < PARTS_MAX && address != 0; i++, address = part.next) {
        if (!memory_read(search->memory, address, &part, sizeof part))
            break;
        layout_skip(search, address, address + sizeof part);
        for (size_t j = 0; j < OWN_RANGES; j++)
            layout_skip(search, part.ranges[j].begin, part.ranges[j].begin + part.ranges[j].size);
    }
    regions_refine(search->regions, &search->refined);
}

/* Removes what is skipped, and words that do not begin where words do. */
static void remove_skipped(struct regions *regions)
{
    size_t count = 0;
    for (size_t i = 0; i < regions->count; i++) {
        struct region region = regions->items[i];
        region.begin = (region.begin + 7) / 8 * 8;
        region.end = region.end / 8 * 8;
        if (region.kind != REGION_SKIPPED && region.begin < region.end)
            regions->items[count++] = region;
    }
    regions->count = count;
}

bool layout_find(struct layout *layout, uint32_t pid, const struct memory *memory,
                 const struct snapshot_subject *subject, const struct layout_thread *threads,
                 size_t thread_count)
{
    *layout = (struct layout){0};
    struct layout_search search = {.memory = memory,
                                   .subject = subject,
                                   .threads = threads,
                                   .thread_count = thread_count,
                                   .pid = pid,
                                   .backing = {.pid = pid, .tid = memory->tid},
                                   .regions = &layout->regions};
    if (!maps_read(&layout->maps, pid, memory->tid))
        return false;
    for (size_t i = 0; i < layout->maps.count; i++) {
        add_mapping(&search, &layout->maps.items[i]);
        layout->has_kernel_queue |= is_kernel_queue(&layout->maps.items[i]);
    }
    layout_add_modules(&search);
    add_own(&search);
    layout_add_threads(&search);
    tls_blocks_cut(&search.blocks, &layout->regions);
    layout_add_heaps(&search);
    layout->arena = search.arena;
    layout->arena_module = search.has_arena ? search.arena_module : TTD_NONE;
    backing_free(&search.backing);
    remove_skipped(&layout->regions);
    layout->is_whole =
        layout->maps.is_whole && !layout->regions.is_short && !memory_is_late(memory);
    return true;
}

void layout_free(struct layout *layout)
{
    regions_free(&layout->regions);
    maps_free(&layout->maps);
}
