/* SPDX-License-Identifier: MIT */
/* footprint THREADS [lock]: starts so many threads, each of which makes two calls; while all are
 * alive, prints the process's address space, memory and locked memory in kB. With `lock` it first
 * locks all of its memory, as an ordinary user. */
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t all;

static void *work(void *unused)
{
    void *volatile block = malloc(10);
    free(block);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return unused;
}

static void report(void)
{
    char line[128];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        unsigned long size;
        char name[16];
        if (sscanf(line, "%15[^:]: %lu kB", name, &size) == 2 &&
            (strcmp(name, "VmSize") == 0 || strcmp(name, "VmRSS") == 0 ||
             strcmp(name, "VmLck") == 0))
            printf("%s %lu\n", name, size);
    }
    fflush(stdout);
}

static int lock_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    return syscall(SYS_capset, &header, none) == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)count + 1);
    void *volatile block = malloc(1000);
    if (argc > 2 && !lock_all())
        return 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&thread, &attributes, work, NULL) != 0)
            return 77;
    pthread_barrier_wait(&all);
    report();
    free(block);
    pthread_barrier_wait(&all);
    return 0;
}
