/* SPDX-License-Identifier: MIT */
#include "attach/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Copies the text of a field of the status, without the newline. Returns false if there is none. */
static bool process_status_field(uint32_t pid, uint32_t tid, const char *field, char *text,
                                 size_t size)
{
    char path[64], line[512];
    bool is_found = false;
    size_t length = strlen(field);
    snprintf(path, sizeof path, "/proc/%u/task/%u/status", pid, tid);
    FILE *file = fopen(path, "re");
    while (file && !is_found && fgets(line, sizeof line, file))
        if (strncmp(line, field, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1 + strspn(line + length + 1, " \t");
            snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
            is_found = true;
        }
    if (file)
        fclose(file);
    return is_found;
}

/* Returns a number in the status of a thread, such as "TracerPid"; -1 if it is not there. */
static long attach_process_status(uint32_t pid, uint32_t tid, const char *field)
{
    char text[64], *end;
    if (!process_status_field(pid, tid, field, text, sizeof text))
        return -1;
    long number = strtol(text, &end, 10);
    return end != text ? number : -1;
}

/* Calls `visit` for each thread, until it returns false. Returns whether it never did. */
static bool attach_process_threads(uint32_t pid,
                                   bool (*visit)(uint32_t pid, uint32_t tid, void *context),
                                   void *context)
{
    char path[64];
    bool goes_on = true;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    DIR *directory = opendir(path);
    if (!directory)
        return true;
    for (const struct dirent *entry; goes_on && (entry = readdir(directory));) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (tid != 0)
            goes_on = visit(pid, tid, context);
    }
    closedir(directory);
    return goes_on;
}

static bool process_take_living(uint32_t pid, uint32_t tid, void *context)
{
    if (threads_is_ending(pid, tid))
        return true;
    *(uint32_t *)context = tid;
    return false;
}

uint32_t attach_process_thread(uint32_t pid)
{
    uint32_t tid = 0;
    process_take_living(pid, pid, &tid);
    if (tid == 0)
        attach_process_threads(pid, process_take_living, &tid);
    return tid;
}

/* Whether the system lets this recorder suspend seccomp filters of processes that it traces. */
static bool process_can_suspend_filters(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    bool can = child > 0 &&
               ptrace(PTRACE_SEIZE, child, NULL, (void *)(uintptr_t)PTRACE_O_SUSPEND_SECCOMP) == 0;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, __WALL);
    }
    return can;
}

/* Looks for watchers of system calls and returns. */
struct process_watch {
    bool is_filtered;
    bool has_shadow_stack;
};

static bool process_look(uint32_t pid, uint32_t tid, void *context)
{
    struct process_watch *watch = context;
    char features[128] = "";
    process_status_field(pid, tid, "x86_Thread_features", features, sizeof features);
    watch->is_filtered |= attach_process_status(pid, tid, "Seccomp") > 0;
    watch->has_shadow_stack |= strstr(features, "shstk") != NULL;
    return true;
}

static bool process_refuse_watched(uint32_t pid, bool is_held, bool *is_filtered, char *reason,
                                   size_t size)
{
    struct process_watch watch = {false, false};
    const char *refusal = NULL, *other_way = "";
    attach_process_threads(pid, process_look, &watch);
    *is_filtered = watch.is_filtered;
    if (watch.has_shadow_stack) {
        refusal = "it has a shadow stack, which does not let calls be redirected";
        other_way = "; start it by ttdrecord instead";
    } else if (watch.is_filtered && !process_can_suspend_filters()) {
        refusal = "a seccomp filter watches its system calls, and would not let the recorder in; "
                  "run ttdrecord as root (with CAP_SYS_ADMIN)";
        other_way = ", or start it by ttdrecord";
    }
    /* A held program is being started by ttdrecord. */
    if (refusal)
        snprintf(reason, size, "%s%s", refusal, is_held ? "" : other_way);
    return !refusal;
}

static bool process_refuse_traced(uint32_t pid, uint32_t tid, char *reason, size_t size)
{
    char name[64] = "";
    long tracer = attach_process_status(pid, tid, "TracerPid");
    if (tracer <= 0)
        return true;
    process_status_field((uint32_t)tracer, (uint32_t)tracer, "Name", name, sizeof name);
    snprintf(reason, size, "process %ld (%s) traces it; end that first", tracer, name);
    return false;
}

uint32_t attach_process_inner(uint32_t pid, uint32_t tid)
{
    char text[256];
    if (!process_status_field(pid, tid, "NSpid", text, sizeof text))
        return tid;
    const char *last = strrchr(text, '\t');
    return (uint32_t)strtoul(last ? last + 1 : text, NULL, 10);
}

static bool process_refuse_permission(uint32_t pid, uint32_t tid, char *reason, size_t size)
{
    char path[64], scope = '0';
    snprintf(path, sizeof path, "/proc/%u/task/%u/mem", pid, tid);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        close(file);
        return true;
    }
    int error = errno;
    file = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, &scope, 1) != 1)
        scope = '0';
    if (file >= 0)
        close(file);
    if (error == ESRCH)
        snprintf(reason, size, "it is one of the system's own, or ends just now");
    else if (error != EPERM && error != EACCES)
        snprintf(reason, size, "its memory cannot be opened: %s", strerror(error));
    else if (geteuid() == 0)
        snprintf(reason, size,
                 "this root lacks CAP_SYS_PTRACE, which a container gets by --cap-add=SYS_PTRACE, "
                 "or a security module protects the process");
    else if (scope != '0')
        snprintf(reason, size,
                 "the system permits it to root only (kernel.yama.ptrace_scope is %c)", scope);
    else if (attach_process_status(pid, tid, "Uid") == (long)getuid())
        snprintf(reason, size,
                 "it protects itself from its user, as set-user-ID programs do; run ttdrecord as "
                 "root");
    else
        snprintf(reason, size,
                 "the system does not permit it; run ttdrecord as root, or as its user");
    return false;
}

static bool attach_refuse_stopped(uint32_t pid, uint32_t tid, char *reason, size_t size)
{
    if (threads_state_of(pid, tid) != 'T')
        return true;
    snprintf(reason, size, "it is stopped; let it go on first, as by kill -CONT %u", pid);
    return false;
}

bool attach_process_is_in_vfork(uint32_t pid, uint32_t tid)
{
    char path[64];
    long number = -1;
    unsigned long flags = 0;
    snprintf(path, sizeof path, "/proc/%u/task/%u/syscall", pid, tid);
    FILE *file = fopen(path, "re");
    int count = file ? fscanf(file, "%ld %lx", &number, &flags) : 0;
    if (file)
        fclose(file);
    /* The flags of clone3() are in memory; it waits only with this one. */
    return count >= 1 && (number == SYS_vfork || number == SYS_clone3 ||
                          (number == SYS_clone && flags & CLONE_VFORK));
}

static bool process_refuse_program(uint32_t pid, uint32_t tid, char *reason, size_t size)
{
    char path[64];
    unsigned char header[20] = {0};
    snprintf(path, sizeof path, "/proc/%u/task/%u/exe", pid, tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_read = file >= 0 && read(file, header, sizeof header) == sizeof header;
    if (file >= 0)
        close(file);
    if (!is_read) {
        snprintf(reason, size, "its program cannot be read: it is one of the system's own");
        return false;
    }
    if (header[4] == 2 && header[18] == 62)
        return true;
    snprintf(reason, size, "it is not a program of 64 bits for x86-64");
    return false;
}

bool attach_process_check(uint32_t pid, bool is_held, bool *is_filtered, char *reason, size_t size)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (stat(path, &status) != 0) {
        snprintf(reason, size, "there is no such process");
        return false;
    }
    uint32_t tid = attach_process_thread(pid);
    if (tid == 0) {
        char state = threads_state_of(pid, pid);
        snprintf(reason, size, state == 0 || state == 'Z' ? "it has ended" : "it is ending");
        return false;
    }
    if (pid == (uint32_t)getpid()) {
        snprintf(reason, size, "it is this recorder");
        return false;
    }
    return (is_held || process_refuse_traced(pid, tid, reason, size)) &&
           process_refuse_permission(pid, tid, reason, size) &&
           attach_refuse_stopped(pid, tid, reason, size) &&
           process_refuse_program(pid, tid, reason, size) &&
           process_refuse_watched(pid, is_held, is_filtered, reason, size);
}
