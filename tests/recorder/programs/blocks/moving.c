/* SPDX-License-Identifier: MIT */
/*
 * Moves large blocks: by mapping their pages elsewhere, and by a copy where their mapping is split.
 * No call changes errno that would not change it by itself. Exits with 1 if something else happens,
 * and with 77 if the blocks are not moved so here.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 20, MOVES = 10, MARK = 77 };

/* Makes a large block, behind which there is no room: its last word is the end of its mapping. */
static char *make_block(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *block = malloc(size);
    if (!block)
        exit(1);
    uintptr_t end = ((uintptr_t)block + size + page) / page * page;
    memset(block, 1, size);
    /* If something is there already, it is as good. */
    (void)mmap((void *)end, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
               0);
    return block;
}

static char *move(char *block, size_t size)
{
    errno = MARK;
    return realloc(block, size);
}

__attribute__((noinline)) static void remap(void)
{
    for (int i = 0; i < MOVES; i++) {
        char *block = make_block(SIZE);
        uintptr_t before = (uintptr_t)block;
        block = move(block, 4 * SIZE);
        if (!block || errno != MARK || block[SIZE - 1] != 1)
            exit(1);
        if ((uintptr_t)block == before)
            exit(77);
        free(block);
    }
}

/* mremap() takes one mapping only. */
__attribute__((noinline)) static void copy(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *block = make_block(SIZE);
    char *middle = (char *)(((uintptr_t)block + SIZE / 2) / page * page);
    uintptr_t before = (uintptr_t)block;
    if (madvise(middle, page, MADV_DONTFORK) != 0)
        exit(77);
    block = move(block, 4 * SIZE);
    if (!block || block[SIZE - 1] != 1)
        exit(1);
    if ((uintptr_t)block == before || errno == MARK)
        exit(77);
    free(block);
}

int main(void)
{
    /* Otherwise the release of a mapped block raises it. */
    if (mallopt(M_MMAP_THRESHOLD, SIZE / 2) == 0)
        return 77;
    remap();
    copy();
    return 0;
}
