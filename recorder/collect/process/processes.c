/* SPDX-License-Identifier: MIT */
#include "collect/process/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arrays.h"
#include "channel_pool.h"
#include "collect/process/heaps.h"
#include "collect/process/origin.h"
#include "collect/trace/trace_modules.h"

/* Returns -1 if there is no such process, or if descriptors are scarce. */
static int processes_open_pidfd(uint32_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0 || trace_descriptor_may_stay(pidfd, DESCRIPTORS_OF_PROCESSES))
        return pidfd;
    close(pidfd);
    return -1;
}

static void processes_set_slot(struct process *process, uint32_t slot,
                               const struct process_slot *claim)
{
    process->slot = slot;
    process->mark = claim->mark;
    process->requests = 0;
    process->has_end_snapshot = false;
    process->still_since = 0;
    process->is_at_rest = false;
    process->is_forked = (claim->flags & PROCESS_FORKED) != 0;
    process->sequence = claim->sequence;
}

static void processes_set_hooks(struct process *process, const struct process_slot *claim)
{
    process->trace->hooks_begin = claim->hooks_begin;
    process->trace->hooks_end = claim->hooks_end;
}

void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host)
{
    static const enum ttd_loss_reason reasons[LOSS_OFF] = {
        [LOSS_OVERFLOW] = TTD_LOSS_OVERFLOW,
        [LOSS_REENTRANT] = TTD_LOSS_REENTRANT,
    };
    const struct thread_slot *slot = thread->shared;
    for (int i = 0; i < LOSS_OFF; i++) {
        uint64_t lost = atomic_load_explicit(&slot->lost[i], memory_order_acquire);
        if (lost == thread->lost[i])
            continue;
        uint64_t newest = atomic_load(&host->channel->sequence);
        struct ttd_position first_good = ttd_position_max();
        if (newest < TTD_SEQUENCE_MAX)
            first_good = (struct ttd_position){newest + 1, 0};
        trace_loss(process->trace, reasons[i], thread->id, lost - thread->lost[i], thread->checked,
                   first_good);
        thread->lost[i] = lost;
    }
    thread->checked = process->trace->last;
}

void losses_of_gap(struct process *process, struct thread_stream *thread, bool is_off,
                   struct ttd_position position, uint64_t skipped)
{
    if (is_off && !thread->is_off)
        thread->off = position;
    if (trace_is_stopped(process->trace)) {
        process->trace->lost += skipped;
    } else if (skipped != 0 && ttd_position_compare(thread->off, position) <= 0) {
        trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, thread->id, TTD_UNKNOWN, thread->off,
                   position);
        process->gaps++;
    }
    if (skipped != 0)
        thread->off = position;
    thread->is_off = is_off;
    thread->lost[LOSS_OFF] += skipped;
}

/* Reports the calls that a thread did not record between its last suspension and its end. */
static void processes_losses_of_last_gap(struct process *process, struct thread_stream *thread,
                                         const struct host *host)
{
    uint64_t newest = atomic_load(&host->channel->sequence);
    uint64_t lost = atomic_load_explicit(&thread->shared->lost[LOSS_OFF], memory_order_acquire);
    if (!thread->outer && lost != thread->lost[LOSS_OFF] && newest < TTD_SEQUENCE_MAX)
        losses_of_gap(process, thread, true, (struct ttd_position){newest + 1, 0},
                      lost - thread->lost[LOSS_OFF]);
}

void losses_of_process(struct process *process, struct host *host)
{
    static const struct {
        uint32_t note;
        const char *text;
    } reasons[] = {
        {NOTE_FOREIGN_MALLOC,
         "calls of malloc, free or operator new that the program defines itself"},
        {NOTE_PATCHED, "calls of malloc, free or operator new that the program defines itself, "
                       "before its start or inlined"},
        {NOTE_NAMESPACE, "calls of modules loaded with dlmopen(), which have a heap of their own"},
        {NOTE_ALLOCATOR, "calls of mallocx() and its like, by modules that were loaded later"},
        {NOTE_WITHIN,
         "calls of an allocator that is linked in under other names, such as je_malloc()"},
        {NOTE_ARENAS, "calls that release all blocks of an allocator's arena or heap at once"},
    };
    uint32_t notes = atomic_load(&channel_process(&host->view, process->slot)->notes);
    bool may_be_patched = !process->is_dead && (notes & NOTE_STARTED) == 0;
    if ((notes & (NOTE_OF_PROGRAM | NOTE_PATCHED_WITHIN)) == NOTE_OF_PROGRAM && !may_be_patched)
        notes |= NOTE_WITHIN;
    uint32_t fresh = notes & ~process->notes & NOTES_UNRECORDED;
    for (size_t i = 0; fresh != 0 && i < sizeof reasons / sizeof *reasons; i++)
        if (fresh & reasons[i].note)
            trace_metadata(process->trace, "unrecorded", reasons[i].text);
    /* Another allocator, another C library's heap, and calls before the start, release none of the
     * blocks that are known. */
    if (fresh != 0)
        trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, process->checked,
                   (fresh & ~(NOTE_NAMESPACE | NOTE_WITHIN | NOTE_PATCHED)) == 0
                       ? ttd_position_invalid()
                       : ttd_position_max());
    process->notes |= fresh;
    process->checked = process->trace->last;
}

bool process_has_image(const struct process *process)
{
    uint64_t word;
    struct iovec local = {&word, sizeof word};
    struct iovec remote = {(void *)(uintptr_t)process->mark, sizeof word};
    return process_vm_readv((pid_t)process->pid, &local, 1, &remote, 1, 0) == sizeof word &&
           word == process->sequence;
}

static void process_write_unreturned(struct process *process, struct ttd_position end)
{
    trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN,
               process->unreturned.begin, end);
}

struct process *process_new(uint32_t slot, const struct process_slot *claim, struct trace *trace)
{
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    processes_set_slot(process, slot, claim);
    process->pid = claim->pid;
    process->pidfd = processes_open_pidfd(claim->pid);
    process->start_time = process->pidfd < 0 ? origin_start_time(claim->pid) : 0;
    process->trace = trace;
    process->last_sequence = UINT64_MAX;
    processes_set_hooks(process, claim);
    process->heaps.key = trace->stacks.key;
    trace_new_heap(trace, (struct ttd_position){claim->sequence, 0}, TTD_NONE);
    process->calls_before = trace->events + trace->lost;
    return process;
}

void process_begin_unreturned(struct process *process, const uint32_t *tids, size_t count,
                              struct ttd_position begin)
{
    struct unreturned *unreturned = &process->unreturned;
    unreturned->begin = unreturned->end = begin;
    if (count == 0)
        return;
    unreturned->tids = malloc(count * sizeof *tids);
    unreturned->count = unreturned->tids ? count : 0;
    if (unreturned->tids)
        memcpy(unreturned->tids, tids, count * sizeof *tids);
    else
        process_write_unreturned(process, ttd_position_max());
}

void process_end_unreturned(struct process *process, uint32_t tid, struct ttd_position position)
{
    struct unreturned *unreturned = &process->unreturned;
    size_t i = 0;
    while (i < unreturned->count && unreturned->tids[i] != tid)
        i++;
    if (i == unreturned->count)
        return;
    unreturned->tids[i] = unreturned->tids[--unreturned->count];
    if (ttd_position_compare(position, unreturned->end) > 0)
        unreturned->end = position;
    if (unreturned->count == 0)
        process_write_unreturned(process, unreturned->end);
}

bool process_is_empty(const struct process *process)
{
    return process->trace->events + process->trace->lost == process->calls_before;
}

void process_free(struct process *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
    heap_table_free(&process->heaps);
    dump_queue_free(&process->dumps);
    free(process->outside);
    free(process->threads);
    free(process->queue);
    free(process->silent);
    free(process->unreturned.tids);
    interrupted_calls_free(&process->interrupted);
    free(process);
}

/* Returns the stream of a slot if it is one of the process's, else NULL. */
static struct thread_stream *process_find_thread(const struct process *process,
                                                 const struct host *host, uint32_t slot)
{
    struct thread_stream *thread = host->threads[slot];
    return thread && thread->process == process->slot ? thread : NULL;
}

/* Links an inner level to its thread; that began earlier and is added if it is not yet. */
static void processes_join_thread(struct process *process, struct host *host,
                                  struct thread_stream *thread, uint32_t slot)
{
    if (slot == CHANNEL_NONE || slot > CHANNEL_THREADS || slot == thread->slot)
        return;
    const struct thread_slot *shared = channel_thread(&host->view, slot);
    if (!shared)
        return;
    uint32_t state = atomic_load(&shared->state);
    if (state == (SLOT_READY | process->slot << SLOT_PROCESS))
        process_add_thread(process, host, slot);
    struct thread_stream *outer = process_find_thread(process, host, slot);
    if (!outer || outer->outer || outer->shared->tid != thread->shared->tid)
        return;
    thread->outer = outer;
    outer->inner++;
}

uint32_t process_seen_tid(const struct process *process, uint32_t tid)
{
    if (process->inner_pid == 0)
        return tid;
    return tid == process->inner_pid ? process->pid : namespace_thread(process->pid, tid);
}

/* Makes room for one more thread. */
static bool process_reserve(struct process *process)
{
    size_t capacity = process->thread_capacity, queue_capacity = capacity;
    void *threads =
        array_grow(process->threads, process->thread_count, &capacity, sizeof *process->threads);
    if (threads)
        process->threads = threads;
    void *queue =
        array_grow(process->queue, process->thread_count, &queue_capacity, sizeof *process->queue);
    if (queue)
        process->queue = queue;
    if (!threads || !queue)
        return false;
    process->thread_capacity = capacity;
    return true;
}

bool process_add_thread(struct process *process, struct host *host, uint32_t slot)
{
    if (host->threads[slot])
        return true; /* a program has overwritten the state */
    struct thread_stream *thread = calloc(1, sizeof *thread);
    if (!thread)
        return false;
    if (!process_reserve(process)) {
        free(thread);
        return false;
    }
    struct thread_slot *shared = channel_thread(&host->view, slot);
    thread->slot = slot;
    thread->shared = shared;
    thread->process = process->slot;
    thread->tid = process_seen_tid(process, shared->tid);
    thread->checked = process->trace->last;
    thread->sequence = shared->sequence;
    thread->operands[OPERAND_ONE] = 1;
    process->threads[process->thread_count++] = host->threads[slot] = thread;
    atomic_store(&shared->paused, process->is_paused);
    atomic_fetch_xor(&shared->state, SLOT_READY ^ SLOT_KNOWN);
    processes_join_thread(process, host, thread, shared->within);
    return true;
}

ttd_id process_thread_id(struct process *process, struct ttd_position position, uint32_t tid)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        struct thread_stream *thread = process->threads[i];
        if (thread->tid != tid)
            continue;
        if (!thread->is_defined)
            thread_stream_define(thread, process->trace, process->pid);
        return thread->id;
    }
    for (size_t i = 0; i < process->silent_count; i++)
        if (process->silent[i].tid == tid)
            return process->silent[i].id;
    struct silent_thread *silent = array_grow(process->silent, process->silent_count,
                                              &process->silent_capacity, sizeof *silent);
    if (!silent)
        return TTD_NONE;
    process->silent = silent;
    silent[process->silent_count] = (struct silent_thread){
        tid, thread_stream_begin(process->trace, position, process->pid, tid)};
    return silent[process->silent_count++].id;
}

/* Removes a thread that has ended and whose records are all read. */
static void processes_remove_thread(struct process *process, struct host *host, size_t index)
{
    struct thread_stream *thread = process->threads[index];
    processes_losses_of_last_gap(process, thread, host);
    if (thread->outer)
        thread->outer->inner--;
    else if (thread->id != TTD_NONE)
        trace_thread_end(process->trace, (struct ttd_position){thread->sequence, thread->steps},
                         thread->id, thread_stream_renamed(thread) ? thread->name : NULL);
    stream_close(&thread->stream, host, &thread->shared->first);
    host_free_thread(host, thread->slot);
    free(thread);
    process->threads[index] = process->threads[--process->thread_count];
}

static bool processes_thread_exists(const struct process *process,
                                    const struct thread_stream *thread)
{
    return thread->tid != 0 &&
           (syscall(SYS_tgkill, process->pid, thread->tid, 0) == 0 || errno != ESRCH);
}

void process_reap_threads(struct process *process, struct host *host)
{
    for (size_t i = process->thread_count; i-- > 0;) {
        struct thread_stream *thread = process->threads[i];
        if (thread->has_held || thread->has_next || thread->inner != 0 ||
            processes_thread_exists(process, thread))
            continue;
        /* The thread has ended, so it publishes nothing after this look. */
        thread->has_next =
            stream_peek(&thread->stream, host, &thread->shared->first, &thread->next);
        if (!thread->has_next)
            processes_remove_thread(process, host, i);
    }
}

uint64_t process_pending(const struct process *process)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < process->thread_count && !process->is_dead; i++) {
        uint64_t pending =
            atomic_load_explicit(&process->threads[i]->shared->pending, memory_order_acquire);
        if (pending != 0 && pending - 1 < least)
            least = pending - 1;
    }
    return least;
}

/* Frees the slots of threads that ended before they were added. */
static void processes_sweep_slots(const struct process *process, struct host *host)
{
    uint32_t slot_count = channel_used(&host->channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= slot_count; index++) {
        const struct thread_slot *slot = channel_thread(&host->view, index);
        uint32_t state =
            slot ? atomic_load_explicit(&slot->state, memory_order_acquire) : SLOT_FREE;
        if ((state & SLOT_STATE) != SLOT_FREE && state >> SLOT_PROCESS == process->slot)
            host_free_thread(host, index);
    }
}

void process_drain(struct process *process, struct host *host)
{
    process->is_dead = true;
    /* A block that it has not confirmed by its end is doubtful. */
    _Atomic uint32_t *notes = &channel_process(&host->view, process->slot)->notes;
    if ((atomic_load(notes) & NOTE_FORWARDS) != 0)
        atomic_fetch_or(notes, NOTE_FOREIGN_MALLOC);
    else if ((atomic_load(notes) & NOTE_TRIED) != 0)
        trace_metadata(process->trace, "assumed",
                       "the program's own malloc, free or operator new always call the C "
                       "library's, as they do at its start and at its end");
    while (process_merge(process, host, UINT64_MAX - 1) != 0)
        host_tick(host);
    losses_of_process(process, host); /* by modules that came last */
    if (process->unreturned.count != 0)
        process_write_unreturned(process, ttd_position_max());
    process->unreturned.count = 0;
    for (size_t i = process->thread_count; i-- > 0;)
        if (process->threads[i]->outer)
            processes_remove_thread(process, host, i);
    while (process->thread_count > 0)
        processes_remove_thread(process, host, process->thread_count - 1);
    processes_sweep_slots(process, host);
    struct process_slot *slot = channel_process(&host->view, process->slot);
    uint64_t lost = atomic_load(&slot->lost);
    if (lost != 0)
        trace_loss(process->trace, TTD_LOSS_OVERFLOW, TTD_NONE, lost, (struct ttd_position){0, 0},
                   ttd_position_max());
    stream_close(&process->log, host, &slot->log);
    host_free_process(host, process->slot);
}

/*
 * Moves the process to a new image, in another slot: ends the heap, modules and threads of the old
 * one.
 */
static void process_exec(struct process *process, struct host *host, uint32_t slot)
{
    process_drain(process, host);
    const struct process_slot *claim = channel_process(&host->view, slot);
    struct ttd_position position = {claim->sequence, 0};
    trace_unload_all(process->trace, position);
    heaps_end(process, position);
    dump_queue_refuse(&process->dumps);
    process->is_dead = false;
    process->notes = 0;
    processes_set_slot(process, slot, claim);
    processes_set_hooks(process, claim);
    process->log = (struct stream){0};
    process->has_log_next = false;
    trace_new_heap(process->trace, position, TTD_NONE);
    process->calls_before = process->trace->events + process->trace->lost;
}

/* Processes without a pidfd that are looked at each time. It takes some microseconds for each. */
enum { LOOKS = 32 };

void processes_free(struct processes *processes)
{
    free(processes->items);
    free(processes->polled);
}

struct process *processes_by_slot(const struct processes *processes, uint32_t slot)
{
    return slot <= CHANNEL_PROCESSES ? processes->by_slot[slot] : NULL;
}

struct process *processes_by_pid(const struct processes *processes, uint32_t pid)
{
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pid == pid)
            return processes->items[i];
    return NULL;
}

/* Whether a process is over that executed nothing: another one may have its id by now. */
static bool processes_is_over(const struct process *process, struct host *host)
{
    struct pollfd event = {.fd = process->pidfd, .events = POLLIN};
    if ((atomic_load(&channel_process(&host->view, process->slot)->notes) & NOTE_EXECUTES) != 0)
        return false;
    return process->pidfd >= 0 ? poll(&event, 1, 0) > 0
                               : origin_is_over(process->pid, process->start_time);
}

struct process *processes_replaced(const struct processes *processes, struct host *host,
                                   const struct process_slot *slot)
{
    uint32_t pid = slot->pid;
    if (slot->flags & (PROCESS_FORKED | PROCESS_GUEST))
        return NULL;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pid == pid && !process_has_image(processes->items[i]) &&
            !processes_is_over(processes->items[i], host))
            return processes->items[i];
    return NULL;
}

struct process *processes_parent(const struct processes *processes, const struct process_slot *slot)
{
    if (slot->flags & PROCESS_FORKED) {
        struct process *parent = processes_by_slot(processes, slot->parent);
        return parent && parent->sequence == slot->parent_image ? parent : NULL;
    }
    return processes_by_pid(processes, slot->parent_pid);
}

bool processes_reserve(struct processes *processes)
{
    size_t capacity = processes->capacity, polled_capacity = capacity;
    void *items =
        array_grow(processes->items, processes->count, &capacity, sizeof *processes->items);
    if (items)
        processes->items = items;
    void *polled = array_grow(processes->polled, processes->count, &polled_capacity,
                              sizeof *processes->polled);
    if (polled)
        processes->polled = polled;
    if (!items || !polled)
        return false;
    processes->capacity = capacity;
    return true;
}

void processes_add(struct processes *processes, struct process *process)
{
    processes->items[processes->count++] = process;
    processes->by_slot[process->slot] = process;
}

void processes_exec(struct processes *processes, struct process *process, struct host *host,
                    uint32_t slot)
{
    processes->by_slot[process->slot] = NULL;
    process_exec(process, host, slot);
    processes->by_slot[slot] = process;
}

struct process *processes_take(struct processes *processes, size_t index)
{
    struct process *process = processes->items[index];
    processes->by_slot[process->slot] = NULL;
    processes->items[index] = processes->items[--processes->count];
    return process;
}

/* Looks at some of the processes that have no pidfd, and goes on behind them the next time. */
static void processes_look(struct processes *processes)
{
    unsigned looks = 0;
    for (size_t i = 0; i < processes->count && looks < LOOKS; i++) {
        struct process *process = processes->items[processes->looked_at++ % processes->count];
        if (process->pidfd >= 0)
            continue;
        process->is_gone = origin_is_over(process->pid, process->start_time);
        looks++;
    }
}

void processes_poll(struct processes *processes)
{
    nfds_t count = 0;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pidfd >= 0)
            processes->polled[count++] =
                (struct pollfd){.fd = processes->items[i]->pidfd, .events = POLLIN};
    poll(processes->polled, count, 0);
    if (count < processes->count)
        processes_look(processes);
    for (size_t i = processes->count; i-- > 0;)
        if (processes->items[i]->pidfd >= 0)
            processes->items[i]->is_gone = processes->polled[--count].revents != 0;
}
