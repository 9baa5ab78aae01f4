/* SPDX-License-Identifier: MIT */
/*
 * Asks for snapshots of itself as no recorded program would: all the time, of frames, registers and
 * memory that cannot be. It also says that it has blocks of all memory. `asker ROUNDS`
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/channel_pool.h"
#include "recorder/channel_record.h"

enum { WAITS_MAX = 30000000, BLOCKS = 100 };

static struct channel_view view;
static int channel_file;
static struct own_memory ring[2];

char *channel_map(struct channel_view *of, uint32_t window)
{
    off_t offset = (off_t)window * CHANNEL_WINDOW;
    char *mapped =
        mmap(NULL, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, channel_file, offset);
    return of->windows[window] = mapped != MAP_FAILED ? mapped : NULL;
}

/* The newest one: the shell that has executed this program had another one. */
static uint32_t own_slot(void)
{
    uint32_t newest = CHANNEL_NONE;
    uint64_t sequence = 0;
    for (uint32_t index = 1; index <= CHANNEL_PROCESSES; index++) {
        const struct process_slot *slot = channel_process(&view, index);
        if (slot->pid == (uint32_t)getpid() && slot->sequence >= sequence) {
            newest = index;
            sequence = slot->sequence;
        }
    }
    return newest;
}

/* Publishes blocks that take all the memory that a program can have. */
static void claim_blocks(struct channel *channel, uint32_t process)
{
    uint32_t thread =
        channel_take(&view, &channel->free_threads, CHANNEL_THREADS, channel_thread_link);
    struct thread_slot *slot = channel_thread(&view, thread);
    uint32_t index = channel_take_chunk(&view, channel, true);
    struct chunk *chunk = channel_chunk(&view, index);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        const uint64_t words[3] = {record_head(TTD_API_MALLOC, 0, 0, 0, 3),
                                   (UINT64_C(1) << 47) - (i + 1) * 4096, i * 4096};
        memcpy(chunk->data + 3 * i, words, sizeof words);
    }
    chunk->counts = 0;
    chunk->committed = BLOCKS * 24;
    slot->tid = (uint32_t)getpid();
    slot->sequence = atomic_fetch_add(&channel->sequence, 1) + 1;
    slot->first = index;
    slot->state = SLOT_READY | process << SLOT_PROCESS;
    atomic_fetch_add(&channel->attention, 1);
}

/* Every range is all of memory, or wraps around its end; the list has no end. */
static void fill_ring(void)
{
    for (int i = 0; i < 2; i++) {
        ring[i].next = (uintptr_t)&ring[1 - i];
        for (uint64_t j = 0; j < OWN_RANGES; j++) {
            ring[i].ranges[j].begin = j % 2 ? j : UINT64_MAX - j;
            ring[i].ranges[j].size = j % 3 ? UINT64_MAX : 8;
        }
    }
}

static void ask(struct snapshot_request *request, uint64_t round)
{
    static const uint64_t wild[] = {0, 1, UINT64_MAX, UINT64_C(0x7ffffffff001), 0x1000};
    uint64_t value = wild[round % 5];
    request->tid = round % 2 ? (uint32_t)getpid() : round % 4 ? UINT32_MAX : 1;
    request->reason = UINT32_MAX - (uint32_t)round;
    request->contents = UINT32_MAX;
    request->has_permitted = (uint32_t)round;
    request->stack_pointer = value;
    request->thread_pointer = wild[(round + 1) % 5];
    request->registers_valid = UINT64_MAX;
    memset(request->registers, (int)round, sizeof request->registers);
    request->own_memory = round % 5 ? (uintptr_t)&ring[0] : value;
    request->frame_count = UINT32_MAX;
    memset(request->frame_pcs, 0x55, sizeof request->frame_pcs);
    memset(request->frame_cfas, (int)~round, sizeof request->frame_cfas);
    request->state = SNAPSHOT_ASKED;
}

int main(int argc, char **argv)
{
    const char *path = getenv(CHANNEL_ENV);
    if (argc != 2 || !path || (channel_file = open(path, O_RDWR)) < 0)
        return 77;
    void *volatile block = malloc(16);
    struct channel *channel = (struct channel *)channel_map(&view, 0);
    uint32_t process = channel ? own_slot() : CHANNEL_NONE;
    struct snapshot_request *request = channel_request(&view, process);
    unsigned answers[SNAPSHOT_DENIED + 1] = {0};
    fill_ring();
    claim_blocks(channel, process);
    for (uint64_t round = 0; round < strtoull(argv[1], NULL, 0); round++) {
        ask(request, round);
        /* Without a pause, so that the next round asks while this one is being answered. */
        for (int i = 0; i < WAITS_MAX && request->state == SNAPSHOT_ASKED; i++)
            sched_yield();
        answers[request->state % (SNAPSHOT_DENIED + 1)]++;
    }
    printf("%u taken, %u refused\n", answers[SNAPSHOT_TAKEN], answers[SNAPSHOT_REFUSED]);
    free(block);
    return 0;
}
