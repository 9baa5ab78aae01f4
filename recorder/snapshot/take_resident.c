/* SPDX-License-Identifier: MIT */
/*
 * The part of taking a snapshot that finds which pages of shared memory there are, although the
 * process has not touched them. The system tells that to the process only, so a thread of it that
 * is held, or waits for the snapshot, is made to ask.
 */
#include "snapshot/taking.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

#include "quiet_thread.h"
#include "snapshot/reader.h"
#include "snapshot/stop/borrow.h"

/* Room for a signal handler, on the stack that has the answer at its other end. */
enum { RESIDENT_MARGIN = 16 * 1024 };

struct resident_question {
    struct taking *taking;
    struct memory_span span;
    bool is_answered;
};

/* Asks by one of the threads, all of which are stopped. */
static void resident_ask_by(struct resident_question *question, struct threads *threads)
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

static void resident_ask_held(void *context)
{
    struct resident_question *question = context;
    if (!question->taking->has_let_go)
        resident_ask_by(question, &question->taking->threads);
}

/* Asks by the thread that waits, which is not traced otherwise. A thread of ours that ends lets it
 * go in any case. */
static void *resident_ask_waiting(void *context)
{
    struct resident_question *question = context;
    const struct snapshot_order *order = question->taking->order;
    struct threads threads;
    threads_stop(&threads, order->pid, 0, order->child, order->interrupted);
    resident_ask_by(question, &threads);
    threads_release(&threads);
    return NULL;
}

/* Whether the system may have moved pages out of memory that lie in the mapping of an address: they
 * do not count as resident. */
static bool resident_is_swapped(uint32_t pid, uint64_t address)
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
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            is_within = address >= begin && address < end;
        else if (is_within && sscanf(line, "Swap: %llu", &size) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    reader_leave();
    return size != 0;
}

/* Reads the answer. Of memory that the process may not write to any more the system says that all
 * is there, which would be made if it was read: so there must be as much shared memory at all. */
static bool resident_read(const struct taking *taking, unsigned char *pages, size_t count)
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
        resident_is_swapped(taking->order->pid, span.begin))
        return false;
    if (!taking->is_alone)
        reader_ask(resident_ask_held, &question);
    else if (quiet_thread_start(&thread, resident_ask_waiting, &question))
        pthread_join(thread, NULL);
    return question.is_answered && resident_read(taking, pages, count);
}
