/* SPDX-License-Identifier: MIT */
#include "collect/channel/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "channel_pool.h"

enum { PROBES = 4, PROBE_US = 1000 };

static uint64_t host_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void host_describe(struct channel *channel, uint32_t flags)
{
    struct stat namespace;
    channel->magic = CHANNEL_MAGIC;
    channel->version = CHANNEL_VERSION;
    channel->flags = flags;
    channel->size = CHANNEL_SIZE;
    channel->collector_pid = (uint32_t)getpid();
    channel->start = host_monotonic_ns();
    if (stat("/proc/self/ns/pid", &namespace) == 0)
        channel->pid_namespace = namespace.st_ino;
}

static struct host *host_of(struct channel_view *view)
{
    return (struct host *)((char *)view - offsetof(struct host, view));
}

char *channel_map(struct channel_view *view, uint32_t index)
{
    char *window = mmap(NULL, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED,
                        host_of(view)->memfd, (off_t)index * CHANNEL_WINDOW);
    if (window == MAP_FAILED)
        return NULL;
    /* Processes that the collector forks must not reach the channel. */
    madvise(window, CHANNEL_WINDOW, MADV_DONTFORK);
    atomic_store_explicit(&view->windows[index], window, memory_order_relaxed);
    return window;
}

/* Opens a memory file for leases. Whoever opens it while a lease is held has this process
 * signalled. SIGWINCH does no harm, and is passed on to no program. */
static int host_open_for_leases(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0)
        fcntl(file, F_SETSIG, SIGWINCH);
    return file;
}

/* Whether the system grants leases on memory files: tried with one that is nobody else's. Somebody
 * who looks at all files of the system may have it open for a moment. */
static bool host_grants_leases(void)
{
    char path[64];
    int memfd = memfd_create("lease", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memfd);
    int file = memfd >= 0 ? host_open_for_leases(path) : -1;
    bool is_granted = false;
    for (int i = 0; file >= 0 && !is_granted && i < PROBES; i++) {
        if (i > 0)
            usleep(PROBE_US);
        is_granted = fcntl(file, F_SETLEASE, F_WRLCK) == 0;
    }
    if (file >= 0)
        close(file);
    if (memfd >= 0)
        close(memfd);
    return is_granted;
}

int host_open(struct host *host, uint32_t flags)
{
    int memfd = memfd_create(CHANNEL_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return memfd < 0 ? errno : host_adopt(host, memfd, flags);
}

int host_adopt(struct host *host, int memfd, uint32_t flags)
{
    memset(host, 0, sizeof *host);
    host->memfd = memfd;
    if (ftruncate(host->memfd, (off_t)CHANNEL_SIZE) != 0 ||
        fcntl(host->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto failed;
    host->channel = (struct channel *)channel_map(&host->view, 0);
    if (!host->channel)
        goto failed;
    host_describe(host->channel, flags);
    host->start = host->channel->start;
    snprintf(host->path, sizeof host->path, "/proc/%d/fd/%d", (int)getpid(), host->memfd);
    host->probe = host_grants_leases() ? host_open_for_leases(host->path) : -1;
    /* A process that queries this lock learns the collector's id in its own pid namespace. */
    fcntl(host->memfd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
    host->has_barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) > 0;
    return 0;
failed:;
    int reason = errno;
    close(host->memfd);
    return reason;
}

void host_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void host_stop(struct host *host)
{
    atomic_store(&host->channel->stopped, 1);
    atomic_fetch_add(&host->channel->freed, 1);
    host_wake(&host->channel->freed);
}

uint64_t host_now(const struct host *host)
{
    return host_monotonic_ns() - host->start;
}

uint64_t host_tick(struct host *host)
{
    atomic_fetch_add_explicit(&host->channel->heartbeat, 1, memory_order_relaxed);
    return channel_tick(host->channel, host_monotonic_ns());
}

bool host_is_held(const struct host *host)
{
    /* A write lease is granted only if nobody else has the file open or mapped; it is denied if the
     * file belongs to another user. */
    if (host->probe < 0)
        return false;
    if (fcntl(host->probe, F_SETLEASE, F_WRLCK) != 0)
        return errno == EAGAIN;
    fcntl(host->probe, F_SETLEASE, F_UNLCK);
    return false;
}

bool host_stays_held(const struct host *host, int looks)
{
    while (looks-- > 0 && host_is_held(host))
        usleep(PROBE_US);
    return host_is_held(host);
}

void host_barrier(struct host *host)
{
    if (host->has_barriers)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    atomic_thread_fence(memory_order_seq_cst);
}

void host_free_chunk(struct host *host, uint32_t index)
{
    struct channel *channel = host->channel;
    const struct chunk *chunk = channel_chunk(&host->view, index);
    if (chunk && chunk->counts)
        atomic_fetch_sub(&channel->backlog, 1);
    channel_put_chunk(&host->view, channel, index);
    atomic_fetch_add(&channel->freed, 1);
    if (atomic_load(&channel->waiters) != 0 &&
        atomic_load_explicit(&channel->backlog, memory_order_relaxed) <= CHANNEL_RELIEF)
        syscall(SYS_futex, &channel->freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void host_free_process(struct host *host, uint32_t index)
{
    struct channel *channel = host->channel;
    atomic_store_explicit(&channel_process(&host->view, index)->state, SLOT_FREE,
                          memory_order_release);
    if (index > CHANNEL_PROCESSES) /* a copy's slot is freed with its process's */
        return;
    channel_put(&host->view, &channel->free_processes, index, channel_process_link);
    atomic_store(&channel->is_full, 0);
    atomic_fetch_add(&channel->slots_freed, 1);
    if (atomic_load(&channel->slot_waiters) != 0)
        syscall(SYS_futex, &channel->slots_freed, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void host_free_thread(struct host *host, uint32_t index)
{
    struct thread_slot *slot = channel_thread(&host->view, index);
    host->threads[index] = NULL;
    atomic_store(&slot->pending, 0);
    atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
    channel_put(&host->view, &host->channel->free_threads, index, channel_thread_link);
}

bool host_sleep(struct host *host, uint32_t attention, int milliseconds)
{
    struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    return syscall(SYS_futex, &host->channel->attention, FUTEX_WAIT, attention, &time, NULL, 0) !=
               0 &&
           errno == ETIMEDOUT;
}

bool stream_break(struct stream *stream)
{
    stream->is_broken = true;
    stream->committed = stream->word;
    return false;
}

/* Goes to the first or the next chunk. Returns false if there is none yet. */
static bool host_advance_stream(struct stream *stream, struct host *host, uint32_t next)
{
    if (next == CHANNEL_NONE)
        return false;
    const struct chunk *chunk = next <= CHANNEL_CHUNKS ? channel_chunk(&host->view, next) : NULL;
    if (!chunk)
        return stream_break(stream);
    if (stream->index != CHANNEL_NONE)
        host_free_chunk(host, stream->index);
    stream->index = next;
    stream->chunk = chunk;
    stream->word = stream->committed = 0;
    return true;
}

bool stream_look(struct stream *stream, struct host *host, _Atomic uint32_t *first)
{
    host->looks++;
    if (stream->is_broken)
        return false;
    if (stream->index == CHANNEL_NONE &&
        !host_advance_stream(stream, host, atomic_load_explicit(first, memory_order_acquire)))
        return false;
    /* At most one hop to the next chunk: a malicious writer could link empty chunks for ever. */
    for (int hop = 0; hop < 2; hop++) {
        const struct chunk *chunk = stream->chunk;
        /* `next` before `committed`: once it is set, no more is committed here. */
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        uint32_t committed = atomic_load_explicit(&chunk->committed, memory_order_acquire) / 8;
        if (committed > channel_chunk_words(stream->index) || committed < stream->word)
            return stream_break(stream);
        stream->committed = committed;
        if (committed > stream->word)
            return true;
        if (!host_advance_stream(stream, host, next))
            return false;
    }
    return false;
}

void stream_close(struct stream *stream, struct host *host, _Atomic uint32_t *first)
{
    const uint32_t limit = CHANNEL_CHUNKS;
    uint32_t index = stream->index;
    if (index == CHANNEL_NONE)
        index = atomic_load_explicit(first, memory_order_acquire);
    /* The limit ends the loop if a program has linked the chain into a ring. */
    for (uint32_t i = 0; i < limit && index != CHANNEL_NONE && index <= limit; i++) {
        const struct chunk *chunk = channel_chunk(&host->view, index);
        if (!chunk)
            break;
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        host_free_chunk(host, index);
        index = next;
    }
    stream->index = CHANNEL_NONE;
    stream->chunk = NULL;
    atomic_store_explicit(first, CHANNEL_NONE, memory_order_relaxed);
}
