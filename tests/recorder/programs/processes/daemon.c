/* SPDX-License-Identifier: MIT */
/* Starts a daemon, as daemons start, and ends: only later does the daemon allocate, or execute the
 * program that is named. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LATER_US = 4000 * 1000 };

static void *volatile kept;

int main(int argc, char **argv)
{
    kept = malloc(1000);
    if (fork() != 0)
        return 0;
    setsid();
    for (int file = 0; file < 1024; file++)
        close(file);
    if (fork() != 0)
        _exit(0);
    usleep(LATER_US);
    if (argc > 1)
        execv(argv[1], argv + 1);
    kept = malloc(4321);
    return 0;
}
