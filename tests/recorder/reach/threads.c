/* SPDX-License-Identifier: MIT */
/* Threads: what they hold while they run, when they have ended, and when one of them ends all. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "case.h"

static void do_nothing(void *argument)
{
    (void)argument;
}

CASE(running_nothing)
{
    run_thread(do_nothing, NULL);
}

static void *run_nothing(void *argument)
{
    return argument;
}

/* Runs a thread to its end, and drops its result. */
static void run_and_join(void *(*run)(void *))
{
    pthread_t thread;

    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
}

CASE(joined_nothing)
{
    run_and_join(run_nothing);
}

static void lose_block(void *argument)
{
    (void)argument;
    block(40);
}

CASE(running_lost)
{
    run_thread(lose_block, NULL);
}

static __thread void *local;

static void keep_local(void *argument)
{
    (void)argument;
    local = block(40);
    lose(&local);
}

CASE(running_thread_local)
{
    run_thread(keep_local, NULL);
}

static pthread_key_t key;

static void keep_specific(void *argument)
{
    (void)argument;
    pthread_setspecific(key, block(40));
}

CASE(running_specific)
{
    pthread_key_create(&key, NULL);
    run_thread(keep_specific, NULL);
}

static void *hold(void *ready)
{
    void *volatile held = block(40);

    pthread_barrier_wait(ready);
    for (;;)
        pause();
    return held;
}

static void start_and_wait(void *(*function)(void *))
{
    static pthread_barrier_t ready;
    pthread_t thread;

    pthread_barrier_init(&ready, NULL, 2);
    pthread_create(&thread, NULL, function, &ready);
    pthread_barrier_wait(&ready);
}

CASE(running_stack)
{
    start_and_wait(hold);
}

static void *hold_in_many(void *ready)
{
    void *volatile held = block(40);

    pthread_barrier_wait(ready);
    for (;;)
        pause();
    return held;
}

CASE(running_ten_stacks)
{
    static pthread_barrier_t ready;
    pthread_t threads[10];

    pthread_barrier_init(&ready, NULL, 11);
    for (int i = 0; i < 10; i++)
        pthread_create(&threads[i], NULL, hold_in_many, &ready);
    pthread_barrier_wait(&ready);
}

CASE(running_ten_nothing)
{
    for (int i = 0; i < 10; i++)
        run_thread(do_nothing, NULL);
}

static pthread_barrier_t argument_ready;

static void *forget_argument(void *argument)
{
    (void)argument;
    clear_stack();
    pthread_barrier_wait(&argument_ready);
    for (;;)
        pause();
    return NULL;
}

/* The thread does not keep its argument, but the C library's structure of the thread does. */
CASE(running_argument)
{
    pthread_t thread;

    pthread_barrier_init(&argument_ready, NULL, 2);
    pthread_create(&thread, NULL, forget_argument, block(40));
    pthread_barrier_wait(&argument_ready);
}

static void *hold_and_return(void *argument)
{
    void *volatile held = block(40);

    (void)argument;
    return !held ? NULL : argument;
}

CASE(joined_stack)
{
    run_and_join(hold_and_return);
}

static void *hold_much_and_return(void *argument)
{
    void *volatile held[512];

    for (int i = 0; i < 512; i++)
        held[i] = block(40);
    (void)argument;
    return !held[3] ? NULL : argument;
}

CASE(joined_stack_of_many)
{
    run_and_join(hold_much_and_return);
}

static void *keep_local_and_return(void *argument)
{
    keep_local(argument);
    return NULL;
}

CASE(joined_thread_local)
{
    run_and_join(keep_local_and_return);
}

static void *keep_specific_and_return(void *argument)
{
    keep_specific(argument);
    return NULL;
}

CASE(joined_specific)
{
    pthread_key_create(&key, NULL);
    run_and_join(keep_specific_and_return);
}

CASE(joined_specific_destroyed)
{
    pthread_key_create(&key, free);
    run_and_join(keep_specific_and_return);
}

static void *give(void *argument)
{
    (void)argument;
    return block(40);
}

CASE(joined_result_kept)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, give, NULL);
    pthread_join(thread, &result);
    kept[0] = result;
}

CASE(joined_result_lost)
{
    run_and_join(give);
}

static volatile pid_t ending;

static void *give_later(void *argument)
{
    (void)argument;
    ending = (pid_t)syscall(SYS_gettid);
    return block(40);
}

static void wait_for_end(void)
{
    while (ending == 0 || syscall(SYS_tgkill, getpid(), ending, 0) == 0)
        usleep(1000);
}

/* The thread has ended, and whoever joins it would still get the block. */
CASE(ended_result_not_joined)
{
    static pthread_t thread;

    pthread_create(&thread, NULL, give_later, NULL);
    wait_for_end();
}

static void *hold_detached(void *argument)
{
    void *volatile held = block(40);

    ending = (pid_t)syscall(SYS_gettid);
    return !held ? NULL : argument;
}

CASE(detached_stack)
{
    pthread_t thread;

    pthread_create(&thread, NULL, hold_detached, NULL);
    pthread_detach(thread);
    wait_for_end();
}

static void *exit_here(void *argument)
{
    (void)argument;
    exit(0);
}

/* main waits with the block in its frame. */
CASE(exit_in_thread)
{
    void *volatile held = block(40);
    pthread_t thread;

    pthread_create(&thread, NULL, exit_here, NULL);
    pthread_join(thread, NULL);
    kept[0] = held;
}

static void *hold_and_exit(void *argument)
{
    void *volatile held = block(40);

    exit(held == argument);
}

CASE(exit_in_thread_that_holds)
{
    run_and_join(hold_and_exit);
}

static pthread_t main_thread;

static void *exit_after_main(void *argument)
{
    (void)argument;
    pthread_join(main_thread, NULL);
    exit(0);
}

static void NOINLINE lose_and_keep(void)
{
    block(40);
    kept[0] = block(24);
}

CASE(exit_after_main_ended)
{
    pthread_t thread;

    main_thread = pthread_self();
    lose_and_keep();
    clear_stack();
    pthread_create(&thread, NULL, exit_after_main, NULL);
    pthread_exit(NULL);
}

CASE(exit_after_main_nothing)
{
    pthread_t thread;

    main_thread = pthread_self();
    pthread_create(&thread, NULL, exit_after_main, NULL);
    pthread_exit(NULL);
}

static void *return_after_main(void *argument)
{
    (void)argument;
    pthread_join(main_thread, NULL);
    return NULL;
}

/* The last thread to end ends the process. */
CASE(last_thread_returns)
{
    pthread_t thread;

    main_thread = pthread_self();
    lose_and_keep();
    clear_stack();
    pthread_create(&thread, NULL, return_after_main, NULL);
    pthread_exit(NULL);
}

static void *lose_and_return(void *argument)
{
    for (int i = 0; i < 50; i++)
        block(40);
    return argument;
}

/* Blocks of arenas other than the main one. */
CASE(many_threads_lost)
{
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, lose_and_return, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static void *list_and_return(void *argument)
{
    void *head = NULL;

    for (int i = 0; i < 50; i++) {
        void *node = block(48);

        put(node, 8, head);
        head = node;
    }
    return !argument ? head : NULL;
}

CASE(list_of_thread_kept)
{
    pthread_t thread;
    void *head;

    pthread_create(&thread, NULL, list_and_return, NULL);
    pthread_join(thread, &head);
    kept[0] = head;
}

CASE(list_of_thread_lost)
{
    run_and_join(list_and_return);
}

/* The library's structures have other numbers of these threads than the system has. */
static void *fork_past_library(void *argument)
{
    long child = syscall(SYS_fork);

    if (child == 0) {
        void *volatile held = block(40);

        (void)held;
        _exit(0);
    }
    waitpid((pid_t)child, NULL, 0);
    return argument;
}

CASE(forked_past_library)
{
    run_and_join(fork_past_library);
}

CASE(running_stack_in_namespace)
{
    if (unshare(CLONE_NEWPID) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        start_and_wait(hold);
        exit(0);
    }
    waitpid(child, NULL, 0);
}
