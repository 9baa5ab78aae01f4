/* SPDX-License-Identifier: MIT */
/* Gives a block to the kernel, by a queue of the kind that the argument names, and forgets it. */
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_PERMITTED = 77 };

static int pipe_end(void)
{
    int ends[2];

    return pipe(ends) == 0 ? ends[0] : -1;
}

static char received[8];

static int submit_to_ring(bool is_unmapped)
{
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    size_t size = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    char *queue = ring < 0 ? MAP_FAILED
                           : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                                  (off_t)IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry =
        ring < 0 ? MAP_FAILED
                 : mmap(NULL, parameters.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE,
                        MAP_SHARED, ring, (off_t)IORING_OFF_SQES);

    if (queue == MAP_FAILED || entry == MAP_FAILED)
        return NOT_PERMITTED;
    entry->opcode = IORING_OP_READ;
    entry->fd = pipe_end();
    entry->addr = (unsigned long)received;
    entry->len = 1;
    entry->user_data = (unsigned long)malloc(40);
    *(volatile unsigned *)(queue + parameters.sq_off.tail) = 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
        return NOT_PERMITTED;
    memset(entry, 0, sizeof *entry);
    if (is_unmapped) {
        munmap(entry, parameters.sq_entries * sizeof *entry);
        munmap(queue, size);
    }
    return 0;
}

/* Reading a pipe waits for it: AIO may not be asked for that, and an idle queue does as well. */
static int submit_to_aio(void)
{
    static aio_context_t context;
    void *volatile block = malloc(40);

    if (!block)
        abort();
    block = NULL;
    return syscall(SYS_io_setup, 4, &context) == 0 ? 0 : NOT_PERMITTED;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    int status = strcmp(kind, "aio") == 0 ? submit_to_aio()
                                          : submit_to_ring(strcmp(kind, "unmapped ring") == 0);

    if (status == 0)
        puts("submitted");
    return status;
}
