/* SPDX-License-Identifier: MIT */
/* How a program ends, and what its frames hold then. */
#include <err.h>
#include <error.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

/* Also in the C library, without a declaration. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *module);

static void exit_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    exit(!held);
}

CASE(exit_deep)
{
    call_deep(20, exit_holding, NULL);
}

static void leave_early_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    _exit(!held);
}

CASE(leave_early_deep)
{
    call_deep(20, leave_early_holding, NULL);
}

static void leave_at_once_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    _Exit(!held);
}

CASE(leave_at_once_deep)
{
    call_deep(20, leave_at_once_holding, NULL);
}

static void exit_quickly_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    quick_exit(!held);
}

CASE(exit_quickly_deep)
{
    call_deep(20, exit_quickly_holding, NULL);
}

static void warn_and_exit_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    errx(!held, "the end");
}

CASE(errx_deep)
{
    call_deep(20, warn_and_exit_holding, NULL);
}

static void report_and_exit_holding(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    error(1 + (!held), 0, "the end");
    lose(held); /* no tail call, which would leave the frame first */
}

CASE(error_deep)
{
    call_deep(20, report_and_exit_holding, NULL);
}

/* Fills a frame that is dead when the program ends. */
static void NOINLINE leave_stale(void *argument)
{
    void *volatile held[200];

    (void)argument;
    for (int i = 0; i < 200; i++)
        held[i] = block(40);
    __asm__ volatile("" : : "r"(held) : "memory");
}

CASE(exit_above_stale_frame)
{
    leave_stale(NULL);
    exit(0);
}

CASE(leave_early_above_stale_frame)
{
    leave_stale(NULL);
    _exit(0);
}

static void NOINLINE exit_now(void)
{
    exit(0);
}

/* The blocks are in the part of the stack that only dead frames have used. */
CASE(exit_far_above_stale_frame)
{
    call_deep(200, leave_stale, NULL);
    exit_now();
}

static void exit_handler(int number)
{
    exit(number == 0);
}

CASE(exit_in_handler)
{
    void *volatile held = block(40);

    signal(SIGUSR1, exit_handler);
    raise(SIGUSR1);
    kept[0] = held;
}

static void exit_in_exit(void)
{
    _exit(0);
}

CASE(leave_early_in_exit_handler)
{
    atexit(exit_in_exit);
    kept[0] = block(40);
    block(24);
}

static void release(void)
{
    free(kept[0]);
    kept[0] = NULL;
}

CASE(released_at_exit)
{
    atexit(release);
    kept[0] = block(40);
}

static void *owned;

static __attribute__((destructor)) void release_owned(void)
{
    free(owned);
}

CASE(released_by_destructor)
{
    owned = block(40);
}

CASE(not_released_when_leaving_early)
{
    void *memory = block(40);

    atexit(release);
    kept[0] = memory;
    _exit(0);
}

static void lose_and_keep(void)
{
    block(40);
    kept[0] = block(24);
}

CASE(acquired_at_exit)
{
    atexit(lose_and_keep);
}

static void cut(void)
{
    kept[0] = NULL;
}

CASE(lost_at_exit)
{
    atexit(cut);
    kept[0] = block(40);
}

CASE(lost_at_quick_exit)
{
    at_quick_exit(cut);
    kept[0] = block(40);
    quick_exit(0);
}

static void use(int status, void *argument)
{
    (void)status;
    (void)argument;
}

CASE(argument_of_on_exit)
{
    on_exit(use, block(40));
    _exit(0);
}

static void use_argument(void *argument)
{
    (void)argument;
}

CASE(argument_of_cxa_atexit)
{
    __cxa_atexit(use_argument, block(40), NULL);
    _exit(0);
}

CASE(released_by_on_exit)
{
    __cxa_atexit(free, block(40), NULL);
}

static void no_operation(void)
{
}

CASE(many_exit_handlers)
{
    for (int i = 0; i < 100; i++)
        atexit(no_operation);
    _exit(0);
}

/* A frame that is alive when its pointer is overwritten. */
CASE(exit_after_overwriting)
{
    void *volatile held = block(40);

    clear_stack();
    held = NULL;
    exit(held != NULL);
}

static void NOINLINE fork_and_wait(void (*in_child)(void))
{
    pid_t child = fork();

    if (child == 0) {
        in_child();
        clear_stack();
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void in_child(void)
{
    block(40);
    kept[1] = block(24);
    kept[0] = NULL;
}

/* The child cuts what the parent keeps, and loses and keeps blocks of its own. */
CASE(forked)
{
    kept[0] = block(100);
    fork_and_wait(in_child);
}

static void keep_in_block(void)
{
    put(kept[0], 48, block(40));
    kept[1] = block(100);
    free(kept[1]);
    kept[1] = NULL;
}

/* The child puts a pointer into a block of the parent's. */
CASE(forked_holder)
{
    kept[0] = block(100);
    fork_and_wait(keep_in_block);
}

/* The child puts it into a block of its own, which it releases. */
static void keep_in_own_block(void)
{
    void *holder = block(400);

    put(holder, 128, block(40));
    free(holder);
}

CASE(forked_released_holder)
{
    kept[0] = block(100);
    free(block(400));
    fork_and_wait(keep_in_own_block);
}

/* A lost block and a kept one, for a program that a signal kills. */
static void NOINLINE leave_lost_and_kept(void)
{
    kept[0] = block(24);
    block(40);
}

CASE(aborted)
{
    leave_lost_and_kept();
    clear_stack();
    abort();
}

CASE(faulted)
{
    leave_lost_and_kept();
    clear_stack();
    *(volatile int *)kept[1] = 0;
}
