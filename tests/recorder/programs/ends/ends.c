/* SPDX-License-Identifier: MIT */
/* Ends in the way that the argument names, with status 7. */
#define _GNU_SOURCE
#include <error.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS = 7, STACK_SIZE = 64 * 1024, THREADS = 300 };

typedef void end_function(int status);

/* Calls `function` with marks in the registers that are saved; the stack pointer of the call is
 * kept in `ending_sp`. */
void ending(end_function *function, int status) __attribute__((noreturn));
uintptr_t ending_sp;

__asm__(".text\n"
        ".globl ending\n"
        ".type ending, @function\n"
        "ending:\n"
        ".cfi_startproc\n"
        "pushq %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbx, 0\n"
        "pushq %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbp, 0\n"
        "pushq %r12\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r12, 0\n"
        "pushq %r13\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r13, 0\n"
        "pushq %r14\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r14, 0\n"
        "pushq %r15\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r15, 0\n"
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "movq %rdi, %rax\n"
        "movl %esi, %edi\n"
        "movq %rsp, ending_sp(%rip)\n"
        "movq $0x1003, %rbx\n"
        "movq $0x1006, %rbp\n"
        "movq $0x100c, %r12\n"
        "movq $0x100d, %r13\n"
        "movq $0x100e, %r14\n"
        "movq $0x100f, %r15\n"
        "call *%rax\n"
        "hlt\n"
        ".cfi_endproc\n"
        ".size ending, .-ending\n");

static void *in_thread(void *function)
{
    ending((end_function *)(uintptr_t)function, STATUS);
}

static void at_signal(int number)
{
    (void)number;
    ending(exit, STATUS);
}

static void by_error(int status)
{
    error(status, 0, "the end");
}

static void *last(void *unused)
{
    (void)unused;
    usleep(500 * 1000); /* the first thread is gone by then */
    return NULL;
}

static void say(int number)
{
    (void)number;
    write(STDOUT_FILENO, "handled\n", 8);
}

static atomic_int waiting;

static void *wait_for_end(void *unused)
{
    void *volatile block = malloc(1);
    atomic_fetch_add(&waiting, 1);
    pause();
    free(block);
    return unused;
}

/* Prints the bytes of private anonymous mappings. */
static void print_anonymous(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4200], rest[4200], permissions[5];
    size_t sum = 0, begin, end;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%zx-%zx %4s %*s %*s %*s %s", &begin, &end, permissions, rest) == 3 &&
            strcmp(permissions, "rw-p") == 0)
            sum += end - begin;
    fclose(maps);
    printf("anonymous: %zu\n", sum);
}

static void end_with_threads(int status)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_end, NULL);
    }
    while (waiting < THREADS) /* until they have allocated */
        usleep(1000);
    print_anonymous();
    exit(status);
}

static int only_end(void *unused)
{
    (void)unused;
    _exit(STATUS);
}

static void end_in_thread(end_function *function)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)function);
    pthread_join(thread, NULL);
}

/* Waits for a child that shares the memory, and only ends. */
static void end_beside(int flags)
{
    char *stack = malloc(STACK_SIZE);
    int status = 0;
    pid_t child = clone(only_end, stack + STACK_SIZE, flags | CLONE_VM | SIGCHLD, NULL);
    waitpid(child, &status, 0);
    exit(WEXITSTATUS(status));
}

static void end(const char *way)
{
    static const struct {
        const char *name;
        end_function *function;
    } functions[] = {{"exit", exit},      {"_exit", _exit},
                     {"_Exit", _Exit},    {"quick_exit", quick_exit},
                     {"error", by_error}, {"threads", end_with_threads}};
    bool is_thread = strncmp(way, "thread ", 7) == 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(is_thread ? way + 7 : way, functions[i].name) == 0) {
            if (is_thread)
                end_in_thread(functions[i].function);
            ending(functions[i].function, STATUS);
        }
    if (strcmp(way, "handler") == 0) {
        signal(SIGUSR1, at_signal);
        raise(SIGUSR1);
    }
    if (strcmp(way, "signals") == 0) {
        signal(SIGUSR1, say);
        exit(STATUS);
    }
    if (strcmp(way, "vfork") == 0)
        end_beside(CLONE_VFORK);
    if (strcmp(way, "clone") == 0)
        end_beside(0);
    if (strcmp(way, "fork") == 0 && fork() == 0) {
        void *volatile block = malloc(2);
        free(block);
        exit(STATUS);
    }
    if (strcmp(way, "fork") == 0)
        wait(NULL);
    if (strcmp(way, "pthread_exit") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, last, NULL);
        pthread_exit(NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    void *block = malloc(1);
    puts("the output"); /* written at the end, or not at all */
    end(argv[1]);
    free(block);
    return STATUS;
}
