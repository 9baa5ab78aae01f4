/* SPDX-License-Identifier: MIT */
/*
 * Loaded into a program that tests start thousands of times: it starts once, and runs its main() in
 * a child for each request, since a child of a sanitized program that has started is made several
 * times as fast as a start. served.py has the other end of the socket, whose number SERVE_SOCKET
 * has.
 *
 * A request is three numbers of 32 bits and the strings that they count: the bytes of the strings,
 * the arguments, and the variables of the environment. The working directory is the first string.
 * The child's standard descriptors come with it. The answer is the child's process id, and its
 * status as by wait() once it has ended.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int main_function(int count, char **arguments, char **environment);
typedef int start_function(main_function *start, int count, char **arguments, main_function *begin,
                           void (*end)(void), void (*loader_end)(void), void *stack_end);

/* A program begins with a call of this function, which is the C library's; no header has it. */
/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier) */
start_function __libc_start_main;

static main_function *program_main;

struct request {
    uint32_t size;
    uint32_t argument_count;
    uint32_t variable_count;
};

static _Noreturn void fail(void)
{
    _exit(125);
}

/* Receives the numbers and the descriptors; false at the end of the connection. */
static int receive_request(int connection, struct request *request, int descriptors[3])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec part = {request, sizeof *request};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t size = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    if (size == 0)
        return 0;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (size != sizeof *request || !header || header->cmsg_len != CMSG_LEN(3 * sizeof(int)))
        fail();
    memcpy(descriptors, CMSG_DATA(header), 3 * sizeof(int));
    return 1;
}

/* Splits the strings: argument_count of them and NULL, variable_count and NULL. */
static char **split_strings(const struct request *request, char *text, char **pointers)
{
    char **next = pointers;
    for (uint32_t i = 0; i < request->argument_count + request->variable_count; i++) {
        if (i == request->argument_count)
            *next++ = NULL;
        *next++ = text;
        text += strlen(text) + 1;
    }
    if (request->variable_count == 0)
        *next++ = NULL;
    *next = NULL;
    return pointers + request->argument_count + 1;
}

static _Noreturn void run_program(int connection, const struct request *request, char *text,
                                  char **pointers, const int descriptors[3])
{
    /* A descriptor that was received is above the standard ones: the server has all three. */
    for (int i = 0; i < 3; i++) {
        if (dup2(descriptors[i], i) < 0 || close(descriptors[i]) < 0)
            fail();
    }
    close(connection);
    if (chdir(text) < 0)
        fail();
    environ = split_strings(request, text + strlen(text) + 1, pointers);
    exit(program_main((int)request->argument_count, pointers, environ));
}

static void answer(int connection, int number)
{
    if (send(connection, &number, sizeof number, MSG_NOSIGNAL) != sizeof number)
        fail();
}

/* Its memory is mapped, not allocated: a sanitizer looks at all allocated memory. */
static void serve(int connection, const struct request *request, const int descriptors[3])
{
    size_t pointers_size =
        ((size_t)request->argument_count + request->variable_count + 2) * sizeof(char *);
    size_t mapped_size = pointers_size + request->size;
    char **pointers =
        mmap(NULL, mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pointers == MAP_FAILED)
        fail();
    char *text = (char *)pointers + pointers_size;
    if (recv(connection, text, request->size, MSG_WAITALL) != (ssize_t)request->size)
        fail();
    pid_t child = fork();
    if (child < 0)
        fail();
    if (child == 0)
        run_program(connection, request, text, pointers, descriptors);
    munmap(pointers, mapped_size);
    for (int i = 0; i < 3; i++)
        close(descriptors[i]);
    answer(connection, child);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            fail();
    }
    answer(connection, status);
}

/* Maps the pages that a search for leaks reads, since each child would map them at its end. */
static void prepare_for_children(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "__lsan_do_recoverable_leak_check");
    int (*look_for_leaks)(void);
    memcpy(&look_for_leaks, &symbol, sizeof symbol);
    if (symbol)
        look_for_leaks();
}

/* The program's main() in place of its own. */
static int serve_all(int count, char **arguments, char **environment)
{
    const char *number = getenv("SERVE_SOCKET");
    if (!number)
        return program_main(count, arguments, environment);
    int connection = atoi(number);
    prepare_for_children();
    struct request request;
    int descriptors[3];
    while (receive_request(connection, &request, descriptors))
        serve(connection, &request, descriptors);
    _exit(0);
}

/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier,readability-function-size) */
int __libc_start_main(main_function *start, int count, char **arguments, main_function *begin,
                      void (*end)(void), void (*loader_end)(void), void *stack_end)
{
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    start_function *next;
    memcpy(&next, &symbol, sizeof next);
    program_main = start;
    return next(serve_all, count, arguments, begin, end, loader_end, stack_end);
}
