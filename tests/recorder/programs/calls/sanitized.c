/* SPDX-License-Identifier: MIT */
/* A program that is built with a sanitizer. With -DSTART it starts the program that it is given, in
 * each way in which a program can. */
#include <stdio.h>
#include <stdlib.h>

#ifdef START
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void start(int way, char *path)
{
    char *arguments[] = {path, NULL};
    pid_t pid;
    int status = 0;
    if (way == 0) {
        if (posix_spawnp(&pid, path, NULL, NULL, arguments, environ) != 0)
            exit(1);
    } else if ((pid = fork()) == 0) {
        if (way == 1)
            execv(path, arguments);
        else if (way == 2)
            fexecve(open(path, O_RDONLY), arguments, environ);
        else if (way == 3)
            execlp(path, path, (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    if (status != 0)
        exit(1);
}

int main(int count, char **arguments)
{
    for (int way = 0; way < 4; way++)
        start(way, arguments[count - 1]);
    free(malloc(100));
    return 0;
}
#else
int main(void)
{
    char *volatile block = malloc(100);
    printf("%s\n", !getenv("LD_PRELOAD") ? "done" : "preloaded");
    free(block);
    return 0;
}
#endif
