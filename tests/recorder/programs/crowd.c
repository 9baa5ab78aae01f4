/* SPDX-License-Identifier: MIT */
/* As many processes at a time as can be recorded, and one more, for which there is room soon. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 1024 };

static void *volatile kept;

/* A child that allocates, says so, and ends when it may. */
static pid_t start(const int ready[2], const int leave[2])
{
    char byte = 0;
    pid_t child = fork();
    if (child != 0)
        return child;
    close(leave[1]);
    kept = malloc(1234);
    write(ready[1], &byte, 1);
    read(leave[0], &byte, 1);
    _exit(0);
}

int main(void)
{
    int ready[2], leave[2];
    char byte;
    kept = malloc(1000);
    if (pipe(ready) != 0 || pipe(leave) != 0)
        return 1;
    for (int i = 1; i < AT_ONCE; i++)
        if (start(ready, leave) < 0 || read(ready[0], &byte, 1) != 1)
            return 1;
    pid_t late = start(ready, leave);
    usleep(300000);
    write(leave[1], &byte, 1);
    read(ready[0], &byte, 1);
    close(leave[1]);
    while (wait(NULL) > 0)
        ;
    printf("%d\n", (int)late);
    return 0;
}
