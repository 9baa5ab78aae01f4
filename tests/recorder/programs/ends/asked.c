/* SPDX-License-Identifier: MIT */
/*
 * Dies of a signal that asks it to end, in the way that the first argument names; the second one is
 * the signal's number. Its status is 3 if it does not die.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS = 3, SIGNALS = 64, LOST = 100 };

static void *volatile held;

__attribute__((noinline)) static void lose(void)
{
    void *volatile lost = malloc(LOST);
    lost = lost ? NULL : held;
}

/* Leaves nothing of it on the stack. */
__attribute__((noinline)) static void wipe(void)
{
    volatile char room[8192];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
}

static void handle(int number)
{
    (void)number;
}

static void print_action(int number)
{
    struct sigaction now = {0};
    if (sigaction(number, NULL, &now) == 0)
        printf(" %d %x %d", now.sa_handler == SIG_DFL, (unsigned)now.sa_flags,
               sigismember(&now.sa_mask, SIGUSR1));
}

/* Prints the actions of all signals as the program sees them, before and after it sets them. */
static void print_actions(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    struct sigaction before = {0};
    sigaddset(&standard.sa_mask, SIGUSR1);
    for (int number = 1; number <= SIGNALS; number++) {
        printf("%d:", number);
        print_action(number);
        printf(" %d", sigaction(number, &standard, &before));
        printf(" %d %x", before.sa_handler == SIG_DFL, (unsigned)before.sa_flags);
        print_action(number);
        printf(" %d", signal(number, SIG_DFL) == SIG_DFL);
        print_action(number);
        printf(" %d", signal(number, handle) == SIG_DFL);
        printf(" %d", sigaction(number, &standard, &before));
        printf(" %d", before.sa_handler == handle);
        print_action(number);
        printf("\n");
    }
}

/* A signal that is blocked, but for the moment of a call that waits for it. */
static void wait_for(int number)
{
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, number);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(number);
    sigsuspend(&none);
}

static void take_blocked(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(number);
    printf("took %d\n", sigwaitinfo(&set, NULL));
}

static void write_to_nobody(void)
{
    int ends[2];
    if (pipe(ends) == 0 && close(ends[0]) == 0)
        write(ends[1], "x", 1);
}

static void time_out(int timer)
{
    const struct itimerval soon = {.it_value.tv_usec = 1000};
    setitimer((__itimer_which_t)timer, &soon, NULL);
    for (;;)
        (void)getppid();
}

/* Ends the process, when it is told to. */
static void *end_too(void *set)
{
    int number;
    sigwait(set, &number);
    exit(STATUS);
}

/* A second thread ends the process while the first one dies of the signal. */
static void die_beside_exit(int number)
{
    pthread_t thread;
    static sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, end_too, &set);
    raise(number);
}

static void run(const char *way, int number)
{
    if (strcmp(way, "raise") == 0)
        raise(number);
    if (strcmp(way, "kill") == 0)
        kill(getpid(), number);
    if (strcmp(way, "wait") == 0)
        wait_for(number);
    if (strcmp(way, "take") == 0)
        take_blocked(number);
    if (strcmp(way, "pipe") == 0)
        write_to_nobody();
    if (strcmp(way, "timer") == 0)
        time_out(number);
    if (strcmp(way, "beside exit") == 0)
        die_beside_exit(number);
    if (strcmp(way, "forever") == 0)
        for (puts("ready"), fflush(stdout);;)
            pause();
    if (strcmp(way, "handled") == 0) {
        signal(number, handle);
        raise(number);
    }
    if (strcmp(way, "reset") == 0) {
        signal(number, handle);
        signal(number, SIG_DFL);
        raise(number);
    }
    if (strcmp(way, "system call") == 0)
        syscall(SYS_exit_group, STATUS);
    if (strcmp(way, "no new privileges") == 0)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* The child of a vfork, which shares the memory. */
static void vfork_and_die(int number)
{
    int status = 0;
    if (vfork() == 0) {
        raise(number);
        _exit(STATUS);
    }
    wait(&status);
    printf("%d\n", status);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return EXIT_FAILURE;
    int number = atoi(argv[2]);
    held = malloc(1);
    lose();
    wipe();
    if (strcmp(argv[1], "actions") == 0)
        print_actions();
    else if (strcmp(argv[1], "vfork") == 0)
        vfork_and_die(number);
    else
        run(argv[1], number);
    return STATUS;
}
