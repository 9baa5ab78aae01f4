/* SPDX-License-Identifier: MIT */
/* The part of taking a snapshot that lets the process go on early. */
#include "snapshot/taking.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arrays.h"
#include "quiet_thread.h"
#include "snapshot/process_reader.h"
#include "snapshot/stop/borrow.h"

/* Time to read a copy, in units of the time that a process may be held: less than a process at its
 * end waits. */
enum { COPY_PATIENCE = 8 };

#define FOLLOW_NS UINT64_C(2000000)

/* Returns the mapping that an address lies in; NULL if there is none. */
static const struct mapping *take_copy_mapping_at(const struct maps *maps, uint64_t address)
{
    size_t i = array_count_up_to(maps->items, maps->count, sizeof *maps->items,
                                 offsetof(struct mapping, end), address);
    bool is_in = i < maps->count && maps->items[i].begin <= address;
    return is_in ? &maps->items[i] : NULL;
}

static bool take_copy_is_in_gap(const struct copy_gaps *gaps, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < gaps->count; i++)
        if (begin < gaps->items[i].end && end > gaps->items[i].begin)
            return true;
    return false;
}

/* Whether others may write the memory of a region. */
static bool take_copy_is_shared(const struct taking *taking, const struct region *region)
{
    const struct mapping *mapping = take_copy_mapping_at(&taking->layout.maps, region->begin);
    return mapping && mapping->is_shared;
}

bool taking_is_apart(const struct taking *taking, const struct region *region)
{
    return taking->is_copy_due && region->kind != TTD_REGION_HEAP &&
           (region->untouched != UNTOUCHED_EMPTY || take_copy_is_shared(taking, region) ||
            take_copy_is_in_gap(&taking->gaps, region->begin, region->end));
}

/* Whether memory that blocks come from is in a gap. */
static bool take_copy_has_heap_in_gap(const struct taking *taking)
{
    for (size_t i = 0; i < taking->gaps.count; i++)
        if (heap_pages_touch(taking->subject.pages, taking->gaps.items[i].begin,
                             taking->gaps.items[i].end))
            return true;
    return false;
}

/* Whether the copy has all the memory of the process, except shared memory and the gaps. */
static bool take_copy_is_whole(const struct taking *taking)
{
    struct maps maps;
    bool is_whole = maps_read(&maps, taking->copy.pid, taking->copy.pid);
    for (size_t i = 0; is_whole && i < taking->layout.maps.count; i++) {
        const struct mapping *mapping = &taking->layout.maps.items[i];
        const struct mapping *counterpart = take_copy_mapping_at(&maps, mapping->begin);
        is_whole = mapping->is_shared ||
                   take_copy_is_in_gap(&taking->gaps, mapping->begin, mapping->end) ||
                   (counterpart && counterpart->begin == mapping->begin &&
                    counterpart->end == mapping->end);
    }
    maps_free(&maps);
    return is_whole;
}

/* Whether the program has marked memory to be empty in copies since the gaps were found. */
static bool take_copy_has_new_gap(const struct taking *taking)
{
    struct copy_gaps now;
    bool is_new = !copy_is_due(taking->copy.pid, 0, &now);
    for (size_t i = 0; i < now.count; i++)
        is_new |= !take_copy_is_in_gap(&taking->gaps, now.items[i].begin, now.items[i].end);
    copy_gaps_free(&now);
    return is_new;
}

void taking_end_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    taking->snapshot->duration += copy_end(&taking->copy, order->borrowed, order->copies,
                                           order->pid, order->child, order->interrupted);
    if (taking->process >= 0)
        close(taking->process);
    taking->process = -1;
    heap_pages_free(&taking->pages);
}

/* The thread that traces the process makes a copy, ends it again, or lets the process go. */
static void taking_make_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    taking->is_copied = !taking->has_let_go &&
                        copy_make(&taking->copy, &taking->threads, order->borrowed, order->copies);
}

static void taking_drop_copy(void *context)
{
    struct taking *taking = context;
    const struct snapshot_order *order = taking->order;
    if (taking->has_let_go)
        taking_end_copy(taking);
    else
        copy_drop(&taking->copy, &taking->threads, order->borrowed, order->copies);
}

static void take_copy_taking_let_threads_go(void *context)
{
    struct taking *taking = context;
    if (!taking->has_let_go)
        threads_release(&taking->threads);
    taking->held_since = 0;
}

/* Makes a copy, and opens its memory. */
static bool has_copy(struct taking *taking, struct memory *memory)
{
    if (!taking->is_copy_due || take_copy_has_heap_in_gap(taking))
        return false;
    reader_ask(taking_make_copy, taking);
    if (!taking->is_copied)
        return false;
    if (take_copy_is_whole(taking) && memory_open_copy(memory, taking->copy.pid))
        return true;
    reader_ask(taking_drop_copy, taking);
    return false;
}

void taking_release(struct taking *taking)
{
    const struct snapshot_order *order = taking->order;
    struct memory memory;
    if (!has_copy(taking, &memory)) {
        if (!taking->threads.are_stopped) /* one has not come back, and goes on */
            taking->snapshot->flags &= ~TTD_SNAPSHOT_STOPPED;
        return;
    }
    memory_close(&taking->memory);
    taking->memory = memory;
    taking->process = (int)syscall(SYS_pidfd_open, (pid_t)order->pid, 0);
    reader_ask(take_copy_taking_let_threads_go, taking);
    taking->snapshot->flags |= TTD_SNAPSHOT_COPIED;
    taking->snapshot->duration = taking_now_ns() - taking->begin;
    taking->deadline = taking_now_ns() + COPY_PATIENCE * order->time_limit;
    taking->memory.deadline = taking->deadline;
    if (take_copy_has_new_gap(taking))
        taking->snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
}

void taking_tick(void *context)
{
    struct taking *taking = context;
    const struct snapshot_calls *calls = &taking->order->calls;
    calls->tick(calls->context);
    if (taking->copy.pid == 0 || taking_now_ns() - taking->followed < FOLLOW_NS)
        return;
    calls->follow(calls->context);
    taking->followed = taking_now_ns();
    /* The copy would keep open the descriptors of an ended process. */
    struct pollfd process = {.fd = taking->process, .events = POLLIN};
    if (taking->process >= 0 && poll(&process, 1, 0) > 0)
        taking->memory.deadline = 1;
}

/*
 * The part of taking a snapshot that finds the pages of shared memory, although the process has not
 * touched them. The system answers only the process itself, so a held thread of it, or one that
 * waits for the snapshot, is made to ask.
 */

/* Room for a signal handler, on the stack that has the answer at its other end. */
enum { RESIDENT_MARGIN = 16 * 1024 };

struct resident_question {
    struct taking *taking;
    struct memory_span span;
    bool is_answered;
};

/* Asks by one of the threads; all are stopped. */
static void take_copy_resident_ask_by(struct resident_question *question, struct threads *threads)
{
    const struct snapshot_order *order = question->taking->order;
    struct borrowed_call call = {.code = order->borrowed,
                                 .number = SYS_mincore,
                                 .arguments = {question->span.begin,
                                               question->span.end - question->span.begin,
                                               order->borrowed->stack_begin, 0}};
    enum borrow_result result = threads->are_stopped && !order->copies->is_barred
                                    ? borrow_by_any(threads, &call)
                                    : BORROW_REFUSED;
    order->copies->is_barred |= result == BORROW_RUNS_ON;
    question->is_answered = result == BORROW_DONE && call.result == 0;
}

static void take_copy_resident_ask_held(void *context)
{
    struct resident_question *question = context;
    if (!question->taking->has_let_go)
        take_copy_resident_ask_by(question, &question->taking->threads);
}

/* Asks by the thread that waits; it is not traced otherwise. A thread of ours that ends lets it go
 * in any case. */
static void *take_copy_resident_ask_waiting(void *context)
{
    struct resident_question *question = context;
    const struct snapshot_order *order = question->taking->order;
    struct threads threads;
    threads_stop(&threads, order->pid, 0, order->child, order->interrupted);
    take_copy_resident_ask_by(question, &threads);
    threads_release(&threads);
    return NULL;
}

/* Whether the system may have moved pages out of memory that lie in the mapping of an address: they
 * do not count as resident. */
static bool take_copy_resident_is_swapped(uint32_t pid, uint64_t address)
{
    struct sysinfo system;
    char line[512];
    unsigned long long begin, end, size = 1;
    bool is_within = false;
    if (sysinfo(&system) == 0 && system.freeswap == system.totalswap)
        return false;
    snprintf(line, sizeof line, "/proc/%u/smaps", pid);
    reader_enter();
    FILE *file = fopen(line, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            is_within = address >= begin && address < end;
        else if (is_within && sscanf(line, "Swap: %llu", &size) == 1)
            break;
    }
    if (file)
        fclose(file);
    reader_leave();
    return size != 0;
}

/* Reads the answer. Of memory that the process may not write to any more the system says that all
 * is there; reading would make it: so there must be as much shared memory at all. */
static bool take_copy_resident_read(const struct taking *taking, unsigned char *pages, size_t count)
{
    const struct borrowed_code *code = taking->order->borrowed;
    struct iovec local = {pages, count}, remote = {(void *)(uintptr_t)code->stack_begin, count};
    struct sysinfo system;
    uint64_t resident = 0;
    reader_enter();
    ssize_t size = process_vm_readv((pid_t)taking->memory.tid, &local, 1, &remote, 1, 0);
    reader_leave();
    if (size != (ssize_t)count || sysinfo(&system) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        resident += pages[i] & 1;
    return resident * MEMORY_PAGE <= (uint64_t)system.sharedram * system.mem_unit;
}

bool taking_resident(void *context, struct memory_span span, unsigned char *pages)
{
    struct taking *taking = context;
    const struct borrowed_code *code = taking->order->borrowed;
    struct resident_question question = {.taking = taking, .span = span};
    size_t count = (span.end - span.begin) / MEMORY_PAGE;
    pthread_t thread;
    if (code->stack_end < code->stack_begin ||
        code->stack_end - code->stack_begin < count + RESIDENT_MARGIN ||
        take_copy_resident_is_swapped(taking->order->pid, span.begin))
        return false;
    if (!taking->is_alone)
        reader_ask(take_copy_resident_ask_held, &question);
    else if (quiet_thread_start(&thread, take_copy_resident_ask_waiting, &question))
        pthread_join(thread, NULL);
    return question.is_answered && take_copy_resident_read(taking, pages, count);
}
