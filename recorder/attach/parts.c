/* SPDX-License-Identifier: MIT */
#include "attach/parts.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "quiet_thread.h"
#include "attach/process.h"

enum { TICK_NS = 1000000 };

bool attach_refuse(struct attachment *attachment, const char *format, ...)
{
    va_list list;
    if (attachment->reason[0] != '\0')
        return false;
    va_start(list, format);
    vsnprintf(attachment->reason, sizeof attachment->reason, format, list);
    va_end(list);
    return false;
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

static uint64_t attach_parts_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Says which thread could not be stopped. */
static void refuse_stop(struct attachment *attachment, const struct threads *threads)
{
    bool is_any_seized = false;
    for (size_t i = 0; i < threads->count; i++)
        is_any_seized |= threads->items[i].is_seized;
    if (!is_any_seized) {
        attach_refuse(attachment, "the system does not permit to stop it");
        return;
    }
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->items[i].is_stopped && !threads->items[i].has_ended)
            attach_refuse(attachment,
                          "thread %u cannot be stopped: it waits in the system, as for a disk or "
                          "for a program that it starts; try again",
                          threads->items[i].tid);
    attach_refuse(attachment, "its threads could not be stopped; try again");
}

/* All that traces the process is done by one thread: when it ends, the system frees the rest.
 */
static void *stop_and_work(void *context)
{
    struct stopping *stopping = context;
    struct attachment *attachment = stopping->attachment;
    struct threads threads;
    uint64_t begin = attach_parts_now();
    if (stopping->is_for_some)
        threads_stop_some(&threads, attachment->pid, 0, &attachment->interrupted);
    else
        threads_stop(&threads, attachment->pid, 0, 0, &attachment->interrupted);
    threads.suspends_filters = true;
    if (threads.are_stopped)
        stopping->is_done = stopping->work(attachment, &threads);
    else
        refuse_stop(attachment, &threads);
    threads_release(&threads);
    if (!stopping->is_for_some || threads_is_alone(attachment->pid, attachment->pid))
        attachment->stop_time += attach_parts_now() - begin;
    if (stopping->is_done && stopping->after)
        stopping->after(attachment);
    return NULL;
}

bool attach_stopped_then(struct attachment *attachment,
                         bool (*work)(struct attachment *attachment, struct threads *threads),
                         void (*after)(struct attachment *attachment), void (*tick)(void *context),
                         void *context)
{
    struct stopping stopping = {attachment, work, after, false, false};
    const struct timespec moment = {.tv_nsec = TICK_NS};
    pthread_t thread;
    if (!quiet_thread_start(&thread, stop_and_work, &stopping))
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
    if (!quiet_thread_start(&thread, stop_and_work, &stopping))
        return attach_refuse(attachment, "no thread can be started here");
    pthread_join(thread, NULL);
    return stopping.is_done;
}

bool attach_stopped(struct attachment *attachment,
                    bool (*work)(struct attachment *attachment, struct threads *threads))
{
    return attach_stopped_then(attachment, work, NULL, NULL, NULL);
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
static bool is_unused(const struct attachment *attachment, uint64_t address, const void *left)
{
    static const unsigned char nothing[CAVE_CODE];
    unsigned char bytes[CAVE_CODE];
    return attach_read(attachment, address, bytes, sizeof bytes) &&
           (memcmp(bytes, nothing, sizeof bytes) == 0 || memcmp(bytes, left, sizeof bytes) == 0);
}

static bool attach_is_zero(const struct attachment *attachment, uint64_t address)
{
    static const unsigned char nothing[CAVE_CODE];
    return is_unused(attachment, address, nothing);
}

/* Finds unused bytes behind the code of a module. */
static uint64_t find_padding(const struct attachment *attachment, const void *left)
{
    for (size_t i = 0; i < attachment->modules.count; i++) {
        const struct attach_module *module = &attachment->modules.items[i];
        for (size_t k = 0; k < module->segment_count; k++) {
            const Elf64_Phdr *segment = &module->segments[k];
            uint64_t end = module->bias + segment->p_vaddr + segment->p_memsz;
            uint64_t begin = (end + 63) & -UINT64_C(64);
            if (segment->p_type == PT_LOAD && segment->p_flags == (PF_R | PF_X) &&
                (end & -(uint64_t)ATTACH_PAGE) == (begin & -(uint64_t)ATTACH_PAGE) &&
                (begin & (ATTACH_PAGE - 1)) + CAVE_CODE <= ATTACH_PAGE &&
                is_unused(attachment, begin, left))
                return begin;
        }
    }
    return 0;
}

static bool is_in_cave(const struct threads *threads, const struct borrowed_code *code)
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
    uint64_t code = find_padding(attachment, bytes);
    if (code == 0)
        return attach_refuse(attachment, "none of its modules has room for a system call");
    *cave = (struct attach_cave){{.call = code, .stack_end = BORROWED_OWN_STACK}};
    attachment->is_to_wait = is_in_cave(threads, &cave->code) ||
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
