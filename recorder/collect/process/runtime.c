/* SPDX-License-Identifier: MIT */
#include "collect/process/runtime.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel_pool.h"
#include "channel_record.h"
#include "collect/channel/stream.h"
#include "collect/channel/translate.h"

enum {
    BLOCKS_MAX = 65536, /* no more fit into a chunk, see ttd_writer_live_blocks() */
    OWN_MAX = 4096,
    ENDED_WAIT_MS = 100
};

/* Blocks that the copy has released, and blocks that it has acquired itself. */
struct runtime_blocks {
    uint64_t released[BLOCKS_MAX];
    size_t released_count;
    uint64_t own[OWN_MAX];
    size_t own_count;
};

static void acquired(struct runtime_blocks *blocks, uint64_t address)
{
    if (address != 0 && blocks->own_count < OWN_MAX)
        blocks->own[blocks->own_count++] = address;
}

static void released(struct runtime_blocks *blocks, uint64_t address)
{
    for (size_t i = blocks->own_count; i-- > 0;)
        if (blocks->own[i] == address) {
            blocks->own[i] = blocks->own[--blocks->own_count];
            return;
        }
    if (blocks->released_count < BLOCKS_MAX)
        blocks->released[blocks->released_count++] = address;
}

static void apply_record(struct runtime_blocks *blocks, const struct record *record)
{
    unsigned skip = 1u + record_changes(record->head);
    const struct call_shape *shape = &call_shapes[record_operation(record->head)];
    if (shape->kind == CALL_UNKNOWN || skip + shape->operands > record->count)
        return;
    uint64_t first = record->words[skip], last = record->words[skip + shape->operands - 1u];
    if (shape->kind == CALL_ACQUISITION || shape->kind == CALL_END)
        acquired(blocks, last);
    else if (first != 0)
        released(blocks, first);
}

/* Waits a moment for the copy, which ends before its process or with it. */
static bool has_ended(uint32_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd event = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0)
        return true;
    int ready_count;
    while ((ready_count = poll(&event, 1, ENDED_WAIT_MS)) < 0 && errno == EINTR)
        ;
    close(pidfd);
    return ready_count == 1;
}

/* Whether the thread has lost no calls. */
static bool is_lossless(const struct thread_slot *slot, const struct stream *stream)
{
    uint64_t lost = 0;
    for (int i = 0; i < LOSS_COUNTERS; i++)
        lost |= atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
    return lost == 0 && !stream->is_broken;
}

/* Reads the records of all threads of the copy. Returns false if some are missing. */
static bool read_copy_threads(struct runtime_blocks *blocks, struct host *host, uint32_t copy)
{
    bool is_complete = true;
    uint32_t slot_count = channel_used(&host->channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= slot_count; index++) {
        struct thread_slot *slot = channel_thread(&host->view, index);
        if (slot == NULL)
            continue;
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & SLOT_STATE) != SLOT_READY || state >> SLOT_PROCESS != copy)
            continue;
        struct stream stream = {0};
        struct record record;
        while (stream_peek(&stream, host, &slot->first, &record)) {
            apply_record(blocks, &record);
            stream_consume(&stream, &record);
        }
        is_complete = is_complete && is_lossless(slot, &stream);
        stream_close(&stream, host, &slot->first);
        host_free_thread(host, index);
    }
    return is_complete && blocks->released_count < BLOCKS_MAX;
}

/* Reads the records of the copy of a process, or of the process at its end. Returns whether they
 * are complete. */
static bool read_copy_of_process(struct runtime_blocks *blocks, struct host *host, uint32_t index,
                                 uint32_t pid)
{
    struct process_slot *copy = channel_process(&host->view, index);
    bool is_elsewhere = copy != NULL && (copy->flags & PROCESS_ELSEWHERE) != 0;
    if (copy == NULL || atomic_load_explicit(&copy->state, memory_order_acquire) != SLOT_READY ||
        (copy->pid != pid && !is_elsewhere && !has_ended(copy->pid)))
        return false;
    bool is_complete = read_copy_threads(blocks, host, index);
    struct stream log = {0};
    stream_close(&log, host, &copy->log);
    /* Otherwise the slot has the copy of an earlier process, which came too late. */
    bool is_its_own = copy->parent_pid == pid;
    is_complete = is_complete && is_its_own && atomic_load(&copy->lost) == 0 &&
                  (atomic_load(&copy->notes) & NOTE_TOLD_ALL) != 0;
    if (!is_its_own)
        blocks->released_count = 0;
    host_free_process(host, index);
    return is_complete;
}

void runtime_collect(struct trace *trace, struct host *host, uint32_t slot, uint32_t pid,
                     bool is_empty)
{
    static struct runtime_blocks blocks;
    blocks.released_count = blocks.own_count = 0;
    bool is_complete = read_copy_of_process(&blocks, host, channel_copy(slot), pid);
    trace_runtime_blocks(trace, blocks.released, blocks.released_count, is_complete || is_empty);
}
