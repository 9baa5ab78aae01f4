/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Linux 6.7; headers may be older. */
struct scan_region {
    uint64_t begin, end, categories;
};

struct scan_arguments {
    uint64_t size, flags;
    uint64_t start, end, walk_end;
    uint64_t regions, region_count;
    uint64_t max_pages;
    uint64_t inverted, all_of, any_of, returned;
};

#define SCAN_IOCTL _IOWR('f', 16, struct scan_arguments)

enum { SCAN_FILE = 1 << 2, SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4, SCAN_ZERO = 1 << 5 };

/* Entries of the page map. */
#define ENTRY_TOUCHED (UINT64_C(3) << 62)
#define ENTRY_FILE    (UINT64_C(1) << 61)
enum { ENTRIES = 4096 };

bool memory_open(struct memory *memory, uint32_t pid, uint32_t tid)
{
    char path[64];
    *memory = (struct memory){.tid = tid, .file = -1, .has_scan = true};
    snprintf(path, sizeof path, "/proc/%u/task/%u/pagemap", pid, tid);
    memory->pagemap = open(path, O_RDONLY | O_CLOEXEC);
    if (memory->pagemap < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%u/task/%u/mem", pid, tid);
    memory->direct = open(path, O_RDONLY | O_CLOEXEC);
    /* More is asked for when memory is read than when this file is opened. */
    char byte;
    struct iovec here = {&byte, 1}, there = {NULL, 1};
    if (process_vm_readv((pid_t)tid, &here, 1, &there, 1, 0) == 1 || errno == EFAULT)
        return true;
    int reason = errno;
    memory_close(memory);
    errno = reason;
    return false;
}

bool memory_open_copy(struct memory *memory, uint32_t pid)
{
    char path[64];
    if (!memory_open(memory, pid, pid))
        return false;
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    memory->file = open(path, O_RDONLY | O_CLOEXEC);
    if (memory->file < 0)
        close(memory->pagemap);
    return memory->file >= 0;
}

void memory_close(struct memory *memory)
{
    if (memory->file >= 0)
        close(memory->file);
    close(memory->pagemap);
    if (memory->direct >= 0)
        close(memory->direct);
}

bool memory_is_late(const struct memory *memory)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return memory->deadline != 0 &&
           (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > memory->deadline;
}

/* Reads ranges, one behind the other, up to the first page that is not there. Returns the number of
 * bytes; negative if there are none. */
static ssize_t read_ranges(const struct memory *memory, struct iovec here,
                           const struct iovec *there, size_t count)
{
    if (memory->file < 0)
        return process_vm_readv((pid_t)memory->tid, &here, 1, there, count, 0);
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t part = 0; part < there[i].iov_len;) {
            ssize_t got = pread(memory->file, (char *)here.iov_base + done, there[i].iov_len - part,
                                (off_t)there[i].iov_base + (off_t)part);
            if (got == 0) /* the process is gone */
                errno = ESRCH;
            if (got <= 0)
                return done != 0 ? (ssize_t)done : -1;
            part += (size_t)got;
            done += (size_t)got;
        }
    }
    return (ssize_t)done;
}

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
    if (memory_is_late(memory))
        return false;
    struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)address, size};
    return read_ranges(memory, here, &there, 1) == (ssize_t)size;
}

/* Asks the system for the spans: pages without any of the categories in `without`. */
static size_t scan(struct memory *memory, uint64_t *begin, uint64_t end, uint64_t without,
                   struct memory_span spans[MEMORY_SPANS])
{
    struct scan_region regions[MEMORY_SPANS];
    struct scan_arguments arguments = {
        .size = sizeof arguments,
        .start = *begin,
        .end = end,
        .regions = (uintptr_t)regions,
        .region_count = MEMORY_SPANS,
        .inverted = without,
        .all_of = without,
        .any_of = SCAN_PRESENT | SCAN_SWAPPED,
        .returned = SCAN_PRESENT,
    };
    int count = ioctl(memory->pagemap, SCAN_IOCTL, &arguments);
    if (count < 0 || arguments.walk_end <= *begin || arguments.walk_end > end) {
        memory->has_scan = false;
        return 0;
    }
    /* Some systems end the walk before the end of the last span, which the next begins with. */
    size_t kept = 0;
    for (int i = 0; i < count; i++) {
        uint64_t from = regions[i].begin > *begin ? regions[i].begin : *begin;
        if (from < regions[i].end)
            spans[kept++] = (struct memory_span){from, *begin = regions[i].end};
    }
    *begin = arguments.walk_end > *begin ? arguments.walk_end : *begin;
    return kept;
}

/* Finds the spans in the page map: pages whose entries have no bit of `without`. */
static size_t look(const struct memory *memory, uint64_t *begin, uint64_t end, uint64_t without,
                   struct memory_span spans[MEMORY_SPANS])
{
    uint64_t entries[ENTRIES];
    size_t count = 0, wanted = (end - *begin) / MEMORY_PAGE;
    wanted = wanted < ENTRIES ? wanted : ENTRIES;
    ssize_t size = pread(memory->pagemap, entries, wanted * sizeof *entries,
                         (off_t)(*begin / MEMORY_PAGE * sizeof *entries));
    if (size <= 0) { /* the process is gone */
        *begin = end;
        return 0;
    }
    uint64_t at = *begin;
    for (size_t i = 0; i < (size_t)size / sizeof *entries; i++, at += MEMORY_PAGE) {
        if ((entries[i] & ENTRY_TOUCHED) == 0 || (entries[i] & without) != 0)
            continue;
        if (count > 0 && spans[count - 1].end == at) {
            spans[count - 1].end += MEMORY_PAGE;
            continue;
        }
        if (count == MEMORY_SPANS)
            break;
        spans[count++] = (struct memory_span){at, at + MEMORY_PAGE};
    }
    *begin = at;
    return count;
}

size_t memory_touched(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    uint64_t from = *begin;
    if (memory->has_scan) {
        size_t count = scan(memory, begin, end, SCAN_ZERO, spans);
        if (memory->has_scan)
            return count;
        *begin = from;
    }
    return look(memory, begin, end, 0, spans);
}

size_t memory_written(const struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    struct memory asked = *memory;
    uint64_t from = *begin;
    if (asked.has_scan) {
        size_t count = scan(&asked, begin, end, SCAN_ZERO | SCAN_FILE, spans);
        if (asked.has_scan)
            return count;
        *begin = from;
    }
    return look(&asked, begin, end, ENTRY_FILE, spans);
}

uint64_t memory_batch_add(struct memory_batch *batch, uint64_t address, uint64_t size, uint32_t tag)
{
    uint64_t room = MEMORY_BATCH - batch->used;
    size = size < room ? size : room;
    if (batch->count == MEMORY_SPANS || size == 0)
        return 0;
    batch->pieces[batch->count++] =
        (struct memory_piece){address, (uint32_t)size, batch->used, tag};
    batch->used += (uint32_t)size;
    return size;
}

void memory_batch_clear(struct memory_batch *batch)
{
    batch->count = 0;
    batch->used = 0;
    memset(batch->holes, 0, sizeof batch->holes);
}

/* Reads the pieces from the byte `done` of the batch on, which lies in the piece `first`. Returns
 * how many bytes were read. */
static size_t read_from(struct memory_batch *batch, const struct memory *memory, size_t first,
                        uint32_t done)
{
    struct iovec there[MEMORY_SPANS], here = {batch->bytes + done, batch->used - done};
    size_t count = 0;
    for (size_t i = first; i < batch->count; i++) {
        const struct memory_piece *piece = &batch->pieces[i];
        uint32_t skip = i == first ? done - piece->at : 0;
        there[count++] =
            (struct iovec){(void *)(uintptr_t)(piece->address + skip), piece->size - skip};
    }
    ssize_t got = read_ranges(memory, here, there, count);
    if (got < 0 && (errno == ESRCH || errno == EPERM))
        batch->is_gone = true;
    return got > 0 ? (size_t)got : 0;
}

void memory_batch_read(struct memory_batch *batch, const struct memory *memory)
{
    uint32_t done = 0;
    for (size_t i = 0; done < batch->used;) {
        if (!batch->is_gone)
            done += (uint32_t)read_from(batch, memory, i, done);
        while (i < batch->count && done >= batch->pieces[i].at + batch->pieces[i].size)
            i++;
        if (i == batch->count)
            break;
        /* Goes on behind the page that is not there. */
        const struct memory_piece *piece = &batch->pieces[i];
        uint32_t left = piece->at + piece->size - done;
        uint64_t address = piece->address + (done - piece->at);
        uint32_t hole = MEMORY_PAGE - (uint32_t)(address % MEMORY_PAGE);
        hole = batch->is_gone || hole > left ? left : hole;
        ssize_t got =
            batch->is_gone ? 0 : pread(memory->direct, batch->bytes + done, left, (off_t)address);
        if (got > 0) {
            done += (uint32_t)got;
            continue;
        }
        memset(batch->bytes + done, 0, hole);
        for (uint32_t at = done; at < done + hole; at += MEMORY_PAGE)
            batch->holes[at / MEMORY_PAGE / 64] |= UINT64_C(1) << at / MEMORY_PAGE % 64;
        batch->missing += hole;
        done += hole;
        i += hole == left;
    }
}
