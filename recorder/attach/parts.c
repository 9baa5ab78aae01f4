/* SPDX-License-Identifier: MIT */
#include "attach/parts.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "quiet_thread.h"

enum { TICK_NS = 1000000 };

bool attach_refuse(struct attachment *attachment, const char *format, ...)
{
    va_list list;
    if (attachment->reason[0] != '\0')
        return false;
    if (attach_is_past(attachment))
        format = "it has ended, or executed another program, meanwhile; try again";
    va_start(list, format);
    vsnprintf(attachment->reason, sizeof attachment->reason, format, list);
    va_end(list);
    return false;
}

bool attach_is_past(const struct attachment *attachment)
{
    char byte;
    return attachment->memory >= 0 && pread(attachment->memory, &byte, 1, 0) == 0;
}

bool attach_read(const struct attachment *attachment, uint64_t address, void *bytes, size_t size)
{
    return pread(attachment->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

bool attach_write(const struct attachment *attachment, uint64_t address, const void *bytes,
                  size_t size)
{
    return pwrite(attachment->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

struct stopping {
    struct attachment *attachment;
    bool (*work)(struct attachment *attachment, struct threads *threads);
    void (*after)(struct attachment *attachment);
    bool is_for_some; /* a few threads are enough */
    bool is_done;
};

uint64_t attach_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Says why a thread has not stopped. */
static void parts_refuse_thread(struct attachment *attachment, uint32_t tid)
{
    if (attach_process_is_in_vfork(attachment->pid, tid))
        attach_refuse(attachment,
                      "thread %u is in vfork() until its child executes a program or ends; try "
                      "again",
                      tid);
    else if (threads_state_of(attachment->pid, tid) == 'D')
        attach_refuse(attachment,
                      "thread %u cannot be stopped: it waits in the system, as for a disk; try "
                      "again",
                      tid);
    else
        attach_refuse(attachment, "thread %u did not stop in time; try again", tid);
}

/* Names the thread that could not be stopped. */
static void parts_refuse_stop(struct attachment *attachment, const struct threads *threads)
{
    bool is_any_seized = false;
    for (size_t i = 0; i < threads->count; i++)
        is_any_seized |= threads->items[i].is_seized;
    if (attach_process_thread(attachment->pid) == 0)
        attach_refuse(attachment, "it is ending");
    else if (!is_any_seized)
        attach_refuse(attachment, "the system does not permit stopping it");
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->items[i].is_stopped && !threads->items[i].has_ended)
            parts_refuse_thread(attachment, threads->items[i].tid);
    attach_refuse(attachment, "its threads could not be stopped; try again");
}

/* All that traces the process is done by one thread: when it ends, the system frees the rest.
 */
static void *parts_stop_and_work(void *context)
{
    struct stopping *stopping = context;
    struct attachment *attachment = stopping->attachment;
    struct threads threads;
    if (stopping->is_for_some)
        threads_stop_some(&threads, attachment->pid, 0, &attachment->interrupted);
    else
        threads_stop(&threads, attachment->pid, 0, 0, &attachment->interrupted);
    uint64_t begin = threads.begin != 0 ? threads.begin : attach_now();
    threads.suspends_filters = true;
    threads_hurry(&threads);
    if (threads.are_stopped)
        stopping->is_done = stopping->work(attachment, &threads);
    else
        parts_refuse_stop(attachment, &threads);
    bool is_process = !stopping->is_for_some || threads_are_all(&threads);
    threads_release(&threads);
    if (is_process)
        attachment->stop_time += attach_now() - begin;
    if (stopping->is_done && stopping->after)
        stopping->after(attachment);
    return NULL;
}

/* Works on a program that is held. */
static void parts_work_held(void *context)
{
    struct stopping *stopping = context;
    struct threads *threads = &stopping->attachment->hold->threads;
    stopping->is_done = threads->are_stopped && stopping->work(stopping->attachment, threads);
}

/* Runs the work in the thread that holds the program, which is not let go. */
static bool attach_held(struct attachment *attachment,
                        bool (*work)(struct attachment *attachment, struct threads *threads),
                        void (*tick)(void *context), void *context)
{
    struct stopping stopping = {attachment, work, NULL, false, false};
    attach_hold_do(attachment->hold, parts_work_held, &stopping, tick, context);
    return stopping.is_done || attach_refuse(attachment, "it could not be stopped at its start");
}

bool attach_stopped_then(struct attachment *attachment,
                         bool (*work)(struct attachment *attachment, struct threads *threads),
                         void (*after)(struct attachment *attachment), void (*tick)(void *context),
                         void *context)
{
    struct stopping stopping = {attachment, work, after, false, false};
    const struct timespec moment = {.tv_nsec = TICK_NS};
    pthread_t thread;
    if (attachment->hold)
        return attach_held(attachment, work, tick, context);
    if (!quiet_thread_start(&thread, parts_stop_and_work, &stopping))
        return attach_refuse(attachment, "no thread can be started here");
    while (tick && pthread_tryjoin_np(thread, NULL) != 0) {
        tick(context);
        nanosleep(&moment, NULL);
    }
    if (!tick)
        pthread_join(thread, NULL);
    return stopping.is_done;
}

bool attach_stopped_some(struct attachment *attachment,
                         bool (*work)(struct attachment *attachment, struct threads *threads))
{
    struct stopping stopping = {attachment, work, NULL, true, false};
    pthread_t thread;
    if (attachment->hold)
        return attach_held(attachment, work, NULL, NULL);
    if (!quiet_thread_start(&thread, parts_stop_and_work, &stopping))
        return attach_refuse(attachment, "no thread can be started here");
    pthread_join(thread, NULL);
    return stopping.is_done;
}

bool attach_stopped(struct attachment *attachment,
                    bool (*work)(struct attachment *attachment, struct threads *threads))
{
    return attach_stopped_then(attachment, work, NULL, NULL, NULL);
}

struct borrowed_code attach_own_code(const struct attachment *attachment)
{
    return (struct borrowed_code){.copy = attachment->base + attachment->image.copy,
                                  .call = attachment->base + attachment->image.call,
                                  .stack_begin =
                                      attachment->base + attachment->image.stack_end - 4096,
                                  .stack_end = attachment->base + attachment->image.stack_end};
}

bool attach_write_undo(struct attachment *attachment)
{
    uint64_t address = attach_own_address(attachment) + offsetof(struct attached, undo);
    return attach_write(attachment, address, &attachment->undo, sizeof attachment->undo) ||
           attach_refuse(attachment, "its memory cannot be written");
}

void attach_pause(void)
{
    static const struct timespec step = {.tv_nsec = 1000000};
    nanosleep(&step, NULL);
}

int64_t attach_call(struct threads *threads, const struct borrowed_code *code, uint64_t number,
                    const uint64_t arguments[6])
{
    struct borrowed_call call = {.code = code, .number = number};
    memcpy(call.arguments, arguments, sizeof call.arguments);
    for (size_t i = 0; i < threads->count && threads->are_stopped; i++) {
        enum borrow_result result = borrow_call(threads, &threads->items[i], &call);
        if (result == BORROW_DONE)
            return call.result;
        threads->are_stopped = result != BORROW_RUNS_ON;
    }
    return threads->are_stopped ? -EAGAIN : -EIO;
}

enum { CAVE_CODE = 64 };

/* Whether nothing uses these bytes: they are 0, or the remains of a killed recorder.
 */
static bool parts_is_unused(const struct attachment *attachment, uint64_t address, const void *left)
{
    static const unsigned char nothing[CAVE_CODE];
    unsigned char bytes[CAVE_CODE];
    return attach_read(attachment, address, bytes, sizeof bytes) &&
           (memcmp(bytes, nothing, sizeof bytes) == 0 || memcmp(bytes, left, sizeof bytes) == 0);
}

static bool attach_is_zero(const struct attachment *attachment, uint64_t address)
{
    static const unsigned char nothing[CAVE_CODE];
    return parts_is_unused(attachment, address, nothing);
}

/* Finds unused bytes behind the code of a module that is a file: all processes share the vDSO's. */
static uint64_t parts_find_padding(const struct attachment *attachment, const void *left)
{
    for (size_t i = 0; i < attachment->modules.count; i++) {
        const struct attach_module *module = &attachment->modules.items[i];
        for (size_t k = 0; k < module->segment_count; k++) {
            const Elf64_Phdr *segment = &module->segments[k];
            uint64_t end = module->bias + segment->p_vaddr + segment->p_memsz;
            uint64_t begin = (end + 63) & -UINT64_C(64);
            if (module->path[0] == '/' && segment->p_type == PT_LOAD &&
                segment->p_flags == (PF_R | PF_X) &&
                (end & -(uint64_t)ATTACH_PAGE) == (begin & -(uint64_t)ATTACH_PAGE) &&
                (begin & (ATTACH_PAGE - 1)) + CAVE_CODE <= ATTACH_PAGE &&
                parts_is_unused(attachment, begin, left))
                return begin;
        }
    }
    return 0;
}

static bool parts_is_in_cave(const struct threads *threads, const struct borrowed_code *code)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->items[i].is_stopped && attach_pc(&threads->items[i]) - code->call < CAVE_CODE)
            return true;
    return false;
}

bool attach_cave_open(struct attachment *attachment, const struct threads *threads,
                      struct attach_cave *cave)
{
    const uint8_t *bytes = attachment->image.bytes + attachment->image.call;
    uint64_t code = parts_find_padding(attachment, bytes);
    if (code == 0)
        return attach_refuse(attachment, "none of its modules has room for a system call");
    *cave = (struct attach_cave){{.call = code, .stack_end = BORROWED_OWN_STACK}};
    attachment->is_to_wait = parts_is_in_cave(threads, &cave->code) ||
                             (threads->are_some && !attach_is_zero(attachment, code));
    return !attachment->is_to_wait && attach_write(attachment, code, bytes, CAVE_CODE);
}

void attach_cave_close(struct attachment *attachment, const struct threads *threads,
                       const struct attach_cave *cave)
{
    static const unsigned char nothing[CAVE_CODE];
    if (threads->are_stopped)
        attach_write(attachment, cave->code.call, nothing, sizeof nothing);
}

bool attach_move(struct thread_state *thread, uint64_t pc)
{
    struct user_regs_struct registers;
    struct iovec buffer = {&registers, sizeof registers};
    pid_t tid = (pid_t)thread->tid;
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &buffer) != 0)
        return false;
    registers.rip = pc;
    if (ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &buffer) != 0)
        return false;
    thread->registers[THREAD_REGISTERS - 1] = pc;
    return true;
}

/* Looks for addresses on the stacks of threads that are stopped. */

/*
 * A frame that the system makes for a handler of a signal begins with the address of the code that
 * returns from it; the program counter that was interrupted stands at this distance from there.
 */
enum { FRAME_PC = 176 };

/* The part of a stack that is read: frames of signal handlers lie near its pointer. */
enum { STACK_MAX = 1 << 20, RED_ZONE = 128 };

/* Whether the code at an address returns from a handler: a system call, by its number. */
static bool parts_is_restorer(const struct attachment *attachment, uint64_t address)
{
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    unsigned char bytes[sizeof code];
    return attach_read(attachment, address, bytes, sizeof bytes) &&
           memcmp(bytes, code, sizeof code) == 0;
}

/* Returns where the mapping ends that an address lies in; 0 if it is in none. */
static uint64_t parts_end_of(const struct maps *maps, uint64_t address)
{
    size_t before = array_count_up_to(maps->items, maps->count, sizeof *maps->items,
                                      offsetof(struct mapping, begin), address);
    return before > 0 && address < maps->items[before - 1].end ? maps->items[before - 1].end : 0;
}

bool attach_stacks_open(struct attach_stacks *stacks, const struct attachment *attachment,
                        const struct threads *threads)
{
    *stacks = (struct attach_stacks){.attachment = attachment, .tid = attach_living(threads)};
    return maps_read(&stacks->maps, attachment->pid, stacks->tid);
}

/* Reads a part of a stack by the call that copies least. */
static bool parts_read_stack(const struct attachment *attachment, uint32_t tid, uint64_t begin,
                             void *words, size_t size)
{
    struct iovec local = {words, size}, remote = {(void *)(uintptr_t)begin, size};
    return process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0) == (ssize_t)size ||
           attach_read(attachment, begin, words, size);
}

struct attach_stack attach_stack_look(const struct attach_stacks *stacks,
                                      const struct thread_state *thread,
                                      attach_is_sought *is_sought)
{
    const struct attachment *attachment = stacks->attachment;
    struct attach_stack found = {.has_words = true};
    uint64_t begin = (thread->registers[THREAD_STACK_POINTER] - RED_ZONE) & -UINT64_C(8);
    uint64_t end = parts_end_of(&stacks->maps, begin), size = end - begin;
    bool is_whole = end != 0 && size <= STACK_MAX;
    size = is_whole ? size : STACK_MAX;
    uint64_t *words = end != 0 ? malloc(size) : NULL;
    if (words && parts_read_stack(attachment, thread->tid, begin, words, size)) {
        found.has_words = !is_whole;
        for (size_t i = 0; i < size / sizeof *words; i++) {
            if (!is_sought(attachment, words[i]))
                continue;
            found.has_words = true;
            found.has_frame |= i >= FRAME_PC / sizeof *words &&
                               parts_is_restorer(attachment, words[i - FRAME_PC / sizeof *words]);
        }
    }
    free(words);
    return found;
}

static void parts_stacks_prepare(struct attach_stacks *stacks)
{
    const struct attachment *attachment = stacks->attachment;
    const struct attach_modules *modules = &stacks->modules;
    stacks->are_followed = true;
    stacks->is_open = memory_open(&stacks->memory, attachment->pid, stacks->tid);
    if (!stacks->is_open ||
        !attach_modules_read(&stacks->modules, attachment->pid, stacks->tid, attachment->memory))
        return;
    stacks->list = calloc(modules->count + 1, sizeof *stacks->list);
    for (size_t i = 0; stacks->list && i < modules->count; i++) {
        const struct attach_module *module = &modules->items[i];
        struct stat status;
        stacks->list[i] = (struct snapshot_module){
            .path = module->path, .bias = module->bias, .begin = module->begin, .end = module->end};
        if (module->file < 0 || fstat(module->file, &status) != 0)
            continue;
        stacks->list[i].device = status.st_dev;
        stacks->list[i].inode = status.st_ino;
    }
    stacks->subject =
        (struct snapshot_subject){.modules = stacks->list, .module_count = modules->count};
    stacks->follower = stacks->list ? follower_new(&stacks->memory, &stacks->subject) : NULL;
}

void attach_stacks_close(struct attach_stacks *stacks)
{
    follower_free(stacks->follower);
    free(stacks->list);
    attach_modules_free(&stacks->modules);
    if (stacks->is_open)
        memory_close(&stacks->memory);
    maps_free(&stacks->maps);
}

/* A look for an address among the frames of a thread. */
struct frames_search {
    const struct attachment *attachment;
    attach_is_sought *is_sought;
    bool is_found;
    uint64_t last; /* where the last frame that was found goes on */
};

static bool parts_frames_visit(void *context, uint64_t pc)
{
    struct frames_search *search = context;
    search->is_found = search->is_sought(search->attachment, pc);
    search->last = pc;
    return !search->is_found;
}

enum attach_frames attach_stack_follow(struct attach_stacks *stacks,
                                       const struct thread_state *thread,
                                       attach_is_sought *is_sought)
{
    struct frames_search search = {stacks->attachment, is_sought, false, 0};
    uint64_t begin = thread->registers[THREAD_STACK_POINTER];
    struct memory_span stack = {begin, parts_end_of(&stacks->maps, begin)};
    stacks->last = 0;
    if (!stacks->are_followed)
        parts_stacks_prepare(stacks);
    if (!stacks->follower || stack.end == 0)
        return FRAMES_UNKNOWN;
    bool is_whole =
        follower_visit(stacks->follower, thread->registers, stack, parts_frames_visit, &search);
    stacks->last = search.last;
    if (search.is_found)
        return FRAMES_HAVE_ONE;
    return is_whole ? FRAMES_HAVE_NONE : FRAMES_UNKNOWN;
}
