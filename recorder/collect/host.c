/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void describe(struct channel *channel, uint32_t flags)
{
    struct stat namespace;
    channel->magic = CHANNEL_MAGIC;
    channel->version = CHANNEL_VERSION;
    channel->flags = flags;
    channel->size = sizeof *channel;
    channel->collector_pid = (uint32_t)getpid();
    channel->start = monotonic_ns();
    if (stat("/proc/self/ns/pid", &namespace) == 0)
        channel->pid_namespace = namespace.st_ino;
}

int host_open(struct host *host, uint32_t flags)
{
    memset(host, 0, sizeof *host);
    host->memfd = memfd_create("ttdrecord", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (host->memfd < 0)
        return errno;
    if (ftruncate(host->memfd, sizeof *host->channel) != 0 ||
        fcntl(host->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto failed;
    host->channel =
        mmap(NULL, sizeof *host->channel, PROT_READ | PROT_WRITE, MAP_SHARED, host->memfd, 0);
    if (host->channel == MAP_FAILED)
        goto failed;
    /* Nobody that we start has any business there. */
    if (madvise(host->channel, sizeof *host->channel, MADV_DONTFORK) != 0)
        goto failed;
    describe(host->channel, flags);
    snprintf(host->path, sizeof host->path, "/proc/%d/fd/%d", (int)getpid(), host->memfd);
    host->barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) > 0;
    return 0;
failed:;
    int reason = errno;
    close(host->memfd);
    return reason;
}

static void wake(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void host_stop(struct host *host)
{
    atomic_store(&host->channel->stopped, 1);
    wake(&host->channel->freed);
}

uint64_t host_tick(struct host *host)
{
    return channel_tick(host->channel, monotonic_ns());
}

void host_barrier(struct host *host)
{
    if (host->barriers)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    atomic_thread_fence(memory_order_seq_cst);
}

void host_free_chunk(struct host *host, uint32_t index)
{
    struct channel *channel = host->channel;
    if (channel_chunk(channel, index)->counts)
        atomic_fetch_sub(&channel->backlog, 1);
    channel_put_chunk(channel, index);
    atomic_fetch_add(&channel->freed, 1);
    if (atomic_load(&channel->waiters) != 0 &&
        atomic_load_explicit(&channel->backlog, memory_order_relaxed) <= CHANNEL_RELIEF)
        syscall(SYS_futex, &channel->freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void host_free_process(struct host *host, struct process_slot *slot)
{
    struct channel *channel = host->channel;
    atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
    atomic_store(&channel->is_full, 0);
    atomic_fetch_add(&channel->slots_freed, 1);
    if (atomic_load(&channel->slot_waiters) != 0)
        syscall(SYS_futex, &channel->slots_freed, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void host_sleep(struct host *host, uint32_t attention, int milliseconds)
{
    struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    syscall(SYS_futex, &host->channel->attention, FUTEX_WAIT, attention, &time, NULL, 0);
}
