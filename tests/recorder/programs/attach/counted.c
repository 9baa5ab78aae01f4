/* SPDX-License-Identifier: MIT */
/*
 * Makes calls when it is told to, in several threads, and counts them itself. Commands on its
 * input: "calls N": N rounds in each thread; "keep N": N blocks of 100 bytes in a list; "lose N":
 * N blocks of 300 bytes without a reference; "fork", "wait", "spawn", "vfork": waits for a child
 * that never ends, "confine"; "lock": as if a thread were at work on its arena from then on;
 * "leave": its first thread ends, and another one serves; "jump": leaves a call by a jump, and goes
 * on deeper in the stack; "signals": which of the usual signals have the default action; "exit",
 * "abort", "crash", "exec", "fail". Each answer is a line. "hold N":
 * N blocks of 300 bytes in a list of others. "speak": asks the live API for a client, unless it has
 * one, and for an event; answers with whether it has one, whether that is open, whether the event
 * was added, and calls until the throttle of the thread.
 */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttdtrace/live.h>

enum { THREADS = 3 };

static struct kept {
    struct kept *next;
    char text[92];
} * kept;
static pthread_barrier_t begin, end;
static long rounds;
static pid_t child;
static atomic_ulong acquisitions, reallocations, releases;

/* Makes the same calls in each round, and looks after the contents of the blocks. */
static void make_calls(unsigned seed)
{
    for (long i = 0; i < rounds; i++, seed = seed * 1103515245 + 12345) {
        size_t size = seed / 65536 % 3000 + 1;
        char *first = malloc(size), *second = calloc(3, size), *third = NULL;
        void *volatile aligned = aligned_alloc(128, 1024);
        if (posix_memalign((void **)&third, 64, size) != 0 || second[size] != 0)
            abort();
        memset(first, (int)seed, size);
        first = realloc(first, 2 * size);
        for (size_t k = 0; k < size; k++)
            if (first[k] != (char)seed)
                abort();
        free(second);
        free(third);
        free(first);
        free(aligned);
        atomic_fetch_add(&acquisitions, 4);
        atomic_fetch_add(&reallocations, 1);
        atomic_fetch_add(&releases, 4);
    }
}

static _Noreturn void *allocate_and_wait(void *block)
{
    atomic_store((_Atomic(void *) *)block, malloc(1000));
    for (;;)
        pause();
}

/* Locks the arena of a thread: glibc's arenas begin with a mutex, their heaps with the arena. */
static void lock_arena(void)
{
    static _Atomic(void *) block;
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_and_wait, &block);
    while (!atomic_load(&block))
        usleep(1000);
    int **heap = (int **)((uintptr_t)atomic_load(&block) & -((uintptr_t)64 << 20));
    **heap = 1;
}

static void *run(void *number)
{
    for (;;) {
        pthread_barrier_wait(&begin);
        make_calls((unsigned)(size_t)number);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void keep(long count)
{
    for (; count > 0; count--) {
        struct kept *fresh = malloc(sizeof *fresh);
        fresh->next = kept;
        kept = fresh;
    }
}

/* Each block is held by a smaller one, and by nothing else. */
static void hold(long count)
{
    static struct holder {
        struct holder *next;
        void *held;
    } * holders;
    for (; count > 0; count--) {
        struct holder *fresh = malloc(sizeof *fresh);
        fresh->next = holders;
        fresh->held = calloc(1, 300);
        holders = fresh;
    }
}

static __attribute__((noinline)) void lose(long count)
{
    for (; count > 0; count--)
        memset(malloc(300), 0, 1);
}

/* Makes a child that allocates all the time, and says which. */
static void fork_child(void)
{
    child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (child == 0) {
        void *volatile block = malloc(50);
        free(block);
        usleep(1000);
    }
    printf("%d\n", (int)child);
}

/* Waits in the system for a child, which says its id. */
static void wait_in_vfork(void)
{
    child = vfork();
    if (child == 0) {
        char text[16];
        int size = snprintf(text, sizeof text, "%d\n", (int)getpid());
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (write(STDOUT_FILENO, text, (size_t)size) == size)
            pause();
        _exit(1);
    }
    puts("0");
}

static void wait_for_child(void)
{
    int status;
    waitpid(child, &status, 0);
    printf("%d\n", status);
}

static sigjmp_buf place;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(place, 1);
}

/* Has a call of free() die of a signal, and jumps out of its handler. */
static void leave_call(void)
{
    void *volatile nothing = (void *)0x20;
    signal(SIGSEGV, jump);
    signal(SIGABRT, jump);
    if (sigsetjmp(place, 1) == 0)
        free(nothing);
}

/* Counts the signals that have the default action, and those that get it anew. */
static void tell_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGSEGV, SIGABRT, SIGUSR1};
    int known = 0, set = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        sigaction(numbers[i], NULL, &before);
        known += before.sa_handler == SIG_DFL;
        signal(numbers[i], SIG_IGN);
        set += signal(numbers[i], SIG_DFL) == SIG_IGN && signal(numbers[i], SIG_DFL) == SIG_DFL;
    }
    printf("%d %d\n", known, set);
}

static void serve(void);

static void *serve_on(void *unused)
{
    serve();
    return unused;
}

/* Serves with the frames that were left on the stack above: as a local variable. */
static __attribute__((noinline)) void serve_below(void)
{
    char room[1 << 16];
    __asm__ volatile("" : : "r"(room) : "memory");
    serve();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void speak(void)
{
    static const struct ttd_live_guid guid = {
        {0x5e, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}};
    static struct ttd_live *client;
    uint64_t executed = 1, remaining = 1;
    if (!client)
        client = ttd_live_open(&guid, "opened", 6);
    int is_added = ttd_live_add_event(client, TTD_LIVE_THREAD, 0, "spoken", 6);
    ttd_live_throttle(client, &executed, &remaining);
    printf("%d %d %d %d\n", client != NULL, ttd_live_is_open(client), is_added, remaining != 0);
}

static void finish(const char *command)
{
    if (strncmp(command, "crash", 5) == 0)
        *(volatile int *)16 = 0;
    if (strncmp(command, "exit", 4) == 0)
        exit(3);
    if (strncmp(command, "abort", 5) == 0)
        abort();
    if (strncmp(command, "exec", 4) == 0)
        execl("/bin/cat", "cat", NULL);
    if (strncmp(command, "fail", 4) == 0)
        execl("/nothing", "nothing", NULL);
}

static void spawn_child(void)
{
    char name[] = "true";
    posix_spawn(&child, "/bin/true", NULL, NULL, (char *[]){name, NULL}, NULL);
    wait_for_child();
}

/* Carries out a command whose answer is another than the counts. */
static bool answer(const char *line)
{
    static const struct {
        const char *name;
        void (*execute)(void);
    } commands[] = {
        {"fork\n", fork_child},      {"spawn\n", spawn_child}, {"vfork\n", wait_in_vfork},
        {"signals\n", tell_signals}, {"speak\n", speak},       {"wait\n", wait_for_child},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(line, commands[i].name) == 0) {
            commands[i].execute();
            return true;
        }
    return false;
}

static void serve(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (answer(line))
            continue;
        if (sscanf(line, "calls %ld", &rounds) == 1) {
            pthread_barrier_wait(&begin);
            pthread_barrier_wait(&end);
        } else if (sscanf(line, "keep %ld", &rounds) == 1) {
            keep(rounds);
        } else if (sscanf(line, "hold %ld", &rounds) == 1) {
            hold(rounds);
        } else if (sscanf(line, "lose %ld", &rounds) == 1) {
            lose(rounds);
        } else if (strncmp(line, "lock", 4) == 0) {
            lock_arena();
        } else if (strncmp(line, "jump", 4) == 0) {
            leave_call();
            puts("0");
            serve_below();
            return;
        } else if (strncmp(line, "leave", 5) == 0) {
            puts("0");
            pthread_create(&(pthread_t){0}, NULL, serve_on, NULL);
            pthread_exit(NULL);
        } else if (strncmp(line, "confine", 7) == 0) {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        } else {
            finish(line);
        }
        printf("%lu %lu %lu\n", atomic_load(&acquisitions), atomic_load(&reallocations),
               atomic_load(&releases));
    }
}

int main(void)
{
    static char output[4096], input[4096];
    setvbuf(stdout, output, _IOLBF, sizeof output);
    setvbuf(stdin, input, _IOLBF, sizeof input);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&(pthread_t){0}, NULL, run, (void *)i);
    puts("ready");
    serve();
    return 0;
}
