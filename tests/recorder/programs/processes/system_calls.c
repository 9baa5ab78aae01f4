/* SPDX-License-Identifier: MIT */
/* Loaded into the recorder by tests, this library counts calls of it that cost a system call each,
 * and writes their numbers into the file that $SYSTEM_CALLS names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int reads, scans, writes, forks, opens;
static pid_t counted;

/* PAGEMAP_SCAN, which looks at the pages of a process. What asks for one mapping costs little. */
enum { SCAN = 16 };

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    static ssize_t (*real)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                           unsigned long, unsigned long);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "process_vm_readv");
    reads++;
    return real(pid, here, here_count, there, there_count, flags);
}

int ioctl(int file, unsigned long request, ...)
{
    static int (*real)(int, unsigned long, void *);
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "ioctl");
    scans += _IOC_TYPE(request) == 'f' && _IOC_NR(request) == SCAN;
    return real(file, request, argument);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    writes++;
    return real(file, bytes, size);
}

/* open() of programs with large offsets. Counts reading without blocking: so the recorder opens the
 * files of other processes. */
int open64(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, mode_t);
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open64");
    opens += (flags & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK);
    return real(path, flags, mode);
}

pid_t fork(void)
{
    static pid_t (*real)(void);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fork");
    forks++;
    return real();
}

__attribute__((constructor)) static void begin(void)
{
    if (strcmp(program_invocation_short_name, "ttdrecord") == 0)
        counted = getpid();
}

/* Only for the recorder itself, not for the processes that it forks. */
__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("SYSTEM_CALLS");
    FILE *file = counted == getpid() && path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%d %d %d %d %d\n", reads, scans, writes, forks, opens);
    fclose(file);
}
