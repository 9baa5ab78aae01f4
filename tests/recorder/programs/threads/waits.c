/* SPDX-License-Identifier: MIT */
/* Waits for what never comes, in every way that has a time limit and that a stop may interrupt, all
 * at once. Prints how each wait has ended, and whether that was too early. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 400 };

static struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000};
static char buffer[100];

/* Returns a socket that waits no longer than the limit. */
static int limited(int descriptor)
{
    struct timeval time = {.tv_usec = LIMIT_MS * 1000};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    return descriptor;
}

static int stream(void)
{
    int ends[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? limited(ends[0]) : -1;
}

static int full_stream(void)
{
    int end = stream();
    while (send(end, buffer, sizeof buffer, MSG_DONTWAIT) > 0)
        ;
    return end;
}

static int listener(void)
{
    int end = socket(AF_INET, SOCK_STREAM, 0);
    listen(end, 1);
    return limited(end);
}

static long wait_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll_create1(0), &event, 1, LIMIT_MS);
}

static long wait_epoll_time(void)
{
    struct epoll_event event;
    return syscall(SYS_epoll_pwait2, epoll_create1(0), &event, 1, &limit, NULL, 8);
}

static long wait_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &limit);
}

static long wait_semaphore(void)
{
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {.sem_op = -1};
    long result = semtimedop(set, &take, 1, &limit);
    int error = errno;
    semctl(set, 0, IPC_RMID);
    errno = error;
    return result;
}

static long wait_ring(void)
{
    struct io_uring_params parameters = {0};
    struct io_uring_getevents_arg argument = {.sigmask_sz = 8, .ts = (uintptr_t)&limit};
    long ring = syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) { /* the system has none */
        clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL);
        errno = ETIME;
        return -1;
    }
    return syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                   &argument, sizeof argument);
}

static long wait_read(void)
{
    return read(stream(), buffer, 1);
}

static long wait_receive(void)
{
    return recv(stream(), buffer, 1, 0);
}

static long wait_accept(void)
{
    return accept(listener(), NULL, NULL);
}

static long wait_send(void)
{
    return send(full_stream(), buffer, sizeof buffer, 0);
}

static long wait_write(void)
{
    return write(full_stream(), buffer, sizeof buffer);
}

static const struct wait {
    const char *name;
    long (*run)(void);
} waits[] = {
    {"epoll_wait", wait_epoll},    {"epoll_pwait2", wait_epoll_time},
    {"sigtimedwait", wait_signal}, {"semtimedop", wait_semaphore},
    {"io_uring_enter", wait_ring}, {"read", wait_read},
    {"recv", wait_receive},        {"accept", wait_accept},
    {"send", wait_send},           {"write", wait_write},
};

enum { WAITS = sizeof waits / sizeof *waits };

static struct result {
    long value;
    int error;
    double seconds;
} results[WAITS];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *run(void *argument)
{
    struct result *result = argument;
    double begin = now();
    errno = 0;
    result->value = waits[result - results].run();
    result->error = errno;
    result->seconds = now() - begin;
    return NULL;
}

int main(void)
{
    pthread_t threads[WAITS];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < WAITS; i++)
        pthread_create(&threads[i], NULL, run, &results[i]);
    for (int i = 0; i < WAITS; i++) {
        pthread_join(threads[i], NULL);
        printf("%s: %ld %s%s\n", waits[i].name, results[i].value,
               results[i].value < 0 ? strerrorname_np(results[i].error) : "",
               results[i].seconds < LIMIT_MS * 0.999e-3 ? " early" : "");
    }
    return 0;
}
