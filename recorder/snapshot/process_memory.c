/* SPDX-License-Identifier: MIT */
#include "snapshot/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/process_image.h"
#include "snapshot/process_reader.h"

enum { NOT_OPENED = -1, CANNOT_BE_OPENED = -2 };

/* Opens a file of the process, as its thread sees it. The first thread needs no directory of its
 * own: the system would make it first. */
static int process_memory_open_of(const struct memory *memory, const char *name)
{
    char path[64];
    if (memory->tid == memory->pid)
        snprintf(path, sizeof path, "/proc/%u/%s", memory->pid, name);
    else
        snprintf(path, sizeof path, "/proc/%u/task/%u/%s", memory->pid, memory->tid, name);
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    reader_leave();
    return file;
}

/* Reads ranges by the system call of that name. */
static ssize_t memory_read_vectors(uint32_t tid, const struct iovec *local,
                                   const struct iovec *remote, size_t count)
{
    reader_enter();
    ssize_t size = process_vm_readv((pid_t)tid, local, count, remote, count, 0);
    reader_leave();
    return size;
}

/* Reads from the file of the memory. */
static ssize_t memory_read_file(int file, uint64_t address, void *bytes, size_t size)
{
    reader_enter();
    ssize_t read_size = pread(file, bytes, size, (off_t)address);
    reader_leave();
    return read_size;
}

bool memory_open(struct memory *memory, uint32_t pid, uint32_t tid)
{
    *memory =
        (struct memory){.pid = pid, .tid = tid, .file = -1, .direct = NOT_OPENED, .has_scan = true};
    memory->pagemap = process_memory_open_of(memory, "pagemap");
    if (memory->pagemap < 0)
        return false;
    /* More is asked for when memory is read than when this file is opened. */
    char byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};
    if (memory_read_vectors(tid, &local, &remote, 1) == 1 || errno == EFAULT)
        return true;
    int reason = errno;
    memory_close(memory);
    errno = reason;
    return false;
}

void memory_spare(struct memory *memory)
{
    memory->file = process_memory_open_of(memory, "mem");
}

bool memory_open_copy(struct memory *memory, uint32_t pid)
{
    if (!memory_open(memory, pid, pid))
        return false;
    memory_spare(memory);
    if (memory->file < 0)
        memory_close(memory);
    return memory->file >= 0;
}

void memory_close(struct memory *memory)
{
    if (memory->file >= 0)
        close(memory->file);
    close(memory->pagemap);
    if (memory->direct >= 0)
        close(memory->direct);
    image_free(memory->image);
    memory->image = NULL;
}

bool memory_is_late(const struct memory *memory)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return memory->deadline != 0 &&
           (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > memory->deadline;
}

ssize_t memory_read_ranges(const struct memory *memory, const struct iovec *local,
                           const struct iovec *remote, size_t count)
{
    if (memory->file < 0)
        return memory_read_vectors(memory->tid, local, remote, count);
    size_t read_size = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t part = 0; part < remote[i].iov_len;) {
            ssize_t size =
                memory_read_file(memory->file, (uintptr_t)remote[i].iov_base + part,
                                 (char *)local[i].iov_base + part, remote[i].iov_len - part);
            if (size == 0) /* the process is gone */
                errno = ESRCH;
            if (size <= 0)
                return read_size != 0 ? (ssize_t)read_size : -1;
            part += (size_t)size;
            read_size += (size_t)size;
        }
    }
    return (ssize_t)read_size;
}

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
    if (memory_is_late(memory))
        return false;
    if (memory->image && image_read(memory->image, address, bytes, size))
        return true;
    struct iovec local = {bytes, size}, remote = {(void *)(uintptr_t)address, size};
    return memory_read_ranges(memory, &local, &remote, 1) == (ssize_t)size;
}

uint64_t memory_batch_add(struct memory_batch *batch, uint64_t address, uint64_t size, uint32_t tag)
{
    uint64_t room = MEMORY_BATCH - batch->used;
    size = size < room ? size : room;
    if (batch->count == MEMORY_SPANS || size == 0)
        return 0;
    batch->pieces[batch->count++] = (struct memory_piece){
        .address = address, .size = (uint32_t)size, .at = batch->used, .tag = tag};
    batch->used += (uint32_t)size;
    return size;
}

void memory_batch_clear(struct memory_batch *batch)
{
    batch->count = 0;
    batch->used = 0;
    memset(batch->holes, 0, sizeof batch->holes);
}

/* The next byte to be read of a batch. */
struct piece_cursor {
    size_t piece;
    uint32_t offset; /* in the piece */
};

/* Moves on over bytes that are read, and over pieces that are known. */
static void process_memory_move_on(const struct memory_batch *batch, struct piece_cursor *cursor,
                                   size_t size)
{
    for (; cursor->piece < batch->count; cursor->piece++, cursor->offset = 0) {
        const struct memory_piece *piece = &batch->pieces[cursor->piece];
        if (piece->is_known)
            continue;
        uint32_t remaining = piece->size - cursor->offset;
        if (size < remaining) {
            cursor->offset += (uint32_t)size;
            return;
        }
        size -= remaining;
    }
}

/* Reads pieces that are not known yet and read in the same way, from the cursor on; that moves to
 * where the reading ended. Returns whether all of them were read. */
static bool process_memory_read_from(struct memory_batch *batch, const struct memory *memory,
                                     struct piece_cursor *cursor)
{
    struct iovec local[MEMORY_SPANS], remote[MEMORY_SPANS];
    size_t count = 0;
    ssize_t wanted = 0;
    for (size_t i = cursor->piece; i < batch->count; i++) {
        const struct memory_piece *piece = &batch->pieces[i];
        uint32_t skip = i == cursor->piece ? cursor->offset : 0;
        if (piece->is_known)
            continue;
        if (piece->is_shared != batch->pieces[cursor->piece].is_shared)
            break;
        local[count] = (struct iovec){batch->bytes + piece->at + skip, piece->size - skip};
        remote[count++] =
            (struct iovec){(void *)(uintptr_t)(piece->address + skip), piece->size - skip};
        wanted += piece->size - skip;
    }
    ssize_t size = batch->pieces[cursor->piece].is_shared
                       ? memory_read_vectors(memory->tid, local, remote, count)
                       : memory_read_ranges(memory, local, remote, count);
    if (size < 0 && (errno == ESRCH || errno == EPERM))
        batch->is_gone = true;
    process_memory_move_on(batch, cursor, size > 0 ? (size_t)size : 0);
    return size == wanted;
}

/* Reads memory that the program has protected. */
static ssize_t process_memory_read_protected(struct memory *memory, uint64_t address, void *bytes,
                                             size_t size)
{
    if (memory->direct == NOT_OPENED)
        memory->direct = process_memory_open_of(memory, "mem");
    if (memory->direct < 0)
        memory->direct = CANNOT_BE_OPENED;
    return memory_read_file(memory->direct, address, bytes, size);
}

/* Moves on over a page that could not be read like others. */
static void process_memory_pass_hole(struct memory_batch *batch, struct memory *memory,
                                     struct piece_cursor *cursor)
{
    const struct memory_piece *piece = &batch->pieces[cursor->piece];
    uint32_t remaining = piece->size - cursor->offset, begin = piece->at + cursor->offset;
    uint64_t address = piece->address + cursor->offset;
    uint32_t hole = MEMORY_PAGE - (uint32_t)(address % MEMORY_PAGE);
    hole = batch->is_gone || hole > remaining ? remaining : hole;
    ssize_t size =
        batch->is_gone || piece->is_device
            ? 0
            : process_memory_read_protected(memory, address, batch->bytes + begin, remaining);
    if (size > 0) {
        process_memory_move_on(batch, cursor, (size_t)size);
        return;
    }
    memset(batch->bytes + begin, 0, hole);
    for (uint32_t offset = begin; offset < begin + hole; offset += MEMORY_PAGE)
        batch->holes[offset / MEMORY_PAGE / 64] |= UINT64_C(1) << offset / MEMORY_PAGE % 64;
    batch->missing += piece->may_lack ? 0 : hole;
    process_memory_move_on(batch, cursor, hole);
}

/* Takes the bytes of a piece from the image, if it has them. */
static void process_memory_take_known(struct memory_batch *batch, const struct memory_image *image,
                                      struct memory_piece *piece)
{
    const unsigned char *bytes =
        batch->may_borrow ? image_find(image, piece->address, piece->size) : NULL;
    piece->is_known =
        bytes || image_read(image, piece->address, batch->bytes + piece->at, piece->size);
    if (bytes)
        piece->bytes = bytes;
}

void memory_batch_read(struct memory_batch *batch, struct memory *memory)
{
    struct piece_cursor cursor = {0, 0};
    for (size_t i = 0; i < batch->count; i++) {
        batch->pieces[i].bytes = batch->bytes + batch->pieces[i].at;
        if (memory->image)
            process_memory_take_known(batch, memory->image, &batch->pieces[i]);
    }
    process_memory_move_on(batch, &cursor, 0);
    while (cursor.piece < batch->count) {
        if (batch->is_gone || !process_memory_read_from(batch, memory, &cursor))
            process_memory_pass_hole(batch, memory, &cursor);
    }
}
