/* SPDX-License-Identifier: MIT */
/* Dies of a signal in the way that the argument names, or handles it and ends with status 3. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOWHERE = 0x10, STATUS = 3, DEPTH = 1 << 30, ENDED = 20 };

static struct sigaction before;

__attribute__((noinline)) static void fail(void)
{
    *(volatile int *)NOWHERE = 1;
}

typedef void function_type(void);
static char data[64];
static const long table[4] = {1, 2, 3, 4};

__attribute__((noinline)) static void jump_to(void *volatile address)
{
    ((function_type *)(uintptr_t)address)();
    __asm__ volatile("");
}

static void free_any(void *volatile address)
{
    free(address);
}

/* Only threads that have called the heap are known. */
static void allocate(void)
{
    char *volatile block = malloc(10);
    free(block);
}

static void *fail_in_thread(void *unused)
{
    fail();
    return unused;
}

static void *end(void *block)
{
    free(block);
    return NULL;
}

/* Two threads that fail at once. */
static void *fail_together(void *barrier)
{
    pthread_barrier_wait(barrier);
    fail();
    return NULL;
}

static void fail_in_two_threads(void)
{
    pthread_t threads[2];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, fail_together, &barrier);
    pthread_join(threads[0], NULL);
}

__attribute__((noinline)) static int overflow(int depth)
{
    volatile char room[256] = {(char)depth};
    return depth < DEPTH ? overflow(depth + 1) + room[0] : 0;
}

/* A thread without heap calls. */
static void *overflow_quietly(void *unused)
{
    overflow(0);
    return unused;
}

static void *overflow_in_thread(void *unused)
{
    allocate();
    overflow(0);
    return unused;
}

/* The child of a thread, in which others run. */
static void *overflow_in_child(void *unused)
{
    pthread_t thread;
    int status;
    allocate();
    if (fork() == 0) {
        pthread_create(&thread, NULL, overflow_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    wait(&status);
    exit(WTERMSIG(status) == SIGSEGV ? STATUS : EXIT_FAILURE);
    return unused;
}

static void *overflow_beside_ended(void *unused)
{
    pthread_t thread;
    for (int i = 0; i < ENDED; i++) {
        pthread_create(&thread, NULL, end, malloc(10));
        pthread_join(thread, NULL);
    }
    return overflow_in_thread(unused);
}

static void write_beyond_file(void)
{
    FILE *file = tmpfile();
    volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    page[0] = 1;
}

static void say(const char *what)
{
    write(STDOUT_FILENO, what, strlen(what));
}

static void handle(int number)
{
    (void)number;
    say("handled\n");
    _exit(STATUS);
}

/* Does what handlers that report a crash do: restores the earlier action, and lets the signal
 * happen again.
 */
static void handle_and_pass_on(int number)
{
    say("handled\n");
    sigaction(number, &before, NULL);
}

/* The handler of a server, which the system has reset. */
static void handle_and_raise(int number, siginfo_t *info, void *context)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    say(now.sa_handler == SIG_DFL && info->si_signo == number && context ? "handled\n" : "wrong\n");
    raise(number);
}

static void handle_and_raise_plain(int number)
{
    say("handled\n");
    raise(number);
}

/* Prints whether the program sees its own handler, and its flags. */
static void ask_once(int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    printf("%d %x\n", now.sa_sigaction == handle_and_raise, (unsigned)now.sa_flags);
    fflush(stdout);
}

static void handle_once(int number)
{
    struct sigaction action = {.sa_sigaction = handle_and_raise,
                               .sa_flags = (int)SA_RESETHAND | SA_SIGINFO};
    sigaction(number, &action, NULL);
    ask_once(number);
    printf("%d\n", signal(number, SIG_DFL) == (sighandler_t)(uintptr_t)handle_and_raise);
    sigaction(number, &action, NULL);
}

/* Sets the default action without the C library. */
static void set_default_by_call(int number)
{
    struct {
        uintptr_t handler;
        unsigned long flags;
        uintptr_t restorer;
        unsigned long mask;
    } action = {0}, earlier;
    signal(number, handle);
    long result = syscall(SYS_rt_sigaction, number, &action, &earlier, sizeof action.mask);
    printf("%ld %d\n", result, earlier.handler == (uintptr_t)handle);
    result = syscall(SYS_rt_sigaction, number, NULL, &earlier, sizeof action.mask);
    printf("%ld %d\n", result, earlier.handler == 0);
    result = syscall(SYS_rt_sigaction, 1000, NULL, &earlier, sizeof action.mask);
    printf("%ld\n", result);
    fflush(stdout);
}

/* Waits for a signal by a file, does what is to be done, and dies of it. */
static void read_and_raise(int number)
{
    struct signalfd_siginfo info = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int file = signalfd(-1, &set, 0);
    raise(number);
    read(file, &info, sizeof info);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), info.ssi_signo);
}

static const char *action_of(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL ? "default" : "other";
}

static void run(void *(*function)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

/* Prints the signals' actions as the program sees them. */
static void ask(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction now;
        sigaction(signals[i], NULL, &now);
        printf("%d: %s %x, ", signals[i], action_of(&now), (unsigned)now.sa_flags);
        printf("%d, ", signal(signals[i], SIG_IGN) == SIG_DFL);
        printf("%d, ", signal(signals[i], SIG_DFL) == SIG_IGN);
        printf("%d\n", sysv_signal(signals[i], handle) == SIG_DFL);
    }
}

/* Returns the address of a variable on the stack, which is there no more. */
__attribute__((noinline)) static char *leave_variable(void)
{
    char variable[1000];
    memset(variable, 1, sizeof variable);
    char *volatile left = variable + sizeof variable - 64 - (uintptr_t)variable % 16;
    return left;
}

/* Releases variables on the stack. The C library takes one that looks like a block of its own. */
__attribute__((noinline)) static void free_variable(const char *way)
{
    uint64_t variable[16] = {0};
    char *aligned = (char *)variable + 16 - (uintptr_t)variable % 16;
    if (strcmp(way, "free block on stack") == 0)
        ((volatile uint64_t *)aligned)[1] = 0x41;
    if (strcmp(way, "free left variable") == 0)
        aligned = leave_variable();
    free_any(strcmp(way, "free block on stack") == 0 ? aligned + 16 : aligned);
}

static bool is_way(const char *way, const char *name)
{
    return strcmp(way, name) == 0;
}

/* Reads, writes or runs what it must not. */
static void die_by_access(const char *way)
{
    if (is_way(way, "write"))
        fail();
    if (is_way(way, "jump"))
        jump_to(NULL);
    if (is_way(way, "wild jump"))
        jump_to((void *)0x123450);
    if (is_way(way, "jump to data"))
        jump_to(data);
    if (is_way(way, "read only"))
        *(volatile char *)(uintptr_t) "text" = 1;
    if (is_way(way, "read only table"))
        *(volatile long *)(uintptr_t)&table[1] = 1;
    if (is_way(way, "read only mapping"))
        *(volatile char *)mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
    if (is_way(way, "overflow"))
        exit(overflow(0));
    if (is_way(way, "file"))
        write_beyond_file();
}

/* Releases blocks that are none. */
static void die_by_free(const char *way)
{
    char *volatile block = malloc(10);
    if (is_way(way, "free data"))
        free_any(data + 16);
    if (is_way(way, "free variable") || is_way(way, "free left variable") ||
        is_way(way, "free block on stack"))
        free_variable(way);
    if (is_way(way, "free block on stack"))
        abort();
    if (is_way(way, "free")) {
        free(block);
        free(block);
    }
}

static void die_in_thread(const char *way)
{
    if (is_way(way, "thread"))
        run(fail_in_thread);
    if (is_way(way, "two threads"))
        fail_in_two_threads();
    if (is_way(way, "thread overflow"))
        run(overflow_in_thread);
    if (is_way(way, "quiet thread overflow"))
        run(overflow_quietly);
    if (is_way(way, "later thread overflow"))
        run(overflow_beside_ended);
    if (is_way(way, "child of thread"))
        run(overflow_in_child);
}

/* By an instruction, or by a signal that somebody sends. */
static void die_by_signal(const char *way)
{
    volatile int zero = 0;
    if (is_way(way, "abort"))
        abort();
    if (is_way(way, "divide"))
        exit(STATUS / zero);
    if (is_way(way, "instruction"))
        __builtin_trap();
    if (is_way(way, "trap"))
        __asm__ volatile("int3");
    if (is_way(way, "raise"))
        raise(SIGSEGV);
    if (is_way(way, "kill"))
        kill(getpid(), SIGBUS);
    if (is_way(way, "read"))
        read_and_raise(SIGTERM);
    if (is_way(way, "ignored")) {
        signal(SIGTRAP, SIG_IGN);
        raise(SIGTRAP);
    }
    if (is_way(way, "blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        fail();
    }
}

/* With an action of the program's own for the signal. */
static void die_with_action(const char *way)
{
    if (is_way(way, "own") || is_way(way, "reset"))
        signal(SIGSEGV, handle);
    if (is_way(way, "reset"))
        signal(SIGSEGV, SIG_DFL);
    if (is_way(way, "pass on"))
        sigaction(SIGSEGV, &(struct sigaction){.sa_handler = handle_and_pass_on}, &before);
    if (is_way(way, "own") || is_way(way, "reset") || is_way(way, "pass on"))
        fail();
    if (is_way(way, "once") || is_way(way, "once asked"))
        handle_once(way[4] == '\0' ? SIGSEGV : SIGTERM);
    if (is_way(way, "once by an older function"))
        sysv_signal(SIGSEGV, (sighandler_t)(uintptr_t)handle_and_raise_plain);
    if (is_way(way, "by a system call"))
        set_default_by_call(SIGSEGV);
    if (is_way(way, "once asked"))
        kill(getpid(), SIGTERM);
    if (strncmp(way, "once", 4) == 0 || is_way(way, "by a system call"))
        fail();
}

static void die(const char *way)
{
    /* Only threads that have called the heap are known. */
    die_by_free(way);
    die_by_access(way);
    die_in_thread(way);
    die_by_signal(way);
    die_with_action(way);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "child") == 0 && fork() == 0)
        die("write");
    if (strcmp(argv[1], "vfork") == 0 && vfork() == 0)
        abort();
    int status = 0;
    if (strcmp(argv[1], "child") == 0 || strcmp(argv[1], "vfork") == 0)
        wait(&status);
    printf("%d\n", status);
    if (strcmp(argv[1], "ask") == 0)
        ask();
    else
        die(argv[1]);
    return STATUS;
}
