/* SPDX-License-Identifier: MIT */
/* Handles signals on signal stacks, or where there is none, as the argument names; its status is 3.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 3, STACK_SIZE = 64 * 1024, NEAR = 1 << 20 };

static char signal_stack[STACK_SIZE];
static const char *main_stack;

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(EXIT_FAILURE);
}

/* Only threads that have called the heap are known. */
static void allocate(void)
{
    char *volatile block = malloc(10);
    free(block);
}

static void say_where(int number)
{
    char here;
    (void)number;
    say(&here >= signal_stack && &here < signal_stack + STACK_SIZE ? "on the signal stack\n"
        : llabs(&here - main_stack) < NEAR                         ? "on the stack\n"
                                                                   : "elsewhere\n");
}

/* A handler for which there is no signal stack at first. */
static void handle_on_stack(void)
{
    stack_t now;
    char here;
    main_stack = &here;
    struct sigaction action = {.sa_handler = say_where, .sa_flags = SA_ONSTACK};
    sigaltstack(NULL, &now);
    printf("stack: %d %p\n", now.ss_flags, now.ss_sp);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &action);
    printf("flags: %d\n", (action.sa_flags & SA_ONSTACK) != 0);
    fflush(stdout);
    raise(SIGUSR1);
    sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = STACK_SIZE}, &now);
    printf("stack before: %d %p\n", now.ss_flags, now.ss_sp);
    fflush(stdout);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &action);
    printf("flags: %d\n", (action.sa_flags & SA_ONSTACK) != 0);
}

static void *handle_on_stack_in_thread(void *unused)
{
    allocate();
    handle_on_stack();
    return unused;
}

/* A handler that needs most of a signal stack as large as the program's. */
static void use_stack(int number)
{
    volatile char used[STACK_SIZE / 4 * 3];
    (void)number;
    for (size_t i = sizeof used; i-- > 0;)
        used[i] = 0;
    say("handled\n");
}

static void *handle_later(void *barrier)
{
    allocate();
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    raise(SIGUSR1);
    return NULL;
}

/* A thread without a signal stack, which has called the heap before the first thread has one. */
static void handle_beside_stack(void)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, handle_later, &barrier);
    pthread_barrier_wait(&barrier);
    sigaltstack(&(stack_t){.ss_sp = signal_stack, .ss_size = STACK_SIZE}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = use_stack, .sa_flags = SA_ONSTACK}, NULL);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "stack") == 0)
        handle_on_stack();
    if (strcmp(argv[1], "beside stack") == 0)
        handle_beside_stack();
    if (strcmp(argv[1], "thread stack") == 0) {
        pthread_create(&thread, NULL, handle_on_stack_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    return STATUS;
}
