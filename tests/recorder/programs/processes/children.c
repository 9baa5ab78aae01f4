/* SPDX-License-Identifier: MIT */
/*
 * A parent with a leak; a forked child that frees the parent's block and leaks one of its own; a
 * child that execs; a vforked one that does; one that does nothing.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *inherited;

static void run(void)
{
    char *environment[] = {NULL};
    execle("/bin/true", "true", (char *)NULL, environment);
    _exit(1);
}

int main(void)
{
    int status;
    inherited = malloc(1000);
    pid_t child = fork();
    if (child == 0) {
        free(inherited);
        if (!malloc(2000))
            _exit(1);
        _exit(7);
    }
    waitpid(child, &status, 0);
    if ((child = fork()) == 0)
        run();
    waitpid(child, &status, 0);
    if ((child = vfork()) == 0)
        run();
    waitpid(child, &status, 0);
    if ((child = fork()) == 0)
        _exit(0);
    waitpid(child, &status, 0);
    return inherited ? 0 : 1;
}
