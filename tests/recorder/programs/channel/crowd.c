/* SPDX-License-Identifier: MIT */
/*
 * Runs as many processes at a time as the first argument says. A second argument says that they
 * fill the channel; one more process is then started, for which there is room soon.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder/channel_view.h"

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

char *channel_map(struct channel_view *view, uint32_t window)
{
    (void)view;
    (void)window;
    return NULL;
}

/* All slots of processes that were never used count as used. */
static void use_all_slots(void)
{
    int file = open(getenv(CHANNEL_ENV), O_RDWR);
    struct channel *channel =
        mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (channel == MAP_FAILED)
        exit(77);
    channel->free_processes.used = CHANNEL_PROCESSES;
    close(file);
    munmap(channel, sizeof *channel);
}

int main(int argc, char **argv)
{
    int ready[2], leave[2];
    char byte;
    int at_once = argc > 1 ? atoi(argv[1]) : 1;
    kept = malloc(1000);
    if (pipe(ready) != 0 || pipe(leave) != 0)
        return 1;
    for (int i = 1; i < at_once; i++)
        if (start(ready, leave) < 0 || read(ready[0], &byte, 1) != 1)
            return 1;
    if (argc > 2) {
        use_all_slots();
        pid_t late = start(ready, leave);
        usleep(300000);
        write(leave[1], &byte, 1);
        read(ready[0], &byte, 1);
        printf("%d\n", (int)late);
    }
    close(leave[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
