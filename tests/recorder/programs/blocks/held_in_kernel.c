/* SPDX-License-Identifier: MIT */
/* Holds three blocks only by the data of a file that epoll waits for, and two by those of timers; a
 * sixth was the data of a file that is closed. With an argument the main thread ends first; with
 * "wait", the other thread says so, and ends the program once it has read a line. With "anew" or
 * "many", the main thread does not end: it moves a seventh block from one file of epoll to the next
 * one, with 400 files behind it, or 1,500. With "stay", the main thread waits with 1,500 files.
 * With "apart" or "apart-many", two other threads have files of their own and wait; each holds a
 * block so, and a table has 30 files, or 3,000. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int add(int waiting, size_t size)
{
    int file = eventfd(0, 0);
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = malloc(size)}};
    epoll_ctl(waiting, EPOLL_CTL_ADD, file, &event);
    return file;
}

static void set_timer(size_t size)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR1,
                             .sigev_value = {.sival_ptr = malloc(size)}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static void __attribute__((noinline)) hold(void)
{
    int waiting = epoll_create1(0);
    add(waiting, 301);
    add(waiting, 302);
    add(epoll_create1(0), 303);
    set_timer(304);
    set_timer(305);
    close(add(waiting, 306));
}

static void __attribute__((noinline)) clear_stack(void)
{
    char bytes[8192];
    memset(bytes, 0, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

static bool is_to_wait, moves, stays;
static int file_count = 400;
static volatile bool is_moving;
static volatile uint64_t hidden; /* the address of the seventh block, inverted */

static void __attribute__((noinline)) add_hidden(int waiting, int target)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = ~hidden}};
    epoll_ctl(waiting, EPOLL_CTL_ADD, target, &event);
}

/* The file that holds the block is newer than any list of the files. */
static _Noreturn void move(void)
{
    int target = eventfd(0, 0), waiting = -1, first = dup(target), second = dup(target);
    hidden = ~(uint64_t)(uintptr_t)malloc(307);
    for (int i = 0; i < file_count; i++)
        (void)!dup(target);
    close(first);
    close(second);
    for (;;) {
        int before = waiting;
        waiting = epoll_create1(0);
        add_hidden(waiting, target);
        clear_stack();
        if (before >= 0)
            close(before);
        is_moving = true;
        usleep(50);
    }
}

static void *end_later(void *first)
{
    if (!moves && !stays)
        pthread_join(*(pthread_t *)first, NULL);
    while (moves && !is_moving)
        usleep(1000);
    if (is_to_wait || moves) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    exit(0);
}

static _Atomic int apart_count;

static void *hold_apart(void *argument)
{
    if (unshare(CLONE_FILES) != 0)
        abort();
    add(epoll_create1(0), 308 + (size_t)apart_count);
    clear_stack();
    apart_count++;
    pause();
    return argument;
}

static void end_beside(int files)
{
    pthread_t threads[2];
    struct rlimit limit = {4096, 4096};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        abort();
    for (int i = 0; i < files; i++)
        if (dup(STDIN_FILENO) < 0)
            abort();
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, hold_apart, NULL);
        while (apart_count == i)
            usleep(1000);
    }
    exit(0);
}

int main(int count, char **arguments)
{
    static pthread_t first, second;
    hold();
    clear_stack();
    if (count == 1)
        return 0;
    if (strncmp(arguments[1], "apart", 5) == 0)
        end_beside(strcmp(arguments[1], "apart") == 0 ? 30 : 3000);
    stays = strcmp(arguments[1], "stay") == 0;
    for (int i = 0; stays && i < 1500; i++)
        if (dup(STDIN_FILENO) < 0)
            abort();
    is_to_wait = stays || strcmp(arguments[1], "wait") == 0;
    if (strcmp(arguments[1], "many") == 0)
        file_count = 1500;
    moves = file_count != 400 || strcmp(arguments[1], "anew") == 0;
    first = pthread_self();
    pthread_create(&second, NULL, end_later, &first);
    if (moves)
        move();
    if (stays)
        pause();
    pthread_exit(NULL);
}
