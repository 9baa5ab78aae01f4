/* SPDX-License-Identifier: MIT */
/*
 * Ends with exit(7), or as its argument says, where that matters to whoever runs last at the end:
 *
 *     nested     a handler calls exit(9)
 *     finalized  all handlers were made to run before, and the program went on
 *     many       there are more handlers than the C library has room for at first
 *     pipe       the standard output is a pipe that is full
 *     signal     a handler of a signal runs while the streams are flushed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 7, OTHER_STATUS = 9, MANY = 100 };

void early_use(void);
void __cxa_finalize(void *module);

static const char *way = "";
static int counter;

static void count(void)
{
    counter++;
}

static void at_exit(void)
{
    printf("handlers: %d\n", counter);
    if (strcmp(way, "nested") == 0)
        exit(OTHER_STATUS);
}

static void say(int number)
{
    (void)number;
    write(STDOUT_FILENO, "handled\n", 8);
}

static ssize_t raise_signal(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    raise(SIGUSR1);
    return (ssize_t)size;
}

static void fill_pipe(void)
{
    static const char bytes[4096];
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDOUT_FILENO, bytes, sizeof bytes) > 0)
        ;
    fcntl(STDOUT_FILENO, F_SETFL, flags);
}

int main(int argument_count, char **arguments)
{
    way = argument_count > 1 ? arguments[1] : "";
    void *volatile block = malloc(100);
    block = NULL;
    (void)block;
    early_use();
    atexit(at_exit);
    for (int i = 0; i < MANY && strcmp(way, "many") == 0; i++)
        atexit(count);
    if (strcmp(way, "signal") == 0) {
        FILE *stream = fopencookie(&way, "w", (cookie_io_functions_t){.write = raise_signal});
        if (!stream || fputs("data", stream) < 0 || signal(SIGUSR1, say) == SIG_ERR)
            return EXIT_FAILURE;
    }
    if (strcmp(way, "finalized") == 0)
        __cxa_finalize(NULL);
    if (strcmp(way, "pipe") == 0)
        fill_pipe();
    printf("the end\n");
    exit(STATUS);
}
