/* SPDX-License-Identifier: MIT */
/* Allocates in signal handlers, which interrupt its own calls at any point: in one thread, or with
   "threads" in two; with "contexts" on a stack of the program's own, and in handlers on another one
   above it. Prints how often each of malloc, realloc and free was called. With "jump" the
   handlers jump out of what they interrupt; then it keeps 100 blocks of 70 bytes. With "between"
   they come when calloc and realloc have their blocks, and leave one of 90 bytes each. With "last"
   MICROSECONDS one comes while the program ends. With "handed" another thread releases what one
   allocates, and the interrupted call gets that block. */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static _Atomic unsigned long mallocs, reallocs, frees, interruptions;
static atomic_bool has_ended;
static void *volatile last;

__attribute__((noinline)) static void use_heap(int depth)
{
    if (depth > 0) {
        use_heap(depth - 1);
        __asm__ volatile("");
        return;
    }
    void *block = malloc(40), *other = malloc(50);
    block = realloc(block, 60);
    last = block;
    free(other);
    free(block);
    mallocs += 2;
    reallocs += 1;
    frees += 2;
}

/* Once, soon, and not again before it has been handled: a busy machine would do nothing else. */
static void interrupt(void)
{
    static const struct itimerval timer = {{0, 0}, {0, 30}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void handler(int number)
{
    interruptions++;
    use_heap(number % 7);
    if (number == SIGALRM) {
        raise(SIGUSR1);
        if (!has_ended)
            interrupt();
    }
}

static sigjmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static void keep_blocks(int depth)
{
    volatile char room[64];
    room[depth % 64] = 0;
    if (depth > 0)
        keep_blocks(depth - 1);
    last = malloc(70 + (size_t)room[depth % 64]);
}

static int jump_again_and_again(void)
{
    static volatile int jumps;
    static const struct itimerval none;
    signal(SIGALRM, jump);
    sigsetjmp(back, 1);
    if (jumps++ < 300)
        for (interrupt();;)
            use_heap(jumps % 30);
    setitimer(ITIMER_REAL, &none, NULL);
    keep_blocks(99);
    return 0;
}

extern void (*volatile slots_between)(void); /* the allocator's */

static void keep_one(int number)
{
    (void)number;
    void *first = malloc(80), *second = calloc(1, 80);
    last = malloc(90);
    free(second);
    free(first);
}

static void raise_signal(void)
{
    raise(SIGUSR1);
}

/* Keeps a block of 100 bytes, and one of 110. */
static int interrupt_between(void)
{
    signal(SIGUSR1, keep_one);
    slots_between = raise_signal;
    last = calloc(1, 100);
    last = malloc(100);
    slots_between = raise_signal;
    last = realloc(last, 110);
    return 0;
}

static void *_Atomic handed;

static void *release_handed(void *unused)
{
    void *block;
    while (!(block = handed))
        ;
    free(block);
    handed = NULL;
    return unused;
}

static void hand_over(int number)
{
    void *block = malloc(80);
    (void)number;
    last = malloc(90);
    for (handed = block; handed;)
        ;
}

static int interrupt_before(void)
{
    pthread_t threads[2];
    signal(SIGUSR1, hand_over);
    pthread_create(&threads[0], NULL, release_handed, NULL);
    slots_between = raise_signal;
    last = aligned_alloc(64, 128);
    pthread_join(threads[0], NULL);
    pthread_create(&threads[1], NULL, release_handed, NULL);
    slots_between = raise_signal;
    last = pvalloc(4096);
    pthread_join(threads[1], NULL);
    return 0;
}

static int interrupt_the_end(int microseconds)
{
    struct itimerval timer = {{0, 0}, {0, microseconds}};
    last = malloc(100);
    signal(SIGALRM, keep_one);
    setitimer(ITIMER_REAL, &timer, NULL);
    return 0;
}

static void *work(void *unused)
{
    for (int i = 0; i < 3000 || (interruptions < 500 && i < 200000); i++)
        use_heap(i % 30);
    return unused;
}

static void work_in_context(void)
{
    work(NULL);
}

static void switch_context(void)
{
    static char stacks[2][256 * 1024];
    static ucontext_t own, other;
    stack_t alternate = {.ss_sp = stacks[1], .ss_size = sizeof stacks[1]};
    sigaltstack(&alternate, NULL);
    getcontext(&other);
    other.uc_stack = (stack_t){.ss_sp = stacks[0], .ss_size = sizeof stacks[0]};
    other.uc_link = &own;
    makecontext(&other, work_in_context, 0);
    swapcontext(&own, &other);
}

int main(int count, char **arguments)
{
    struct sigaction action = {.sa_handler = handler,
                               .sa_flags = SA_NODEFER | SA_RESTART | SA_ONSTACK};
    static const struct itimerval none;
    pthread_t thread;
    if (count > 1 && strcmp(arguments[1], "jump") == 0)
        return jump_again_and_again();
    if (count > 1 && strcmp(arguments[1], "between") == 0)
        return interrupt_between();
    if (count > 1 && strcmp(arguments[1], "handed") == 0)
        return interrupt_before();
    if (count > 2 && strcmp(arguments[1], "last") == 0)
        return interrupt_the_end(atoi(arguments[2]));
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
    interrupt();
    if (count > 1 && strcmp(arguments[1], "contexts") == 0) {
        switch_context();
    } else if (count > 1) {
        pthread_create(&thread, NULL, work, NULL);
        work(NULL);
        pthread_join(thread, NULL);
    } else {
        work(NULL);
    }
    has_ended = true; /* One that waits now is handled when setitimer returns. */
    setitimer(ITIMER_REAL, &none, NULL);
    dprintf(1, "%lu %lu %lu %lu\n", mallocs, reallocs, frees, interruptions);
    return 0;
}
