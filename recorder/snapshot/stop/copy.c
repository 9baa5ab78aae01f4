/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "snapshot/process_reader.h"

#define APPEAR_NS UINT64_C(1000000000)
#define END_NS    UINT64_C(5000000000)
#define POLL_NS   20000

static uint64_t copy_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes any thread that can execute a call. Returns whether one did. */
static bool copy_call_by_any(struct threads *threads, struct borrowed_call *call,
                             struct copy_history *history)
{
    enum borrow_result result = borrow_by_any(threads, call);
    history->is_barred |= result == BORROW_RUNS_ON;
    return result == BORROW_DONE;
}

void copy_bury(struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history)
{
    struct borrowed_call call = {
        .code = code, .number = SYS_wait4, .arguments = {history->dead, 0, __WALL | WNOHANG, 0}};
    if (history->dead != 0 && !history->is_barred && copy_call_by_any(threads, &call, history))
        history->dead = 0;
}

/* Waits for the process `pid` to stop, or to end, with the flags of waitid(). */
static bool copy_await(uint32_t pid, int flags, uint64_t limit)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    siginfo_t info = {0};
    for (uint64_t begin = copy_now(); copy_now() - begin < limit; nanosleep(&moment, NULL)) {
        if (waitid(P_PID, pid, &info, flags | WNOHANG | __WALL) != 0)
            return false;
        if (info.si_pid != 0)
            return true;
    }
    return false;
}

/* Lets the system end the copy rather than the process, if memory runs out. */
static void copy_offer(uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/oom_score_adj", pid);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    (void)!write(file, "1000", 4);
    close(file);
}

/* Gives the copy a table of descriptors of its own, an empty one. The table that it shares with the
 * process costs nothing to make, but if the process executes a program meanwhile, the copy would be
 * left with its record locks, and with the files that are to be closed then. */
static void copy_leave_files(const struct copy *copy, const struct borrowed_code *code)
{
    struct threads threads = {.pid = copy->pid};
    struct thread_state thread = {.tid = copy->pid, .is_seized = true, .is_stopped = true};
    struct borrowed_call call = {
        .code = code, .number = SYS_close_range, .arguments = {0, ~0U, CLOSE_RANGE_UNSHARE}};
    borrow_call(&threads, &thread, &call);
}

static void copy_end_now(const struct copy *copy)
{
    kill((pid_t)copy->pid, SIGKILL);
    copy_await(copy->pid, WEXITED | WNOWAIT, END_NS);
}

bool copy_make(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history)
{
    void *options = (void *)(intptr_t)PTRACE_O_EXITKILL;
    struct borrowed_call call = {.code = code,
                                 .makes_process = true,
                                 .number = SYS_clone,
                                 .arguments = {CLONE_FILES /* and no signal at its end */}};
    *copy = (struct copy){0};
    if (!threads->are_stopped || code->stack_end == 0)
        return false;
    copy_bury(threads, code, history);
    if (history->is_barred || history->dead != 0)
        return false;
    bool is_called = copy_call_by_any(threads, &call, history);
    if (call.created == 0)
        return false;
    *copy = (struct copy){call.created, is_called && call.result > 0 ? (uint32_t)call.result : 0};
    if (is_called && copy_await(copy->pid, WSTOPPED | WNOWAIT, APPEAR_NS)) {
        copy_leave_files(copy, code);
        if (ptrace(PTRACE_SETOPTIONS, (pid_t)copy->pid, NULL, options) == 0) {
            copy_offer(copy->pid);
            return true;
        }
    }
    history->is_barred = true;
    copy_drop(copy, threads, code, history);
    return false;
}

void copy_drop(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history)
{
    if (copy->pid == 0)
        return;
    copy_end_now(copy);
    copy_await(copy->pid, WEXITED, END_NS);
    history->dead = copy->inner;
    copy_bury(threads, code, history);
    *copy = (struct copy){0};
}

uint64_t copy_end(struct copy *copy, const struct borrowed_code *code, struct copy_history *history,
                  uint32_t pid, uint32_t child, struct interrupted_calls *interrupted)
{
    struct threads threads;
    if (copy->pid == 0)
        return 0;
    copy_end_now(copy);
    uint64_t begin = copy_now();
    /* Its parent may wait for it only now, and only here. */
    threads_stop_some(&threads, pid, child, interrupted);
    bool are_all = threads_are_all(&threads);
    copy_drop(copy, &threads, code, history);
    threads_release(&threads);
    return are_all ? copy_now() - begin : 0;
}

static uint64_t copy_resident(uint32_t pid)
{
    char path[64];
    unsigned long long size = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%u/statm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool is_read = fscanf(file, "%llu %llu", &size, &pages) == 2;
    fclose(file);
    return is_read ? (uint64_t)pages * MEMORY_PAGE : 0;
}

/* Whether a descriptor is of a file that is read into the pages of the process directly: systems
 * have lost the bytes that were read while a process was copied. */
static bool copy_is_direct(uint32_t pid, const char *descriptor)
{
    char path[320], line[128];
    unsigned long flags = 0;
    snprintf(path, sizeof path, "/proc/%u/fdinfo/%s", pid, descriptor);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "flags:", 6) == 0)
            flags = strtoul(line + 6, NULL, 8);
    fclose(file);
    return (flags & O_DIRECT) != 0;
}

static bool copy_has_direct(uint32_t pid)
{
    enum { DESCRIPTORS_MAX = 10000 };
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fdinfo", pid);
    DIR *directory = opendir(path);
    bool is_found = !directory;
    const struct dirent *entry;
    for (int i = 0; !is_found && (entry = readdir(directory)); i++)
        is_found =
            i == DESCRIPTORS_MAX || (*entry->d_name != '.' && copy_is_direct(pid, entry->d_name));
    if (directory)
        closedir(directory);
    return is_found;
}

static bool copy_gaps_add(struct copy_gaps *gaps, struct memory_span span)
{
    void *items = array_grow(gaps->items, gaps->count, &gaps->capacity, sizeof *gaps->items);
    if (!items)
        return false;
    gaps->items = items;
    gaps->items[gaps->count++] = span;
    return true;
}

/* The list cannot be read while the process changes it. */
static bool copy_gaps_read_line(FILE *file, char **line, size_t *capacity)
{
    reader_enter();
    bool is_read = getline(line, capacity, file) > 0;
    reader_leave();
    return is_read;
}

/* Lists the mappings that the program keeps out of copies, or lets them be empty in copies. */
static bool copy_find_gaps(uint32_t pid, struct copy_gaps *gaps)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    bool is_read = false;
    struct memory_span span = {0};
    snprintf(path, sizeof path, "/proc/%u/smaps", pid);
    reader_enter();
    FILE *file = fopen(path, "re");
    reader_leave();
    if (!file)
        return false;
    while (copy_gaps_read_line(file, &line, &capacity)) {
        char *end;
        uint64_t begin = strtoull(line, &end, 16);
        if (*end == '-' && end != line)
            span = (struct memory_span){begin, strtoull(end + 1, NULL, 16)};
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        is_read = !strstr(line, " dc") && !strstr(line, " wf");
        if (!is_read && !(is_read = copy_gaps_add(gaps, span)))
            break;
    }
    free(line);
    fclose(file);
    return is_read;
}

bool copy_is_due(uint32_t pid, uint64_t least, struct copy_gaps *gaps)
{
    *gaps = (struct copy_gaps){0};
    return copy_resident(pid) >= least && !copy_has_direct(pid) && copy_find_gaps(pid, gaps);
}

void copy_gaps_free(struct copy_gaps *gaps)
{
    free(gaps->items);
}
