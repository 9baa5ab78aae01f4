/* SPDX-License-Identifier: MIT */
/* Writes over the shared memory as no recorded thread would: threads with records that cannot be.
 * Then it goes on, and what it does is recorded. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/channel_pool.h"
#include "recorder/channel_record.h"

enum { CALLS = 1000, WAIT_US = 200 * 1000 };

struct forgery {
    uint64_t sequence; /* 0 for a new one */
    uint64_t words[4];
    uint32_t committed;
    uint32_t first; /* 0 for the chunk with the words */
};

static struct channel_view view;
static int channel_file;

char *channel_map(struct channel_view *of, uint32_t window)
{
    off_t offset = (off_t)window * CHANNEL_WINDOW;
    char *mapped =
        mmap(NULL, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, channel_file, offset);
    return of->windows[window] = mapped != MAP_FAILED ? mapped : NULL;
}

static uint32_t own_slot(void)
{
    for (uint32_t index = 1; index <= CHANNEL_PROCESSES; index++)
        if (channel_process(&view, index)->pid == (uint32_t)getpid())
            return index;
    return CHANNEL_NONE;
}

static void forge(struct channel *channel, const struct forgery *forgery)
{
    uint32_t thread =
        channel_take(&view, &channel->free_threads, CHANNEL_THREADS, channel_thread_link);
    struct thread_slot *slot = channel_thread(&view, thread);
    uint32_t index = channel_take_chunk(&view, channel, true);
    memcpy(channel_chunk(&view, index)->data, forgery->words, sizeof forgery->words);
    channel_chunk(&view, index)->counts = 0;
    channel_chunk(&view, index)->committed = forgery->committed;
    slot->tid = (uint32_t)getpid();
    slot->sequence = forgery->sequence;
    if (slot->sequence == 0)
        slot->sequence = atomic_fetch_add(&channel->sequence, 1) + 1;
    slot->first = forgery->first != 0 ? forgery->first : index;
    slot->state = SLOT_READY | own_slot() << SLOT_PROCESS;
}

int main(void)
{
    const struct forgery forgeries[] = {
        {UINT64_MAX, {record_head(TTD_API_MALLOC, 0, 0, 0, 3), 10, 0x1000}, 24, 0},
        {0, {record_head(TTD_API_MALLOC, RECORD_SEQUENCE, 0, 0, 4), UINT64_MAX, 10, 0x1000}, 32, 0},
        {0, {record_head(0xff, 0, 0, 0, 1)}, 8, 0},
        {0, {record_head(TTD_API_MALLOC, 0, 5, 0, 3), 10, 0x1000}, 24, 0},
        {0, {record_head(TTD_API_MALLOC, 0, 0, 9, 3), 10, 0x1000}, 24, 0},
        {0, {record_head(TTD_API_MALLOC, 0, 0, 9, 12), 10, 0x1000}, 24, 0},
        {0, {record_head(TTD_API_MALLOC, 0, 0, 0, 0)}, 24, 0},
        {0, {record_head(TTD_API_MALLOC, 0, 0, 0, 3), 10, 0x1000}, UINT32_MAX, 0},
        {0, {0}, 0, UINT32_MAX},
    };
    const char *path = getenv(CHANNEL_ENV);
    if (!path || (channel_file = open(path, O_RDWR)) < 0)
        return 77;
    struct channel *channel = (struct channel *)channel_map(&view, 0);
    if (!channel)
        return 1;
    for (uint32_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++)
        forge(channel, &forgeries[i]);
    atomic_fetch_add(&channel->attention, 1);
    usleep(WAIT_US);
    for (int i = 0; i < CALLS; i++) {
        void *volatile block = malloc(16);
        free(block);
    }
    return 0;
}
