/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/process_layout.h"

#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "common/search.h"
#include "snapshot/layout/glibc.h"
#include "snapshot/layout/maps.h"

/* A search for regions. Each part of it collects regions in `refined`, then cuts `regions` by
 * them. */
struct layout_search {
    const struct memory *memory;
    const struct snapshot_subject *subject;
    const struct layout_thread *threads; /* sorted by tid */
    size_t thread_count;
    bool has_unknown; /* a living thread without registers */
    bool is_static;   /* the C library is linked into the program */
    uint32_t pid;
    struct regions *regions;
    struct regions refined;
    bool has_arena;           /* blocks come from the allocator of the GNU C library */
    struct glibc_arena arena; /* its main one */
    ttd_id arena_module;      /* the library that has it */
    struct tls_blocks blocks;
    struct backing backing;
};

static bool layout_begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Returns the living thread with a number; NULL if there is none. */
static const struct layout_thread *layout_thread_find(const struct layout_search *search,
                                                      uint32_t tid)
{
    size_t low = 0, high = search->thread_count;
    SEARCH_SORTED(low, high, middle, search->threads[middle].tid < tid);
    bool is_found = low < search->thread_count && search->threads[low].tid == tid;
    return is_found ? &search->threads[low] : NULL;
}

/* Adds memory that is not searched. */
static void layout_skip(struct layout_search *search, uint64_t begin, uint64_t end)
{
    struct region region = {.begin = begin, .end = end, .kind = REGION_SKIPPED};
    regions_add(&search->refined, &region);
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
        if (mapping->inode == search->subject->channel_inode &&
            layout_begins_with(mapping->name, CHANNEL_NAME))
            region.kind = REGION_SKIPPED;
    } else if (strcmp(name, "[stack]") == 0) {
        /* The stack of a main thread that has ended is no root. */
        region.kind = layout_thread_find(search, search->pid) ? TTD_REGION_STACK : REGION_SKIPPED;
        region.tid = search->pid;
        region.name = NULL;
    }
    return region;
}

/* Adds the pages of a mapping that were written before it was protected. */
static void layout_add_written(struct layout_search *search, const struct mapping *mapping)
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

/* Whether a mapping is of a loaded module: bytes that the program has not written there are the
 * file's. */
static bool layout_is_of_module(const struct layout_search *search, const struct mapping *mapping)
{
    for (size_t i = 0; i < search->subject->module_count; i++)
        if (mapping->begin >= search->subject->modules[i].begin &&
            mapping->begin < search->subject->modules[i].end)
            return true;
    return false;
}

/* Cuts a region where the file of its mapping ends, and adds the first part: databases map much
 * more than there is yet. There is nothing in the rest. */
static void layout_add_file(struct layout_search *search, const struct mapping *mapping,
                            struct region *region)
{
    struct region first = *region;
    first.end = backing_end(&search->backing, mapping);
    if (first.end >= region->end)
        return;
    regions_add(search->regions, &first);
    region->begin = first.end;
    region->untouched = UNTOUCHED_EMPTY;
}

/* Adds memory where the program may have pointers: where it can write, or could before it protected
 * the memory, or before another mapping of the same memory was gone. */
static void layout_add_mapping(struct layout_search *search, const struct mapping *mapping)
{
    struct region region = layout_region(search, mapping);
    bool is_private_module =
        mapping->is_file && !mapping->is_shared && layout_is_of_module(search, mapping);
    enum backing_kind kind =
        is_private_module ? BACKING_OLD : backing_of(&search->backing, mapping);
    bool is_own = kind == BACKING_ANONYMOUS || kind == BACKING_OLD;
    if (!mapping->is_file && layout_begins_with(mapping->name, "[v")) /* [vvar], [vdso] */
        return;
    region.untouched = (unsigned char)backing_untouched(kind);
    region.is_device = kind == BACKING_DEVICE;
    if (kind == BACKING_MEMORY && mapping->is_shared) {
        region.shared_device = mapping->device;
        region.shared_inode = mapping->inode;
        region.shared_shift = mapping->offset - mapping->begin;
    }
    uint64_t fault_address = search->subject->fault_address;
    bool is_named = fault_address >= mapping->begin && fault_address < mapping->end &&
                    !layout_is_of_module(search, mapping);
    if (kind == BACKING_FILE || kind == BACKING_REMOTE)
        layout_add_file(search, mapping, &region);
    if (mapping->is_writable || !is_own || is_named)
        regions_add(search->regions, &region);
    else if (!mapping->is_shared)
        layout_add_written(search, mapping);
}

/* Cuts out the memory that the recorder has mapped for itself. */
static void layout_add_own(struct layout_search *search)
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

/* Removes skipped memory, and parts of words at its edges. */
static void layout_remove_skipped(struct regions *regions)
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

static bool layout_module_path_begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool layout_module_path_ends(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The file's name, without its directory. */
static const char *layout_module_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a module is the C library, a part of it, or the loader. */
static bool layout_is_library(const char *path)
{
    const char *name = layout_module_base_name(path);
    return layout_module_path_begins(name, "libc.so") || layout_module_path_begins(name, "libc-") ||
           layout_module_path_begins(name, "libpthread") ||
           layout_module_path_begins(name, "ld-linux") || layout_module_path_begins(name, "ld-2") ||
           layout_module_path_begins(name, "ld.so");
}

static uint64_t layout_page_down(uint64_t address)
{
    return address / MEMORY_PAGE * MEMORY_PAGE;
}

/* Adds the parts of a writable segment: from the file, and behind these. */
static void layout_add_segment(struct layout_search *search, const struct snapshot_module *module,
                               const Elf64_Phdr *segment)
{
    uint64_t begin = module->bias + segment->p_vaddr;
    uint64_t file_end = (begin + segment->p_filesz + 7) / 8 * 8;
    struct region region = {
        .begin = layout_page_down(begin),
        .end = file_end,
        .kind = layout_module_path_ends(layout_module_base_name(module->path), OWN_LIBRARY)
                    ? REGION_SKIPPED
                    : TTD_REGION_MODULE,
        .module = module->id,
        .name = layout_data_name,
    };
    regions_add(&search->refined, &region);
    region.begin = file_end;
    region.end = layout_page_down((begin + segment->p_memsz) + MEMORY_PAGE - 1);
    region.name = layout_bss_name;
    regions_add(&search->refined, &region);
}

/* Finds where threads have the variables of a module. */
static void layout_find_tls_block(struct layout_search *search,
                                  const struct snapshot_module *module, const Elf64_Phdr *segments,
                                  size_t count)
{
    struct tls_module asked = {.id = module->id,
                               .bias = module->bias,
                               .begin = module->begin,
                               .segments = segments,
                               .segment_count = count,
                               .is_library = layout_is_library(module->path)};
    for (size_t i = 0; i < search->thread_count; i++) {
        if (!search->threads[i].is_known)
            continue;
        tls_blocks_add(&search->blocks, search->memory, &asked, search->threads[i].thread_pointer);
        return;
    }
}

/* Cuts out the data of modules, and finds the blocks of their thread-local storage. */
static void layout_add_modules(struct layout_search *search)
{
    Elf64_Phdr segments[MODULE_SEGMENTS];
    for (size_t i = 0; i < search->subject->module_count; i++) {
        const struct snapshot_module *module = &search->subject->modules[i];
        size_t count = module_segments(search->memory, module, segments);
        layout_find_tls_block(search, module, segments, count);
        for (size_t j = 0; j < count; j++)
            if (segments[j].p_type == PT_LOAD && (segments[j].p_flags & PF_W))
                layout_add_segment(search, module, &segments[j]);
    }
    regions_refine(search->regions, &search->refined);
}

/* Stacks and thread-local storage of threads, and the C library's memory of threads that ended.
 */

/* Adds a thread's regions. Nothing of its stack before `begin` is in use. */
static void layout_add_thread(struct layout_search *search, const struct glibc_thread *thread,
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
    if (!around)
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
static void layout_add_living(struct layout_search *search, const struct layout_thread *thread)
{
    struct glibc_thread glibc_thread;
    if (!thread->is_known)
        return;
    const struct region *stack = regions_at(search->regions, thread->stack_begin);
    if (stack && stack->kind == TTD_REGION_STACK && thread->tid == search->pid &&
        !thread->is_within_frame)
        layout_skip(search, stack->begin, thread->stack_begin);
    if (!glibc_thread_read(search->memory, thread->thread_pointer, &glibc_thread))
        return;
    /* Its stack may be another one for the moment, such as one for signals. */
    bool is_within = !thread->is_within_frame && thread->stack_begin >= glibc_thread.block_begin &&
                     thread->stack_begin < glibc_thread.tls_begin;
    layout_add_thread(search, &glibc_thread, thread->tid,
                      is_within ? thread->stack_begin : glibc_thread.block_begin);
}

static bool layout_has_unknown(const struct layout_thread *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!threads[i].is_known)
            return true;
    return false;
}

/* Returns the living thread whose structure the library has in a list; NULL if there is none. The
 * thread pointer decides: the number in a structure is one of the program's own PID namespace, or,
 * in a child that a system call of the program's own has forked, of the parent's thread. The system
 * clears it when the thread ends. */
static const struct layout_thread *layout_living_find(const struct layout_search *search,
                                                      const struct glibc_thread *thread)
{
    const struct layout_thread *same =
        thread->tid != 0 ? layout_thread_find(search, thread->tid) : NULL;
    if (thread->tid == 0 || (same && same->thread_pointer == thread->pointer))
        return same;
    for (size_t i = 0; i < search->thread_count; i++)
        if (search->threads[i].is_known && search->threads[i].thread_pointer == thread->pointer)
            return &search->threads[i];
    return same;
}

/* Adds a thread that the library has in a list: one that has ended, or whose registers are not
 * known. A thread that has ended still uses its vector of thread-local storage, and, until it is
 * joined, the value that it returned. */
static void layout_add_listed(void *context, const struct glibc_thread *thread)
{
    struct layout_search *search = context;
    if (thread->block_begin == 0)
        return;
    const struct layout_thread *living = layout_living_find(search, thread);
    if (living && living->is_known)
        return;
    if (living || (thread->tid != 0 && search->has_unknown)) {
        layout_add_thread(search, thread, living ? living->tid : 0, thread->block_begin);
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
static bool layout_may_be_thread(void *context, uint64_t address)
{
    const struct layout_search *search = context;
    const struct region *region = regions_at(search->regions, address);
    return region && region->kind != REGION_SKIPPED && region->kind != TTD_REGION_MODULE;
}

static bool layout_is_static(const struct snapshot_subject *subject)
{
    for (size_t i = 0; i < subject->module_count; i++)
        if (layout_is_library(subject->modules[i].path))
            return false;
    return true;
}

/* Whether a region may have data of the C library: of the library's own, or of a program that it is
 * linked into. */
static bool layout_is_data_of_library(const struct layout_search *search,
                                      const struct region *region)
{
    for (size_t i = 0; i < search->subject->module_count; i++)
        if (search->subject->modules[i].id == region->module)
            return region->kind == TTD_REGION_MODULE &&
                   (search->is_static || (region->name == layout_data_name &&
                                          layout_is_library(search->subject->modules[i].path)));
    return false;
}

/* Cuts out stacks and thread-local storage, and the data of the C library's allocator. Needs the
 * modules. */
static void layout_add_threads(struct layout_search *search)
{
    const struct glibc_calls calls = {layout_may_be_thread, layout_add_listed, search,
                                      search->is_static};
    for (size_t i = 0; i < search->thread_count; i++)
        layout_add_living(search, &search->threads[i]);
    for (size_t i = 0; i < search->regions->count; i++) {
        const struct region *region = &search->regions->items[i];
        struct memory_span data = {region->begin, region->end};
        if (!layout_is_data_of_library(search, region))
            continue;
        glibc_threads_find(search->memory, data, &calls);
        struct glibc_arena arena;
        if (search->has_arena || !glibc_arena_find(search->memory, data, &arena))
            continue;
        layout_skip(search, arena.lists.begin, arena.lists.end);
        search->has_arena = true;
        search->arena = arena;
        search->arena_module = region->module;
    }
    regions_refine(search->regions, &search->refined);
}

/* ---- The memory that allocators give blocks from ---- */

static void layout_add_heap(struct layout_search *search, const struct region *region,
                            uint64_t begin, uint64_t end, ttd_id allocator)
{
    struct region heap = {.begin = begin > region->begin ? begin : region->begin,
                          .end = end < region->end ? end : region->end,
                          .kind = TTD_REGION_HEAP,
                          .module = allocator};
    regions_add(&search->refined, &heap);
}

/* The first words of pages side by side, read at once. */
struct page_heads {
    struct memory memory;
    struct memory_batch *batch;
    uint64_t begin;
};

/* Reads the two words at the begin of a page, and ahead the same words of more pages before `end`.
 */
static bool layout_page_head(struct page_heads *heads, uint64_t page, uint64_t end,
                             uint64_t words[2])
{
    enum { SIZE = 2 * sizeof(uint64_t) };
    struct memory_batch *batch = heads->batch;
    size_t index = (page - heads->begin) / MEMORY_PAGE;
    if (!batch)
        batch = heads->batch = calloc(1, sizeof *batch);
    if (!batch)
        return false;
    if (page < heads->begin || index >= batch->count) {
        memory_batch_clear(batch);
        heads->begin = page;
        for (uint64_t next = page; next < end; next += MEMORY_PAGE)
            if (memory_batch_add(batch, next, SIZE, 0) == 0)
                break;
        memory_batch_read(batch, &heads->memory);
        index = 0;
    }
    memcpy(words, batch->pieces[index].bytes, SIZE);
    return true;
}

/* Adds the memory of arenas that begins at a page, if there is any. Returns where to look next. A
 * block that has a mapping of its own stays a part of that: it leaves nothing behind. */
static uint64_t layout_add_arena_at(struct layout_search *search, const struct region *region,
                                    struct page_heads *heads, uint64_t page, uint64_t end)
{
    const struct heap_pages *pages = search->subject->pages;
    struct memory_span part;
    uint64_t words[2];
    if (page % GLIBC_HEAP_ALIGNMENT == 0 && glibc_heap_find(search->memory, page, &part) &&
        heap_pages_touch(pages, part.begin, part.end)) {
        layout_add_heap(search, region, part.begin, part.end, search->arena_module);
        return part.end;
    }
    if (!heap_pages_has(pages, page) || !layout_page_head(heads, page, end, words))
        return page + MEMORY_PAGE;
    uint64_t size = glibc_mapped_size(words);
    if (size != 0 && size <= region->end - page)
        return page + size;
    if (!glibc_segment_find(search->memory, page, words, region->end, &search->arena, &part))
        return page + MEMORY_PAGE;
    layout_add_heap(search, region, part.begin, part.end, search->arena_module);
    return part.end;
}

/* Adds the memory of arenas in a region: the heaps of arenas other than the main one, and the main
 * one's mappings. */
static void layout_add_arenas(struct layout_search *search, const struct region *region)
{
    struct memory_span spans[MEMORY_SPANS];
    struct page_heads heads = {.memory = *search->memory};
    uint64_t address = (region->begin + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    uint64_t end = region->end / MEMORY_PAGE * MEMORY_PAGE, next = address;
    while (address < end && !memory_is_late(&heads.memory)) {
        size_t count = memory_touched(&heads.memory, &address, end, spans);
        for (size_t i = 0; i < count; i++) {
            next = spans[i].begin > next ? spans[i].begin : next;
            while (next < spans[i].end)
                next = layout_add_arena_at(search, region, &heads, next, spans[i].end);
        }
    }
    free(heads.batch);
}

/* Adds the heap pages of the program break that have held blocks of the main arena. All else there
 * belongs to the program: the program break is open to all. If the program has moved it, even
 * memory that has held blocks may be the program's now. */
static void layout_add_heap_pages(struct layout_search *search, const struct region *region)
{
    const struct heap_pages *pages = search->subject->pages;
    /* Nobody sees whether a static program does. */
    bool may_move_break = search->subject->moves_break || search->is_static;
    ttd_id allocator = may_move_break ? TTD_NONE : search->arena_module;
    uint64_t begin = 0, end = region->end < pages->high ? region->end : pages->high;
    uint64_t address = region->begin > pages->low ? region->begin : pages->low;
    end = end < search->arena.end ? end : search->arena.end;
    for (address = address / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE; address < end;
         address += HEAP_PAGE_SIZE) {
        bool is_heap = heap_pages_has(pages, address);
        if (is_heap && begin == 0)
            begin = address;
        if (!is_heap && begin != 0) {
            layout_add_heap(search, region, begin, address, allocator);
            begin = 0;
        }
    }
    if (begin != 0)
        layout_add_heap(search, region, begin, end, allocator);
}

/* Cuts out the memory that blocks come from. Needs to know whether there is an arena: another
 * allocator may keep anything beside its blocks, so that a mapping with blocks is all heap. */
static void layout_add_heaps(struct layout_search *search)
{
    for (size_t i = 0; i < search->regions->count; i++) {
        const struct region *region = &search->regions->items[i];
        if (region->kind != TTD_REGION_ANONYMOUS ||
            !heap_pages_touch(search->subject->pages, region->begin, region->end))
            continue;
        if (!search->has_arena)
            layout_add_heap(search, region, region->begin, region->end, TTD_NONE);
        else if (!region->name || strcmp(region->name, "[heap]") != 0)
            layout_add_arenas(search, region);
        else
            layout_add_heap_pages(search, region);
    }
    regions_refine(search->regions, &search->refined);
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
                                   .has_unknown = layout_has_unknown(threads, thread_count),
                                   .is_static = layout_is_static(subject),
                                   .pid = pid,
                                   .backing = {.pid = pid, .tid = memory->tid},
                                   .regions = &layout->regions};
    if (!maps_read(&layout->maps, pid, memory->tid))
        return false;
    for (size_t i = 0; i < layout->maps.count; i++) {
        layout_add_mapping(&search, &layout->maps.items[i]);
        /* Requests that the program has submitted to io_uring or AIO are the kernel's until they
         * are done. */
        const char *name = layout->maps.items[i].name;
        layout->has_kernel_queue |=
            layout_begins_with(name, "anon_inode:[io_uring]") || layout_begins_with(name, "/[aio]");
    }
    layout_add_modules(&search);
    layout_add_own(&search);
    layout_add_threads(&search);
    tls_blocks_cut(&search.blocks, &layout->regions);
    layout_add_heaps(&search);
    bool has_library = search.has_arena && !search.is_static;
    layout->arena = has_library ? search.arena : (struct glibc_arena){.top = 0};
    layout->arena_module = has_library ? search.arena_module : TTD_NONE;
    backing_free(&search.backing);
    layout_remove_skipped(&layout->regions);
    layout->is_whole =
        layout->maps.is_whole && !layout->regions.is_short && !memory_is_late(memory);
    return true;
}

void layout_free(struct layout *layout)
{
    regions_free(&layout->regions);
    maps_free(&layout->maps);
}

/* The data of modules, by their program headers in memory. */

const char layout_data_name[] = ".data", layout_bss_name[] = ".bss";
