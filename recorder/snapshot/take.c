/* SPDX-License-Identifier: MIT */
#include "take.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "../quiet_thread.h"
#include "taking.h"

enum { RED_ZONE = 128 };

uint64_t taking_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool opens(struct taking *taking, uint32_t tid)
{
    bool is_open = memory_open(&taking->memory, taking->order->pid, tid);
    if (is_open)
        taking->result = TAKE_FAILED; /* from now on not for want of permission */
    else if (errno == EPERM || errno == EACCES)
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

/* Takes an image of the process if it stands still. */
static void hold(struct taking *taking)
{
    const struct snapshot_subject *subject = &taking->subject;
    uint64_t *pages =
        taking->threads.are_stopped ? calloc(subject->module_count + 1, sizeof *pages) : NULL;
    if (pages == NULL)
        return;
    for (size_t i = 0; i < subject->module_count; i++)
        pages[i] = subject->modules[i].begin; /* program headers */
    memory_hold(&taking->memory, pages, subject->module_count);
    free(pages);
}

static bool take_stopped(struct taking *taking)
{
    const struct snapshot_calls *calls = &taking->order->calls;
    if (!list_living(taking) || !open_memory(taking))
        return false;
    bool is_done = calls->settle(calls->context, &taking->subject);
    if (taking->is_copy_due) {
        heap_pages_join(&taking->pages, taking->subject.pages);
        taking->subject.pages = &taking->pages;
    }
    calls->tick(calls->context);
    if (is_done)
        hold(taking);
    /* Without roots nothing can be told, but nor can it with roots alone. */
    taking->memory.deadline = taking_now_ns() + taking->order->time_limit / 2;
    is_done = is_done && layout_find(&taking->layout, taking->order->pid, &taking->memory,
                                     &taking->subject, taking->living, taking->living_count);
    calls->tick(calls->context);
    taking->memory.deadline = taking->deadline;
    tables_open(&taking->tables, &taking->layout, &taking->subject, &taking->memory);
    is_done = is_done && taking_search(taking);
    taking_end_copy(taking);
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
    taking->is_copy_due =
        request == NULL && copy_is_due(taking->order->pid, taking->order->copy_min, &taking->gaps);
    taking->begin = taking_now_ns();
    taking->threads = (struct threads){.pid = taking->order->pid, .are_stopped = true};
    if (!taking->is_alone)
        threads_stop(&taking->threads, taking->order->pid, request != NULL ? request->tid : 0,
                     taking->order->child, taking->order->interrupted);
    taking->deadline = taking_now_ns() + taking->order->time_limit;
    taking->snapshot->flags = taking->threads.are_stopped ? TTD_SNAPSHOT_STOPPED : 0;
    if (take_stopped(taking))
        taking->result = TAKE_DONE;
    if (taking->snapshot->flags & TTD_SNAPSHOT_COPIED)
        return NULL;
    threads_release(&taking->threads);
    taking->snapshot->duration = taking_now_ns() - taking->begin;
    return NULL;
}

/* Returns false if there can be no other thread. */
static bool run_in_thread(struct taking *taking)
{
    pthread_t thread;
    bool is_started = quiet_thread_start(&thread, run, taking);
    if (is_started)
        pthread_join(thread, NULL);
    return is_started;
}

enum take_result snapshot_take(const struct snapshot_order *order, struct ttd_snapshot *snapshot)
{
    struct taking taking = {
        .order = order, .snapshot = snapshot, .process = -1, .result = TAKE_FAILED};
    /* A process that just waits need not be traced. */
    taking.is_alone = order->request != NULL && threads_is_alone(order->pid, order->request->tid);
    if (taking.is_alone)
        run(&taking);
    else if (!run_in_thread(&taking))
        return TAKE_FAILED;
    copy_gaps_free(&taking.gaps);
    free(taking.living);
    free(taking.regions);
    free(taking.sources);
    free(taking.stacks);
    return taking.result;
}
