/* SPDX-License-Identifier: MIT */
#include "snapshot/take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "quiet_thread.h"
#include "snapshot/layout/maps.h"
#include "snapshot/pages/page_contents.h"
#include "snapshot/process_memory.h"
#include "snapshot/process_reader.h"
#include "snapshot/search/scan.h"
#include "snapshot/stacks/follower.h"
#include "snapshot/taking.h"

/* The search for tables of virtual functions: where they may be. */

static const void *take_read_page(void *context, uint64_t address, void *room)
{
    const struct memory *memory = context;
    const void *bytes = memory->image ? image_find(memory->image, address, CLASS_PAGE) : NULL;
    return bytes || !memory_read(memory, address, room, CLASS_PAGE) ? bytes : room;
}

static bool take_is_plain(void *context, uint64_t address)
{
    return image_is_clean(((const struct memory *)context)->image, address);
}

/* Returns the module that a mapping belongs to, or NULL. */
static const struct snapshot_module *take_module_of(const struct snapshot_subject *subject,
                                                    const struct mapping *mapping)
{
    for (size_t i = 0; i < subject->module_count; i++)
        if (mapping->begin >= subject->modules[i].begin && mapping->begin < subject->modules[i].end)
            return &subject->modules[i];
    return NULL;
}

/* Adds ".bss": a linker copies tables of libraries to there if the program itself uses them. */
static void take_add_copies(struct tables *tables, const struct regions *regions)
{
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *region = &regions->items[i];
        if (region->name == layout_bss_name)
            heap_pages_add(&tables->pages, region->begin, region->end - region->begin);
    }
}

/* Begins the search for tables. The memory must stay open. Without memory none is found. */
static void take_open_tables(struct tables *tables, const struct layout *layout,
                             const struct snapshot_subject *subject, struct memory *memory)
{
    const struct maps *maps = &layout->maps;
    *tables = (struct tables){0};
    tables->ranges = calloc(maps->count + 1, sizeof *tables->ranges);
    for (size_t i = 0; i < maps->count && tables->ranges; i++) {
        const struct mapping *mapping = &maps->items[i];
        const struct snapshot_module *module = take_module_of(subject, mapping);
        if (mapping->is_shared || !mapping->is_readable || !module)
            continue;
        tables->ranges[tables->range_count++] =
            (struct class_range){mapping->begin, mapping->end, mapping->is_executable,
                                 mapping->is_writable, module->bias != 0};
        if (!mapping->is_executable && !mapping->is_writable)
            heap_pages_add(&tables->pages, mapping->begin, mapping->end - mapping->begin);
    }
    take_add_copies(tables, &layout->regions);
    classes_init(&tables->classes, take_read_page, memory, tables->ranges, tables->range_count);
    tables->classes.is_plain = take_is_plain;
}

static void take_close_tables(struct tables *tables)
{
    classes_free(&tables->classes);
    heap_pages_free(&tables->pages);
    free(tables->ranges);
}

enum { RED_ZONE = 128 };

uint64_t taking_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool take_opens(struct taking *taking, uint32_t tid)
{
    bool is_open = memory_open(&taking->memory, taking->order->pid, tid);
    if (is_open && taking->order->is_forked)
        memory_spare(&taking->memory);
    if (is_open)
        taking->result = TAKE_FAILED; /* from now on not for want of permission */
    else if (errno == EPERM || errno == EACCES)
        taking->result = TAKE_DENIED;
    return is_open;
}

/* Opens the memory by the thread that waits, or by any other that lives. */
static bool take_open_memory(struct taking *taking)
{
    const struct snapshot_request *request = taking->order->request;
    if (request && take_opens(taking, request->tid))
        return true;
    for (size_t i = 0; i < taking->threads.count; i++)
        if (!taking->threads.items[i].has_ended && take_opens(taking, taking->threads.items[i].tid))
            return true;
    return false;
}

static int take_compare_tids(const void *left, const void *right)
{
    uint32_t a = ((const struct layout_thread *)left)->tid;
    uint32_t b = ((const struct layout_thread *)right)->tid;
    return a < b ? -1 : a > b;
}

/* Whether frames of the thread that waits may lie below its stack pointer: between a handler of a
 * signal and the interrupted code there may be any distance, and a coroutine may run anywhere.
 */
static bool take_has_frames_below(const struct snapshot_request *request)
{
    uint64_t last = request->stack_pointer;
    for (uint32_t i = 0; i < request->frame_count && i < SNAPSHOT_FRAMES; i++) {
        uint64_t address = request->frame_cfas[i];
        bool is_coroutine =
            request->coroutine_start != 0 && request->frame_pcs[i] == request->coroutine_start;
        if (is_coroutine || (address != 0 && address < last))
            return true;
        last = address != 0 ? address : last;
    }
    return false;
}

/* Lists the threads, the one that waits among them. */
static bool take_list_living(struct taking *taking)
{
    const struct snapshot_request *request = taking->order->request;
    taking->living = calloc(taking->threads.count + 1, sizeof *taking->living);
    if (!taking->living)
        return false;
    for (size_t i = 0; i < taking->threads.count; i++) {
        const struct thread_state *thread = &taking->threads.items[i];
        if (thread->has_ended)
            continue;
        taking->living[taking->living_count++] = (struct layout_thread){
            .tid = thread->tid,
            .is_known = thread->is_stopped,
            .stack_begin = thread->registers[THREAD_STACK_POINTER] - RED_ZONE,
            .thread_pointer = thread->thread_pointer,
        };
    }
    if (request)
        taking->living[taking->living_count++] =
            (struct layout_thread){.tid = request->tid,
                                   .is_known = true,
                                   .stack_begin = request->stack_pointer,
                                   .is_within_frame = take_has_frames_below(request),
                                   .thread_pointer = request->thread_pointer};
    qsort(taking->living, taking->living_count, sizeof *taking->living, take_compare_tids);
    return true;
}

/* Takes an image of the process if it stands still. */
static void take_hold(struct taking *taking)
{
    const struct snapshot_subject *subject = &taking->subject;
    uint64_t *pages =
        taking->threads.are_stopped ? calloc(subject->module_count + 1, sizeof *pages) : NULL;
    if (!pages)
        return;
    for (size_t i = 0; i < subject->module_count; i++)
        pages[i] = subject->modules[i].begin; /* program headers */
    memory_hold(&taking->memory, pages, subject->module_count);
    free(pages);
}

static bool take_stopped(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    if (!take_list_living(taking) || !take_open_memory(taking))
        return false;
    bool is_done = calls->settle(calls->context, &taking->subject);
    if (taking->order->request)
        taking->subject.fault_address = taking->order->request->fault_address;
    if (taking->is_copy_due) {
        heap_pages_join(&taking->pages, taking->subject.pages);
        taking->subject.pages = &taking->pages;
    }
    calls->tick(calls->context);
    if (is_done)
        take_hold(taking);
    /* A snapshot needs roots, and more than roots. */
    taking->memory.deadline = taking_now_ns() + taking->order->time_limit / 2;
    is_done = is_done && layout_find(&taking->layout, taking->order->pid, &taking->memory,
                                     &taking->subject, taking->living, taking->living_count);
    calls->tick(calls->context);
    taking->memory.deadline = taking->deadline;
    take_open_tables(&taking->tables, &taking->layout, &taking->subject, &taking->memory);
    is_done = is_done && taking_search(taking);
    reader_ask(taking_end_copy, taking);
    take_close_tables(&taking->tables);
    layout_free(&taking->layout);
    memory_close(&taking->memory);
    return is_done;
}

/* Stops the threads; in the thread that traces the process, as all that follows here is. */
static void take_stop_threads(void *context)
{
    struct taking *taking = context;
    const struct snapshot_request *request = taking->order->request;
    taking->begin = taking_now_ns();
    taking->threads = (struct threads){.pid = taking->order->pid, .are_stopped = true};
    if (taking->is_alone)
        return;
    threads_stop(&taking->threads, taking->order->pid, request ? request->tid : 0,
                 taking->order->child, taking->order->interrupted);
    taking->held_since = taking_now_ns();
}

/* Lets the threads go on although the reader is not done. It still reads the list of them. */
static void take_let_go(struct taking *taking)
{
    struct threads threads = taking->threads;
    size_t size = threads.count * sizeof *threads.items;
    threads.items = malloc(size + 1);
    if (!threads.items)
        return;
    if (size != 0)
        memcpy(threads.items, taking->threads.items, size);
    threads_release(&threads);
    taking->held_time = taking_now_ns() - taking->begin;
    taking->held_since = 0;
    taking->has_let_go = true;
}

/* Looks after the reader: nothing that it waits for, or does, may hold the process for ever. Its
 * wait may depend on the process. */
static void take_watch(void *context, uint64_t stalled)
{
    struct taking *taking = context;
    taking->has_stalled |= stalled > READER_STALL_NS;
    if (taking->held_since != 0 &&
        (stalled > READER_STALL_NS ||
         taking_now_ns() - taking->held_since > taking->order->time_limit + READER_STALL_NS))
        take_let_go(taking);
}

/* Reads the process, while another thread holds and traces it. */
static void take_read(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    taking->is_copy_due =
        !order->request && copy_is_due(order->pid, order->copy_min, &taking->gaps);
    /* Before the process is held, since it may have thousands of files. */
    taking->lacks_kernel_words = !kernel_files_find(
        &taking->files, order->pid, order->request ? order->request->tid : order->pid);
    reader_ask(take_stop_threads, taking);
    taking->deadline = taking_now_ns() + order->time_limit;
    taking->snapshot->flags = taking->threads.are_stopped ? TTD_SNAPSHOT_STOPPED : 0;
    if (take_stopped(taking))
        taking->result = TAKE_DONE;
}

/* The thread that traces the process: when it ends, the system frees the rest. */
static void *take_run_thread(void *argument)
{
    struct taking *taking = argument;
    struct ttd_snapshot *snapshot = taking->snapshot;
    taking->is_left = !reader_run(take_read, take_watch, taking);
    if (taking->is_left) {
        taking->result = TAKE_FAILED;
        taking_end_copy(taking);
    }
    if (taking->has_let_go) {
        snapshot->flags &= ~(uint32_t)TTD_SNAPSHOT_STOPPED;
        snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
        snapshot->duration = taking->held_time;
        free(taking->threads.items);
    } else if (!(snapshot->flags & TTD_SNAPSHOT_COPIED)) {
        threads_release(&taking->threads);
        snapshot->duration = taking_now_ns() - taking->begin;
    }
    return NULL;
}

/* Returns false if there can be no other thread. */
static bool take_run_in_thread(struct taking *taking)
{
    pthread_t thread;
    bool is_started = quiet_thread_start(&thread, take_run_thread, taking);
    if (is_started)
        pthread_join(thread, NULL);
    return is_started;
}

/* A reader that was left behind may use all of it. */
static void take_free_taking(struct taking *taking)
{
    if (taking->is_left)
        return;
    copy_gaps_free(&taking->gaps);
    kernel_files_free(&taking->files);
    for (size_t i = 0; i < KERNEL_KINDS; i++)
        free(taking->kernel_words[i].items);
    free(taking->living);
    free(taking->regions);
    free(taking->sources);
    free(taking->stacks);
    free(taking);
}

enum take_result snapshot_take(const struct snapshot_order *order, struct ttd_snapshot *snapshot)
{
    struct taking *taking =
        order->stalls->left < READERS_LEFT_MAX ? calloc(1, sizeof *taking) : NULL;
    if (!taking)
        return TAKE_FAILED;
    *taking =
        (struct taking){.order = order, .snapshot = snapshot, .process = -1, .result = TAKE_FAILED};
    /* A process that just waits need not be traced. */
    taking->is_alone = order->request && threads_is_alone(order->pid, order->request->tid);
    bool is_run = true;
    if (taking->is_alone)
        take_run_thread(taking);
    else
        is_run = take_run_in_thread(taking);
    enum take_result result = is_run ? taking->result : TAKE_FAILED;
    order->stalls->left += taking->is_left;
    order->stalls->count += taking->has_stalled;
    take_free_taking(taking);
    return result;
}

/* The part of taking a snapshot that finds the frames of stacks. */

/* Processor time to follow all stacks, while the process may be held. On a busy machine as many are
 * followed as on an idle one; the deadline of the snapshot holds as well. */
#define FRAMES_TIME_NS UINT64_C(50000000)

static uint64_t take_processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void taking_note_stacks(struct taking *taking)
{
    const struct threads *threads = &taking->threads;
    taking->stacks = calloc(threads->count + 1, sizeof *taking->stacks);
    for (size_t i = 0; taking->stacks && i < threads->count; i++) {
        const struct thread_state *thread = &threads->items[i];
        uint64_t pointer = thread->registers[THREAD_STACK_POINTER];
        const struct region *region =
            thread->is_stopped ? regions_at(&taking->layout.regions, pointer) : NULL;
        /* It may be on another stack for the moment, such as one for signals. */
        if (!region || region->kind != TTD_REGION_STACK || region->tid != thread->tid)
            continue;
        struct held_stack *stack = &taking->stacks[taking->stack_count++];
        stack->tid = thread->tid;
        stack->span = (struct memory_span){pointer, region->end};
        memcpy(stack->registers, thread->registers, sizeof stack->registers);
    }
}

bool taking_write_frames(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    uint64_t limit = take_processor_ns() + FRAMES_TIME_NS;
    struct stack_frames frames;
    struct follower *follower =
        taking->stack_count != 0 ? follower_new(&taking->memory, &taking->subject) : NULL;
    bool is_written = true;
    size_t i = 0;
    while (follower && is_written && i < taking->stack_count && take_processor_ns() < limit &&
           !memory_is_late(&taking->memory)) {
        const struct held_stack *stack = &taking->stacks[i++];
        follower_list(follower, stack->registers, stack->span, &frames);
        is_written = calls->frames(calls->context, stack->tid, &frames);
    }
    calls->frames_missing(calls->context, taking->stack_count - i);
    follower_free(follower);
    taking_tick(taking);
    return is_written;
}

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

/* Regions of words that the system keeps have addresses that no memory of a process has. */
#define KERNEL_BEGIN UINT64_C(0xffff800000000000)

static const char *const kernel_names[KERNEL_KINDS] = {
    [KERNEL_EPOLL] = "[epoll]", [KERNEL_TIMERS] = "[timers]"};

/* A process stands still while so few files are listed. */
enum { FEW_FILES = 1000 };

/* Lists the files again while the process is held, if they are few: a file may be new, or the first
 * thread may have ended. */
static void take_search_find_files(struct taking *taking)
{
    if (taking->files.count > FEW_FILES)
        return;
    kernel_files_free(&taking->files);
    taking->lacks_kernel_words =
        !kernel_files_find(&taking->files, taking->order->pid, taking->memory.tid);
}

/* Reads the words that the system keeps, and drops those that point to no block. */
static void take_search_find_kernel_words(struct taking *taking)
{
    uint32_t pid = taking->order->pid;
    struct kernel_words *words = taking->kernel_words;
    take_search_find_files(taking);
    bool is_whole = true;
    for (size_t i = 0; i < taking->living_count; i++)
        is_whole &= kernel_files_add(&taking->files, pid, taking->living[i].tid);
    is_whole &= kernel_words_of_epoll(&words[KERNEL_EPOLL], &taking->files, pid);
    is_whole &= kernel_words_of_timers(&words[KERNEL_TIMERS], pid);
    taking->lacks_kernel_words |= !is_whole;
    for (size_t kind = 0; kind < KERNEL_KINDS; kind++) {
        size_t kept = 0;
        for (size_t i = 0; i < words[kind].count; i++)
            if (heap_pages_has(taking->subject.pages, words[kind].items[i]))
                words[kind].items[kept++] = words[kind].items[i];
        words[kind].count = kept;
    }
}

/* Lists many files again once the process runs: the words of one that is new were not read. */
static void take_search_check_files(struct taking *taking)
{
    if (taking->files.count > FEW_FILES &&
        !kernel_files_stay(&taking->files, taking->order->pid, taking->memory.tid))
        taking->lacks_kernel_words = true;
}

static void take_search_add_kernel_words(struct taking *taking)
{
    for (size_t kind = 0; kind < KERNEL_KINDS; kind++)
        if (taking->kernel_words[kind].count != 0)
            taking->regions[taking->count++] =
                (struct ttd_region){.kind = TTD_REGION_FILE,
                                    .begin = KERNEL_BEGIN + ((uint64_t)kind << 40),
                                    .size = taking->kernel_words[kind].count * 8,
                                    .name = take_search_name_id(taking, kernel_names[kind])};
}

/* Numbers the regions: registers and words that the system keeps, then memory that a copy lacks,
 * then roots, then the heap; it comes last, since nothing can be said without roots. */
static bool take_search_number_regions(struct taking *taking)
{
    const struct regions *regions = &taking->layout.regions;
    size_t capacity = taking->threads.count + 1 + KERNEL_KINDS + regions->count;
    taking->regions = calloc(capacity, sizeof *taking->regions);
    taking->sources = calloc(capacity, sizeof *taking->sources);
    if (!taking->regions || !taking->sources)
        return false;
    if (taking->order->request)
        take_search_add_registers(taking, taking->order->request->tid);
    for (size_t i = 0; i < taking->threads.count; i++)
        if (taking->threads.items[i].is_stopped)
            take_search_add_registers(taking, taking->threads.items[i].tid);
    take_search_add_kernel_words(taking);
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

/* Searches the registers of all threads and the words that the system keeps, in the order of their
 * regions. Returns the number of the last one. */
static uint32_t take_search_registers(const struct taking *taking, struct scan *scan)
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
    for (size_t kind = 0; kind < KERNEL_KINDS; kind++) {
        const struct kernel_words *words = &taking->kernel_words[kind];
        if (words->count != 0)
            scan_words(scan, ++registers.region, words->items, words->count);
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

static void take_search_region(const struct taking *taking, struct scan *scan, uint32_t number)
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
    uint32_t number = take_search_registers(taking, scan);
    for (; number < taking->held_count; number++)
        take_search_region(taking, scan, number);
    scan_settle(scan);
    taking_release(taking);
    take_search_check_files(taking);
    for (; number < taking->count; number++)
        take_search_region(taking, scan, number);
    struct scan_result result = scan_close(scan);
    taking->snapshot->missing = result.missing;
    if (!result.is_complete || !taking->layout.is_whole || taking->layout.has_kernel_queue ||
        taking->files.has_ring || taking->lacks_kernel_words ||
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
    take_search_find_kernel_words(taking);
    return take_search_number_regions(taking) && take_search(taking) &&
           taking_write_headers(taking) && taking_write_frames(taking) && take_search_copy(taking);
}
