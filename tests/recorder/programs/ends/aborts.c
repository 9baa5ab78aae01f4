/* SPDX-License-Identifier: MIT */
/* Handles SIGABRT, which is raised in the way that the first argument names. The second one names
 * the way in which the handler is installed. */
#define _GNU_SOURCE
#include <assert.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS = 3, FRAMES = 32, RAISES = 1000 };

static jmp_buf out;
static const char *way;
static char *volatile kept;

static void handle(int number)
{
    void *frames[FRAMES];
    /* A hook of free() is one frame more. */
    int count = strcmp(way, "free") != 0 ? backtrace(frames, FRAMES) : 0;
    printf("signal %d, %d frames\n", number, count);
    fflush(stdout);
    if (strcmp(way, "jump") == 0)
        longjmp(out, 1);
}

static void ignore(int number)
{
    (void)number;
}

static void install(const char *how)
{
    static char stack[1 << 16];
    const stack_t signal_stack = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handle}, now;
    if (strcmp(how, "once") == 0)
        action.sa_flags = (int)SA_RESETHAND;
    if (strcmp(how, "stack") == 0) {
        action.sa_flags = SA_ONSTACK;
        sigaltstack(&signal_stack, NULL);
    }
    if (strcmp(how, "signal") == 0)
        signal(SIGABRT, handle);
    else
        sigaction(SIGABRT, &action, NULL);
    sigaction(SIGABRT, NULL, &now);
    printf("it is the handler: %d, flags %x\n", now.sa_handler == handle, (unsigned)now.sa_flags);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    void *frames[FRAMES];
    if (argc != 3)
        return EXIT_FAILURE;
    way = argv[1];
    backtrace(frames, FRAMES); /* the first one loads a library */
    kept = calloc(1, 100);     /* free(kept + 8) takes the first word for a size */
    install(argv[2]);
    if (strcmp(way, "raise") == 0) {
        raise(SIGABRT);
        signal(SIGABRT, ignore);
        for (int i = 0; i < RAISES; i++)
            raise(SIGABRT);
        return STATUS;
    }
    if (strcmp(way, "jump") == 0 && setjmp(out) != 0)
        return STATUS;
    if (strcmp(way, "assert") == 0)
        assert(!kept);
    if (strcmp(way, "free") == 0)
        free(kept + 8);
    abort();
}
