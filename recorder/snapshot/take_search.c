/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that numbers the regions, searches them and copies their pages. */
#include <stdlib.h>

#include "snapshot/pages/page_contents.h"
#include "snapshot/taking.h"

enum { REFERENCES_MAX = 100000000 };

/* Name of the heap of a program that has asked for usable sizes. */
static const char usable_name[] = "usable sizes";

static ttd_id take_thread_id(const struct taking *taking, uint32_t tid)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    return tid != 0 ? calls->thread(calls->context, tid) : TTD_NONE;
}

static ttd_id take_search_name_id(struct taking *taking, const char *name)
{
    ttd_id id = TTD_NONE;
    ttd_id *cached_id = name == layout_data_name  ? &taking->data_name
                        : name == layout_bss_name ? &taking->bss_name
                        : name == usable_name     ? &taking->usable_name
                                                  : &id;
    if (name && *cached_id == TTD_NONE)
        *cached_id = taking->order->calls.text(taking->order->calls.context, name);
    return *cached_id;
}

static void take_search_add_registers(struct taking *taking, uint32_t tid)
{
    taking->regions[taking->count++] = (struct ttd_region){.kind = TTD_REGION_REGISTERS,
                                                           .size = SNAPSHOT_REGISTERS * 8,
                                                           .thread = take_thread_id(taking, tid)};
}

static void take_search_add_region(struct taking *taking, const struct region *region)
{
    bool is_usable = region->kind == TTD_REGION_HEAP && taking->subject.asks_usable_sizes;
    const char *name = is_usable ? usable_name : region->name;
    taking->sources[taking->count] = region;
    taking->regions[taking->count++] =
        (struct ttd_region){.kind = region->kind,
                            .begin = region->begin,
                            .size = region->end - region->begin,
                            .thread = take_thread_id(taking, region->tid),
                            .module = region->module,
                            .name = take_search_name_id(taking, name)};
}

/* Numbers the regions: registers, then memory that a copy lacks, then roots, then the heap; it
 * comes last, since nothing can be said without roots. */
static bool take_search_number_regions(struct taking *taking)
{
    const struct regions *regions = &taking->layout.regions;
    size_t capacity = taking->threads.count + 1 + regions->count;
    taking->regions = calloc(capacity, sizeof *taking->regions);
    taking->sources = calloc(capacity, sizeof *taking->sources);
    if (!taking->regions || !taking->sources)
        return false;
    if (taking->order->request)
        take_search_add_registers(taking, taking->order->request->tid);
    for (size_t i = 0; i < taking->threads.count; i++)
        if (taking->threads.items[i].is_stopped)
            take_search_add_registers(taking, taking->threads.items[i].tid);
    for (size_t i = 0; i < regions->count; i++)
        if (taking_is_apart(taking, &regions->items[i]))
            take_search_add_region(taking, &regions->items[i]);
    taking->held_count = taking->count;
    for (size_t i = 0; i < regions->count; i++)
        if (regions->items[i].kind != TTD_REGION_HEAP &&
            !taking_is_apart(taking, &regions->items[i]))
            take_search_add_region(taking, &regions->items[i]);
    for (size_t i = 0; i < regions->count; i++)
        if (regions->items[i].kind == TTD_REGION_HEAP)
            take_search_add_region(taking, &regions->items[i]);
    struct ttd_regions record = {taking->snapshot->number, 1, taking->regions, taking->count};
    return taking->order->calls.regions(taking->order->calls.context, &record);
}

/* Searches the registers of all threads, in the order of their regions. Returns the number of the
 * last one. */
static uint32_t search_registers(const struct taking *taking, struct scan *scan)
{
    const struct snapshot_request *request = taking->order->request;
    struct scan_registers registers = {.count = SNAPSHOT_REGISTERS};
    if (request) {
        registers.region++;
        registers.valid = request->registers_valid;
        registers.values = request->registers;
        scan_registers(scan, &registers);
    }
    for (size_t i = 0; i < taking->threads.count; i++) {
        if (!taking->threads.items[i].is_stopped)
            continue;
        registers.region++;
        registers.valid = UINT64_MAX;
        registers.values = taking->threads.items[i].registers;
        scan_registers(scan, &registers);
    }
    return registers.region;
}

/* Writes the classes whose tables were found. */
static bool take_write_classes(struct taking *taking)
{
    size_t count;
    bool is_written = false;
    struct class_found *found_classes = classes_list(&taking->tables.classes, &count);
    struct ttd_class *classes = calloc(count + 1, sizeof *classes);
    for (size_t i = 0; found_classes && classes && i < count; i++)
        classes[i] = (struct ttd_class){found_classes[i].address,
                                        take_search_name_id(taking, found_classes[i].name)};
    if (found_classes && classes) {
        struct ttd_classes record = {taking->snapshot->number, classes, count};
        is_written = taking->order->calls.classes(taking->order->calls.context, &record);
    }
    free(classes);
    free(found_classes);
    return is_written;
}

static void search_region(const struct taking *taking, struct scan *scan, uint32_t number)
{
    const struct region *region = taking->sources[number];
    scan_region(scan, region, number + 1);
}

static bool take_search(struct taking *taking)
{
    struct scan_job job = {.memory = &taking->memory,
                           .pages = taking->subject.pages,
                           .tables = &taking->tables,
                           .references_max = REFERENCES_MAX,
                           .leaves_absent = taking->order->stalls->count != 0,
                           .calls = &taking->order->calls,
                           .resident = taking->order->is_hurried ? NULL : taking_resident,
                           .shared = taking->order->shared,
                           .tick = taking_tick,
                           .context = taking};
    struct scan *scan = scan_open(&job);
    if (!scan)
        return false;
    uint32_t number = search_registers(taking, scan);
    for (; number < taking->held_count; number++)
        search_region(taking, scan, number);
    scan_settle(scan);
    taking_release(taking);
    for (; number < taking->count; number++)
        search_region(taking, scan, number);
    struct scan_result result = scan_close(scan);
    taking->snapshot->missing = result.missing;
    if (!result.is_complete || !taking->layout.is_whole || taking->layout.has_kernel_queue ||
        taking->tables.classes.is_incomplete || memory_is_late(&taking->memory))
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    return result.is_written && take_write_classes(taking);
}

static bool take_search_copy(struct taking *taking)
{
    struct page_store *store = taking->order->store;
    struct contents_job job = {.memory = &taking->memory,
                               .pages = taking->subject.pages,
                               .store = store,
                               .is_stopped = taking->snapshot->flags & TTD_SNAPSHOT_STOPPED,
                               .tick = taking_tick,
                               .context = taking};
    if (!(taking->snapshot->contents & TTD_SNAPSHOT_MEMORY))
        return true;
    page_store_begin(store, taking->snapshot->number, taking->snapshot->position);
    uint64_t missing = contents_copy(&job, &taking->layout.regions);
    taking->snapshot->missing += missing;
    if (missing != 0)
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    return page_store_end(store) == TTD_OK;
}

bool taking_search(struct taking *taking)
{
    taking_note_stacks(taking);
    taking_note_calls(taking);
    return take_search_number_regions(taking) && take_search(taking) &&
           taking_write_headers(taking) && taking_write_frames(taking) && take_search_copy(taking);
}
