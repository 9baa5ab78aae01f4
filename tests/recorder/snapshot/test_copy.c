/* SPDX-License-Identifier: MIT */
/* Copies of a live child, which must not notice them. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "preload/system/borrowed.h"
#include "snapshot/stop/borrow.h"
#include "snapshot/stop/copy.h"

enum { RUNNERS = 3, ROUNDS = 20, LIVES = 60 };

/* Words of the shared memory. */
enum {
    COUNTERS = 0,
    WRONG = 20,
    RESULTS = 30,
    CHILDREN = 40,
    SIGNALS = 41,
    PRIVATE = 42,
    MADE = 43
};

static volatile struct child_shared *child_shared;
static struct interrupted_calls interrupted;
static struct copy_history history;
static volatile uint64_t private_counter; /* in a page that the child has for itself */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Computes in registers of all kinds, and says when the result is wrong. */
static void compute_once(void)
{
    static uint64_t right;
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7;
    double x = 1;
    for (int i = 0; i < 1000; i++) {
        a += b, b += c, c += d, d += e, e += f, f += g, g += a;
        x *= 1.0009765625;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g));
    }
    uint64_t result = a ^ b ^ c ^ d ^ e ^ f ^ g ^ (uint64_t)(x * 1e9);
    if (right == 0)
        right = result;
    child_shared->values[WRONG] += result != right;
}

static void *compute(void *argument)
{
    while (!child_shared->may_go) {
        compute_once();
        ++child_shared->values[COUNTERS + *(int *)argument];
        private_counter++;
    }
    return NULL;
}

static void sleep_once(long ns)
{
    struct timespec begin, end, limit = {.tv_nsec = ns};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    child_shared->values[WRONG] += nanosleep(&limit, NULL) != 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long waited = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    child_shared->values[WRONG] += waited < ns;
}

/* The first thread, which is the one that copies: it sleeps, waits for nothing, and computes. */
static void work_on(void)
{
    while (!child_shared->may_go) {
        sleep_once(1000000);
        child_shared->values[WRONG] += poll(NULL, 0, 1) != 0;
        for (int i = 0; i < 2000 && !child_shared->may_go; i++)
            compute_once();
    }
}

static void *read_end(void *argument)
{
    char byte;
    child_shared->values[RESULTS] = (uint64_t)read(*(int *)argument, &byte, 1);
    return NULL;
}

static void note_signal(int number)
{
    (void)number;
    child_shared->values[SIGNALS]++;
}

static void run_threads(volatile struct child_shared *shared)
{
    pthread_t threads[RUNNERS + 1];
    int ends[2], numbers[RUNNERS];
    child_shared = shared;
    signal(SIGCHLD, note_signal);
    if (pipe(ends) != 0)
        _exit(1);
    shared->values[PRIVATE] = (uintptr_t)&private_counter;
    for (int i = 0; i < RUNNERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, compute, &numbers[i]);
    }
    pthread_create(&threads[RUNNERS], NULL, read_end, &ends[0]);
    for (int i = 0; i < RUNNERS; i++)
        while (shared->values[COUNTERS + i] == 0)
            pause_ms(1);
    shared->is_ready = 1;
    work_on();
    shared->values[CHILDREN] = waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD ? 0 : 1;
    close(ends[1]);
    for (int i = 0; i < RUNNERS + 1; i++)
        pthread_join(threads[i], NULL);
    _exit(shared->values[WRONG] == 0 && shared->values[RESULTS] == 0 ? 7 : 8);
}

/* Ends a child; it must not have noticed anything. */
static void check_unnoticed(struct child *child)
{
    int status = child_end(child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
    cr_assert_eq(child->shared->values[CHILDREN], 0);
    cr_assert_eq(child->shared->values[SIGNALS], 0);
    cr_assert_eq(child->shared->values[WRONG], 0);
}

static uint64_t read_word(uint32_t pid, uint64_t address)
{
    uint64_t word = 0;
    struct iovec here = {&word, sizeof word}, there = {(void *)(uintptr_t)address, sizeof word};
    cr_assert_eq(process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0), sizeof word);
    return word;
}

static bool stop_and_copy(const struct child *child, struct copy *copy, struct threads *threads)
{
    struct borrowed_code code;
    borrowed_publish(&code);
    threads_stop(threads, (uint32_t)child->pid, 0, (uint32_t)child->pid, &interrupted);
    cr_assert(threads->are_stopped);
    return copy_make(copy, threads, &code, &history);
}

static void end_copy(const struct child *child, struct copy *copy)
{
    struct borrowed_code code;
    borrowed_publish(&code);
    copy_end(copy, &code, &history, (uint32_t)child->pid, (uint32_t)child->pid, &interrupted);
    cr_assert(history.dead == 0 && !history.is_barred);
}

static size_t count_files(pid_t pid)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *files = opendir(path);
    cr_assert(files != NULL);
    for (const struct dirent *entry; (entry = readdir(files));)
        count += entry->d_name[0] != '.';
    closedir(files);
    return count;
}

/* If the process executes a program, its locks and files must not stay with the copy. */
Test(copy, has_no_files, .timeout = 60)
{
    struct child child = child_start(run_threads);
    struct threads threads;
    struct copy copy;
    cr_assert(stop_and_copy(&child, &copy, &threads));
    threads_release(&threads);
    cr_assert(count_files((pid_t)copy.pid) == 0);
    cr_assert(count_files(child.pid) > 0);
    end_copy(&child, &copy);
    check_unnoticed(&child);
}

/* A thread whose call takes longer than is waited for stops at its end, and is released there. */
Test(copy, leaves_a_late_call, .timeout = 60)
{
    static struct timespec long_moment = {.tv_sec = 1, .tv_nsec = 500000000};
    struct child child = child_start(run_threads);
    struct threads threads;
    struct borrowed_code code;
    siginfo_t info;
    borrowed_publish(&code);
    threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
    cr_assert(threads.are_stopped);
    struct borrowed_call call = {
        .code = &code, .number = SYS_ppoll, .arguments = {0, 0, (uintptr_t)&long_moment, 0}};
    cr_assert_eq(borrow_call(&threads, &threads.items[0], &call), BORROW_RUNS_ON);
    cr_assert_eq(waitid(P_PID, threads.items[0].tid, &info, WSTOPPED | WNOWAIT | __WALL), 0);
    threads_release(&threads);
    check_unnoticed(&child);
}

static volatile uint32_t run_over __attribute__((used)); /* the child's own */

static void run_at_once(void)
{
    run_over = BORROWED_RUN_OVER;
    for (;;)
        ;
}

/* An interruption that was asked for before is no stop by job control, which would be sent again.
 */
Test(copy, an_interruption_does_not_stop_the_process, .timeout = 60)
{
    struct child child = child_start(run_threads);
    struct threads threads;
    struct borrowed_code code;
    borrowed_publish(&code);
    threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
    cr_assert(threads.are_stopped);
    cr_assert_eq(ptrace(PTRACE_INTERRUPT, (pid_t)threads.items[0].tid, NULL, NULL), 0);
    struct borrowed_run run = {
        .code = &code, .entry = (uintptr_t)run_at_once, .over = (uintptr_t)&run_over};
    cr_assert_eq(borrow_run(&threads, &threads.items[0], &run), BORROW_DONE);
    threads_release(&threads);
    check_unnoticed(&child);
}

/* A run that does not wait to be taken away. */
extern const unsigned char return_at_once[];
__asm__(".pushsection .text\n"
        "return_at_once:\n"
        "    movl $1, run_over(%rip)\n"
        "    movl $39, %eax\n" /* SYS_getpid */
        "    jmp borrowed_call\n"
        ".popsection\n");
_Static_assert(SYS_getpid == 39 && BORROWED_RUN_OVER == 1, "as in return_at_once above");

/* Counts in a register, and says when that has gone back. */
static void count_in_register(volatile struct child_shared *shared)
{
    register uint64_t count __asm__("r12") = 0;
    shared->is_ready = 1;
    while (!shared->may_go) {
        shared->values[WRONG] += shared->values[COUNTERS] != count;
        count = shared->values[COUNTERS] = count + 1;
        __asm__ volatile("" : "+r"(count));
    }
    _exit(shared->values[WRONG] == 0 ? 7 : 8);
}

/* A thread that was not taken away in time has returned by itself: it is not put back. */
Test(copy, a_run_that_has_returned_is_left_alone, .timeout = 60)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct child child = child_start(count_in_register);
        struct threads threads;
        struct borrowed_code code;
        borrowed_publish(&code);
        while (child.shared->values[COUNTERS] == 0)
            pause_ms(1);
        threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
        cr_assert(threads.are_stopped);
        struct borrowed_run run = {
            .code = &code, .entry = (uintptr_t)return_at_once, .over = (uintptr_t)&run_over};
        borrow_run(&threads, &threads.items[0], &run);
        threads_release(&threads);
        pause_ms(1);
        check_unnoticed(&child);
    }
}

Test(copy, shows_one_moment_of_a_process_that_goes_on, .timeout = 60)
{
    struct child child = child_start(run_threads);
    for (int round = 0; round < ROUNDS; round++) {
        struct threads threads;
        struct copy copy;
        cr_assert(stop_and_copy(&child, &copy, &threads));
        uint64_t address = child.shared->values[PRIVATE];
        uint64_t before = read_word((uint32_t)child.pid, address);
        threads_release(&threads);
        while (read_word((uint32_t)child.pid, address) == before)
            pause_ms(1);
        cr_assert_eq(read_word(copy.pid, address), before);
        end_copy(&child, &copy);
        cr_assert(kill((pid_t)copy.pid, 0) != 0 || copy.pid == 0);
    }
    check_unnoticed(&child);
}

/* A process that has forked closes a pipe for both: what it closes while it is copied is closed. */
Test(copy, keeps_nothing_open, .timeout = 60)
{
    struct child child = child_start(run_threads);
    struct threads threads;
    struct copy copy;
    cr_assert(stop_and_copy(&child, &copy, &threads));
    threads_release(&threads);
    child.shared->may_go = 1;
    int status = -1;
    cr_assert_eq(waitpid(child.pid, &status, 0), child.pid); /* one end of a pipe was waited for */
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
    kill((pid_t)copy.pid, SIGKILL);
}

static void forbid_calls(volatile struct child_shared *shared)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(1);
    child_wait(shared);
    _exit(7);
}

Test(copy, is_not_made_of_a_confined_process, .timeout = 60)
{
    struct child child = child_start(forbid_calls);
    struct threads threads;
    struct copy copy;
    cr_assert_not(stop_and_copy(&child, &copy, &threads));
    cr_assert(!history.is_barred);
    threads_release(&threads);
    check_unnoticed(&child);
}

/* Makes and ends copies until it is killed. */
static void copy_for_ever(const struct child *child)
{
    struct borrowed_code code;
    borrowed_publish(&code);
    for (;;) {
        struct threads threads;
        struct copy copy;
        threads_stop(&threads, (uint32_t)child->pid, 0, 0, &interrupted);
        if (copy_make(&copy, &threads, &code, &history))
            child->shared->values[MADE]++;
        copy_drop(&copy, &threads, &code, &history);
        threads_release(&threads);
    }
}

static void start_and_kill(const struct child *child, int number)
{
    pid_t collector = fork();
    if (collector == 0)
        copy_for_ever(child);
    /* At any moment of a copy, which takes some milliseconds. */
    for (uint64_t before = child->shared->values[MADE]; child->shared->values[MADE] == before;)
        pause_ms(1);
    nanosleep(&(struct timespec){.tv_nsec = number * 97000}, NULL);
    kill(collector, SIGKILL);
    cr_assert_eq(waitpid(collector, NULL, 0), collector);
}

Test(copy, the_process_goes_on_when_the_collector_dies, .timeout = 120)
{
    struct child child = child_start(run_threads);
    for (int i = 0; i < LIVES; i++)
        start_and_kill(&child, i);
    int status = child_end(&child);
    /* A copy that nobody has waited for is left. */
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
    cr_assert_eq(child.shared->values[WRONG], 0);
    cr_assert_eq(child.shared->values[SIGNALS], 0);
}

static void keep_out(volatile struct child_shared *shared)
{
    enum { SIZE = 8192 };
    for (int advice = 0; advice < 2; advice++) {
        char *pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, SIZE, advice == 0 ? MADV_DONTFORK : MADV_WIPEONFORK);
        shared->values[advice] = (uintptr_t)pages;
    }
    child_wait(shared);
    char path[] = "copy-test-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    shared->values[2] = fcntl(file, F_SETFL, O_DIRECT) == 0;
    shared->may_go = 0;
    shared->values[3] = 1;
    child_wait(shared);
}

static bool has_gap(const struct copy_gaps *gaps, uint64_t address)
{
    for (size_t i = 0; i < gaps->count; i++)
        if (address >= gaps->items[i].begin && address < gaps->items[i].end)
            return true;
    return false;
}

Test(copy, is_due_by_size_and_use, .timeout = 60)
{
    struct child child = child_start(keep_out);
    struct copy_gaps gaps;
    uint32_t pid = (uint32_t)child.pid;
    cr_assert(copy_is_due(pid, 4096, &gaps));
    cr_assert(has_gap(&gaps, child.shared->values[0]) && has_gap(&gaps, child.shared->values[1]));
    copy_gaps_free(&gaps);
    cr_assert_not(copy_is_due(pid, UINT64_C(1) << 40, &gaps));
    copy_gaps_free(&gaps);
    child.shared->may_go = 1;
    while (child.shared->values[3] == 0)
        pause_ms(1);
    /* Not all file systems can do that. */
    cr_assert(copy_is_due(pid, 4096, &gaps) == (child.shared->values[2] == 0));
    copy_gaps_free(&gaps);
    cr_assert_eq(child_end(&child), 0);
}
