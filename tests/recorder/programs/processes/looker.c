/* SPDX-License-Identifier: MIT */
/* Preloaded into the recorder, and passed on to nobody: opens the shared memory whenever the
 * recorder holds a lease of it, as a command does that asks all recorders. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits until the lease is given back. */
static void *look(void *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", *(int *)file);
    free(file);
    close(open(path, O_RDONLY | O_CLOEXEC));
    return NULL;
}

static void start_looking(int file)
{
    pthread_t thread;
    int *argument = malloc(sizeof *argument);
    if (!argument)
        return;
    *argument = file;
    if (pthread_create(&thread, NULL, look, argument) == 0)
        pthread_detach(thread);
    usleep(20 * 1000); /* until it waits */
}

/* fcntl64(), as it is built. */
int fcntl(int file, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
    int result = real(file, command, argument);
    if (command == F_SETLEASE && argument == (void *)F_WRLCK && result == 0 &&
        strcmp(program_invocation_short_name, "ttdrecord") == 0)
        start_looking(file);
    return result;
}
