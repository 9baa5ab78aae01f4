/* SPDX-License-Identifier: MIT */
#include "take.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "contents.h"
#include "scan.h"
#include "threads.h"

enum { RED_ZONE = 128, REFERENCES_MAX = 100000000 };

/* A snapshot that is being taken. */
struct taking {
    const struct snapshot_order *order;
    struct ttd_snapshot *snapshot;
    struct threads threads;
    struct memory memory;
    struct snapshot_subject subject;
    struct layout_thread *living; /* sorted by tid */
    size_t living_count;
    struct layout layout;
    struct tables tables;
    ttd_id data_name, bss_name;    /* of the two names that most regions have */
    struct ttd_region *regions;    /* as they are written: registers first */
    const struct region **sources; /* of each region; NULL for registers */
    size_t count;
    uint64_t deadline;
    enum take_result result;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool opens(struct taking *taking, uint32_t tid)
{
    bool is_open = memory_open(&taking->memory, taking->order->pid, tid);
    if (!is_open && (errno == EPERM || errno == EACCES))
        taking->result = TAKE_DENIED;
    return is_open;
}

/* Opens the memory by the thread that waits, or by any other that lives. */
static bool open_memory(struct taking *taking)
{
    const struct snapshot_request *request = taking->order->request;
    if (request != NULL && opens(taking, request->tid))
        return true;
    for (size_t i = 0; i < taking->threads.count; i++)
        if (!taking->threads.items[i].has_ended && opens(taking, taking->threads.items[i].tid))
            return true;
    return false;
}

static int compare_tids(const void *left, const void *right)
{
    uint32_t a = ((const struct layout_thread *)left)->tid;
    uint32_t b = ((const struct layout_thread *)right)->tid;
    return a < b ? -1 : a > b;
}

/* Lists the threads, the one that waits among them. */
static bool list_living(struct taking *taking)
{
    const struct snapshot_request *request = taking->order->request;
    taking->living = calloc(taking->threads.count + 1, sizeof *taking->living);
    if (taking->living == NULL)
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
    if (request != NULL)
        taking->living[taking->living_count++] =
            (struct layout_thread){.tid = request->tid,
                                   .is_known = true,
                                   .stack_begin = request->stack_pointer,
                                   .thread_pointer = request->thread_pointer};
    qsort(taking->living, taking->living_count, sizeof *taking->living, compare_tids);
    return true;
}

static ttd_id thread_id(const struct taking *taking, uint32_t tid)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    return tid != 0 ? calls->thread(calls->context, tid) : TTD_NONE;
}

static ttd_id name_id(struct taking *taking, const char *name)
{
    ttd_id id = TTD_NONE;
    ttd_id *known = name == layout_data_name  ? &taking->data_name
                    : name == layout_bss_name ? &taking->bss_name
                                              : &id;
    if (name != NULL && *known == TTD_NONE)
        *known = taking->order->calls.text(taking->order->calls.context, name);
    return *known;
}

static void add_registers(struct taking *taking, uint32_t tid)
{
    taking->regions[taking->count++] = (struct ttd_region){.kind = TTD_REGION_REGISTERS,
                                                           .size = SNAPSHOT_REGISTERS * 8,
                                                           .thread = thread_id(taking, tid)};
}

static void add_region(struct taking *taking, const struct region *region)
{
    taking->sources[taking->count] = region;
    taking->regions[taking->count++] = (struct ttd_region){.kind = region->kind,
                                                           .begin = region->begin,
                                                           .size = region->end - region->begin,
                                                           .thread = thread_id(taking, region->tid),
                                                           .module = region->module,
                                                           .name = name_id(taking, region->name)};
}

/* Numbers the regions: registers, then roots, then the heap, which is searched last, since without
 * roots nothing else can be told. */
static bool number_regions(struct taking *taking)
{
    const struct regions *found = &taking->layout.regions;
    size_t capacity = taking->threads.count + 1 + found->count;
    taking->regions = calloc(capacity, sizeof *taking->regions);
    taking->sources = calloc(capacity, sizeof *taking->sources);
    if (taking->regions == NULL || taking->sources == NULL)
        return false;
    if (taking->order->request != NULL)
        add_registers(taking, taking->order->request->tid);
    for (size_t i = 0; i < taking->threads.count; i++)
        if (taking->threads.items[i].is_stopped)
            add_registers(taking, taking->threads.items[i].tid);
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].kind != TTD_REGION_HEAP)
            add_region(taking, &found->items[i]);
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].kind == TTD_REGION_HEAP)
            add_region(taking, &found->items[i]);
    struct ttd_regions all = {taking->snapshot->number, 1, taking->regions, taking->count};
    return taking->order->calls.regions(taking->order->calls.context, &all);
}

/* Searches the registers of all threads, in the order of their regions. Returns the number of the
 * last one. */
static uint32_t search_registers(const struct taking *taking, struct scan *scan)
{
    const struct snapshot_request *request = taking->order->request;
    struct scan_registers registers = {.count = SNAPSHOT_REGISTERS};
    if (request != NULL) {
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

/* Writes the classes of which tables were found. */
static bool write_classes(struct taking *taking)
{
    size_t count;
    bool is_written = false;
    struct class_found *found = classes_list(&taking->tables.classes, &count);
    struct ttd_class *classes = calloc(count + 1, sizeof *classes);
    for (size_t i = 0; found != NULL && classes != NULL && i < count; i++)
        classes[i] = (struct ttd_class){found[i].address, name_id(taking, found[i].name)};
    if (found != NULL && classes != NULL) {
        struct ttd_classes all = {taking->snapshot->number, classes, count};
        is_written = taking->order->calls.classes(taking->order->calls.context, &all);
    }
    free(classes);
    free(found);
    return is_written;
}

static bool search(struct taking *taking)
{
    struct scan_job job = {.memory = &taking->memory,
                           .pages = taking->subject.pages,
                           .tables = &taking->tables,
                           .snapshot = taking->snapshot->number,
                           .limits = {taking->deadline, REFERENCES_MAX},
                           .calls = &taking->order->calls};
    struct scan *scan = scan_open(&job);
    if (scan == NULL)
        return false;
    for (uint32_t number = search_registers(taking, scan); number < taking->count; number++)
        scan_region(scan, taking->sources[number], number + 1);
    struct scan_result result = scan_close(scan);
    taking->snapshot->missing = result.missing;
    if (!result.is_complete || !taking->layout.is_whole || taking->tables.classes.is_incomplete ||
        memory_is_late(&taking->memory))
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    return result.is_written && write_classes(taking);
}

static bool copy(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    struct page_store *store = taking->order->store;
    struct contents_job job = {.memory = &taking->memory,
                               .pages = taking->subject.pages,
                               .store = store,
                               .is_stopped = taking->threads.are_stopped,
                               .deadline = taking->deadline,
                               .tick = calls->tick,
                               .context = calls->context};
    if (!(taking->snapshot->contents & TTD_SNAPSHOT_MEMORY))
        return true;
    page_store_begin(store, taking->snapshot->number, taking->snapshot->position);
    uint64_t missing = contents_copy(&job, &taking->layout.regions);
    taking->snapshot->missing += missing;
    if (missing != 0)
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    return page_store_end(store) == TTD_OK;
}

static bool take_stopped(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    if (!list_living(taking) || !open_memory(taking))
        return false;
    bool is_done = calls->settle(calls->context, &taking->subject);
    calls->tick(calls->context);
    /* Without roots nothing can be told, but nor can it with roots alone. */
    taking->memory.deadline = now_ns() + taking->order->time_limit / 2;
    is_done = is_done && layout_find(&taking->layout, taking->order->pid, &taking->memory,
                                     &taking->subject, taking->living, taking->living_count);
    calls->tick(calls->context);
    taking->memory.deadline = taking->deadline;
    tables_open(&taking->tables, &taking->layout, &taking->subject, &taking->memory);
    is_done = is_done && number_regions(taking) && search(taking) && copy(taking);
    tables_close(&taking->tables);
    layout_free(&taking->layout);
    memory_close(&taking->memory);
    return is_done;
}

/* The thread that traces the process: when it ends, the system lets go what was not. */
static void *run(void *argument)
{
    struct taking *taking = argument;
    const struct snapshot_request *request = taking->order->request;
    uint64_t begin = now_ns();
    threads_stop(&taking->threads, taking->order->pid, request != NULL ? request->tid : 0,
                 taking->order->child, taking->order->interrupted);
    taking->deadline = now_ns() + taking->order->time_limit;
    taking->snapshot->flags = taking->threads.are_stopped ? TTD_SNAPSHOT_STOPPED : 0;
    if (take_stopped(taking))
        taking->result = TAKE_DONE;
    threads_release(&taking->threads);
    taking->snapshot->duration = now_ns() - begin;
    return NULL;
}

enum take_result snapshot_take(const struct snapshot_order *order, struct ttd_snapshot *snapshot)
{
    struct taking taking = {.order = order, .snapshot = snapshot, .result = TAKE_FAILED};
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* handlers run in this thread */
    bool is_started = pthread_create(&thread, NULL, run, &taking) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!is_started)
        return TAKE_FAILED;
    pthread_join(thread, NULL);
    free(taking.living);
    free(taking.regions);
    free(taking.sources);
    return taking.result;
}
