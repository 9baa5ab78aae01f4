/* SPDX-License-Identifier: MIT */
/* A process that demangles long names, and that ends if one takes too long. */
#include "symbols/demangle.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The process is a copy of this one. It closes all files but its socket, and only answers. A
 * request is the size of the name and the limit, then the name; an answer is the size of the text
 * and the processor time in microseconds, then the text. */

/* Sends all bytes; false if the other process is gone. */
static bool demangle_send_all(int socket, const void *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(socket, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool demangle_receive_all(int socket, void *data, size_t size)
{
    for (size_t received = 0; received < size;) {
        ssize_t n = recv(socket, (char *)data + received, size - received, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        received += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A name in the process, demangled by a thread whose stack is large enough for it. */
struct demangle_task {
    char *name;
    char *text;
    size_t limit;
    size_t size;
};

static void *demangle_run(void *context)
{
    struct demangle_task *task = context;
    task->size = demangle_long(task->name, task->text, task->limit);
    return NULL;
}

static void demangle_run_with_stack(struct demangle_task *task, size_t name_size)
{
    size_t stack_size = (UINT64_C(1) << 20) + name_size * DEMANGLE_STACK_RATIO;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack_size) != 0 ||
        pthread_create(&thread, &attributes, demangle_run, task) != 0 ||
        pthread_join(thread, NULL) != 0)
        _exit(EXIT_FAILURE);
}

static uint64_t demangle_processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Answers one request; false at the end of them. */
static bool demangle_serve_one(int socket)
{
    const struct itimerval limit = {.it_value = {.tv_usec = (suseconds_t)DEMANGLE_TIME}};
    uint32_t sizes[2];
    if (!demangle_receive_all(socket, sizes, sizeof sizes))
        return false;
    struct demangle_task task = {.limit = sizes[1]};
    uint64_t begin = demangle_processor_time();
    task.name = malloc((size_t)sizes[0] + 1);
    task.text = malloc((size_t)sizes[1] + 1);
    if (!task.name || !task.text || !demangle_receive_all(socket, task.name, sizes[0]))
        return false;
    task.name[sizes[0]] = '\0';
    setitimer(ITIMER_PROF, &limit, NULL);
    demangle_run_with_stack(&task, sizes[0]);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {0}}, NULL);
    sizes[0] = (uint32_t)task.size;
    sizes[1] = (uint32_t)(demangle_processor_time() - begin);
    bool is_sent = demangle_send_all(socket, sizes, sizeof sizes) &&
                   demangle_send_all(socket, task.text, task.size);
    free(task.name);
    free(task.text);
    return is_sent;
}

static void demangle_lift_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(resource, &limit);
    }
}

static _Noreturn void demangle_serve(int socket)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    signal(SIGPROF, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    /* A pager waits until nobody has the other end of its pipe. */
    if (socket > 0)
        syscall(SYS_close_range, 0, socket - 1, 0);
    syscall(SYS_close_range, socket + 1, ~0U, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    demangle_lift_limit(RLIMIT_DATA);
    demangle_lift_limit(RLIMIT_AS);
    while (demangle_serve_one(socket))
        continue;
    _exit(EXIT_SUCCESS);
}

static bool demangle_process_start(struct demangle_process *process)
{
    int ends[2];
    if (process->failures >= DEMANGLE_FAILURES_MAX ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    pid_t id = fork();
    if (id == 0) {
        close(ends[0]);
        demangle_serve(ends[1]);
    }
    close(ends[1]);
    if (id < 0) {
        close(ends[0]);
        process->failures++;
        return false;
    }
    process->id = id;
    process->socket = ends[0];
    return true;
}

void demangle_process_end(struct demangle_process *process)
{
    if (!process->id)
        return;
    close(process->socket);
    kill(process->id, SIGKILL);
    while (waitpid(process->id, NULL, 0) < 0 && errno == EINTR)
        continue;
    process->id = 0;
}

static bool demangle_process_ask(struct demangle_process *process, struct ttd_string name,
                                 char *text, size_t limit, size_t *size)
{
    uint32_t sizes[2] = {(uint32_t)name.size, (uint32_t)limit};
    if (!demangle_send_all(process->socket, sizes, sizeof sizes) ||
        !demangle_send_all(process->socket, name.data, name.size) ||
        !demangle_receive_all(process->socket, sizes, sizeof sizes) || sizes[0] > limit ||
        !demangle_receive_all(process->socket, text, sizes[0]))
        return false;
    process->time += sizes[1];
    *size = sizes[0];
    return true;
}

size_t demangle_process_find(struct demangle_process *process, struct ttd_string name, char *text,
                             size_t limit)
{
    size_t size = 0;
    if (process->time >= DEMANGLE_TOTAL_TIME || (!process->id && !demangle_process_start(process)))
        return 0;
    if (!demangle_process_ask(process, name, text, limit, &size)) {
        demangle_process_end(process);
        process->failures++;
        return 0;
    }
    return size;
}
