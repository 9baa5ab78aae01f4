/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../channel_pool.h"
#include "../channel_record.h"
#include "stream.h"
#include "translate.h"

enum {
    BLOCKS_MAX = 65536, /* no more fit into a chunk, see ttd_writer_live_blocks() */
    OWN_MAX = 4096,
    ENDED_WAIT_MS = 100
};

/* What the copy has released, and blocks that are its own. */
struct told {
    uint64_t released[BLOCKS_MAX];
    size_t released_count;
    uint64_t own[OWN_MAX];
    size_t own_count;
};

static void acquired(struct told *told, uint64_t address)
{
    if (address != 0 && told->own_count < OWN_MAX)
        told->own[told->own_count++] = address;
}

static void released(struct told *told, uint64_t address)
{
    for (size_t i = told->own_count; i-- > 0;)
        if (told->own[i] == address) {
            told->own[i] = told->own[--told->own_count];
            return;
        }
    if (told->released_count < BLOCKS_MAX)
        told->released[told->released_count++] = address;
}

static void take(struct told *told, const struct record *record)
{
    unsigned skip = 1u + record_changes(record->head);
    const struct call_shape *shape = &call_shapes[record_operation(record->head)];
    if (shape->kind == CALL_UNKNOWN || skip + shape->operands > record->count)
        return;
    uint64_t first = record->words[skip], last = record->words[skip + shape->operands - 1u];
    if (shape->kind == CALL_ACQUISITION || shape->kind == CALL_END)
        acquired(told, last);
    else if (first != 0)
        released(told, first);
}

/* The copy ends before its process does, or with it. */
static bool has_ended(uint32_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd wanted = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0)
        return true;
    int found;
    while ((found = poll(&wanted, 1, ENDED_WAIT_MS)) < 0 && errno == EINTR)
        ;
    close(pidfd);
    return found == 1;
}

/* Whether nothing of it was lost. */
static bool has_all(const struct thread_slot *slot, const struct stream *stream)
{
    uint64_t lost = 0;
    for (int i = 0; i < LOSS_COUNTERS; i++)
        lost |= atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
    return lost == 0 && !stream->broken;
}

/* False when not all is there. */
static bool read_copy(struct told *told, struct host *host, uint32_t copy)
{
    bool is_all = true;
    uint32_t used = channel_used(&host->channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= used; index++) {
        struct thread_slot *slot = channel_thread(&host->view, index);
        if (slot == NULL)
            continue;
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & SLOT_STATE) != SLOT_READY || state >> SLOT_PROCESS != copy)
            continue;
        struct stream stream = {0};
        struct record record;
        while (stream_peek(&stream, host, &slot->first, &record)) {
            take(told, &record);
            stream_consume(&stream, &record);
        }
        is_all = is_all && has_all(slot, &stream);
        stream_close(&stream, host, &slot->first);
        host_free_thread(host, index);
    }
    return is_all && told->released_count < BLOCKS_MAX;
}

/* Takes what the copy of a process told; whether that is all. */
static bool hear_copy(struct told *told, struct host *host, uint32_t index, uint32_t pid)
{
    struct process_slot *copy = channel_process(&host->view, index);
    if (copy == NULL || atomic_load_explicit(&copy->state, memory_order_acquire) != SLOT_READY ||
        !has_ended(copy->pid))
        return false;
    bool is_all = read_copy(told, host, index);
    struct stream log = {0};
    stream_close(&log, host, &copy->log);
    /* Or it is what an earlier process in the slot has left, too late. */
    bool is_its_own = copy->parent_pid == pid;
    is_all = is_all && is_its_own && atomic_load(&copy->lost) == 0 &&
             (atomic_load(&copy->notes) & NOTE_TOLD_ALL) != 0;
    if (!is_its_own)
        told->released_count = 0;
    host_free_process(host, index);
    return is_all;
}

void runtime_collect(struct trace *trace, struct host *host, uint32_t slot, uint32_t pid,
                     bool is_empty)
{
    static struct told told;
    told.released_count = told.own_count = 0;
    bool is_all = hear_copy(&told, host, channel_copy(slot), pid);
    trace_runtime_blocks(trace, told.released, told.released_count, is_all || is_empty);
}
