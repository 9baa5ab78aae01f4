/* SPDX-License-Identifier: MIT */
/*
 * Ends as its first argument says (_exit or exit), with status 7, while the C library keeps blocks;
 * leaks one block of 100 bytes. It has written "unwritten" without a flush. The second argument
 * says what the function of an open stream does when the stream is flushed.
 */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 7, OTHER_STATUS = 9, LEAK = 100 };

static const char *does;

static ssize_t write_stream(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    if (strcmp(does, "fail") == 0)
        raise(SIGSEGV);
    if (strcmp(does, "abort") == 0)
        abort();
    if (strcmp(does, "end") == 0)
        _exit(OTHER_STATUS);
    while (strcmp(does, "wait") == 0)
        pause();
    return (ssize_t)size;
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    char line[2];
    does = count > 2 ? arguments[2] : "";
    setlocale(LC_ALL, "C.UTF-8");
    setenv("NEW_VARIABLE", "value", 1);
    if (strcmp(does, "thread") == 0)
        pthread_create(&thread, NULL, wait_for_ever, NULL);
    if (strcmp(does, "read") == 0 && !fgets(line, sizeof line, stdin))
        return 1;
    if (count > 2) {
        FILE *stream = fopencookie(line, "w", (cookie_io_functions_t){.write = write_stream});
        if (!stream || fputs("data", stream) < 0)
            return 1;
    }
    printf("unwritten");
    void *volatile block = malloc(LEAK);
    block = NULL;
    (void)block;
    if (strcmp(arguments[1], "exit") == 0)
        exit(STATUS);
    _exit(STATUS);
}
