/* SPDX-License-Identifier: MIT */
/*
 * Claims slots, in the shared memory, for processes that do not exist or are not recorded, with
 * times and places that cannot be. The process ids are the arguments. Then it goes on.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/channel_pool.h"

enum { CALLS = 1000, WAIT_US = 200 * 1000 };

static struct channel_view view;
static int channel_file;

char *channel_map(struct channel_view *of, uint32_t window)
{
    off_t offset = (off_t)window * CHANNEL_WINDOW;
    char *mapped =
        mmap(NULL, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, channel_file, offset);
    return of->windows[window] = mapped != MAP_FAILED ? mapped : NULL;
}

static void claim(struct channel *channel, uint32_t pid, uint64_t clock)
{
    uint32_t index =
        channel_take(&view, &channel->free_processes, CHANNEL_PROCESSES, channel_process_link);
    struct process_slot *slot = channel_process(&view, index);
    memset(slot, 0, sizeof *slot);
    slot->pid = pid;
    slot->parent_pid = UINT32_MAX;
    slot->parent = UINT32_MAX;
    slot->flags = PROCESS_FORKED;
    slot->sequence = atomic_fetch_add(&channel->sequence, 1) + 1;
    slot->clock = clock;
    slot->parent_sequence = UINT64_MAX;
    slot->parent_steps = UINT64_MAX;
    slot->command_size = slot->directory_size = UINT32_MAX;
    slot->log = UINT32_MAX;
    slot->state = SLOT_READY;
}

int main(int argc, char **argv)
{
    static const uint64_t clocks[] = {INT64_MAX, UINT64_MAX, (uint64_t)INT64_MAX + 1, 0};
    channel_file = open(getenv(CHANNEL_ENV), O_RDWR);
    struct channel *channel = (struct channel *)channel_map(&view, 0);
    if (!channel)
        return 77;
    for (int i = 1; i < argc; i++)
        for (size_t j = 0; j < sizeof clocks / sizeof *clocks; j++)
            claim(channel, (uint32_t)strtoul(argv[i], NULL, 0), clocks[j]);
    channel->start = UINT64_MAX / 2;
    channel->clock = UINT64_MAX - 1;
    atomic_fetch_add(&channel->attention, 1);
    usleep(WAIT_US);
    for (int i = 0; i < CALLS; i++) {
        void *volatile block = malloc(16);
        free(block);
    }
    close(channel_file);
    return 0;
}
