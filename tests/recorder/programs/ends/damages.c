/* SPDX-License-Identifier: MIT */
/*
 * Writes beyond blocks, in the way that the first argument names, and ends as the second one says.
 * The blocks `first`, `second`, `third` and `fourth` lie one behind the other, at the end of the
 * heap.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A block that large has a mapping of its own, of which SLACK bytes are left at the end. */
enum { SMALL = 24, LARGE = 1500, MAPPED = 200000, SLACK = 688, MAPPING = MAPPED + 16 + SLACK };

__attribute__((noinline)) static char *make(size_t size)
{
    char *volatile block = malloc(size);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static char *make_victim(size_t size)
{
    char *volatile block = malloc(size);
    memset(block, 1, size);
    return block;
}

/* Writes without the compiler's or the C library's knowledge of sizes. */
__attribute__((noinline)) static void put(volatile char *at, size_t size, char byte)
{
    for (size_t i = 0; i < size; i++)
        at[i] = byte;
}

/* Blocks with mappings of their own: the system puts a new one right before the one before. */
static void damage_mapped(const char *way)
{
    char *volatile upper = make_victim(MAPPED), *volatile lower = make(MAPPED);
    if (upper - lower != MAPPING)
        exit(2);
    if (strcmp(way, "mapped-other") == 0) { /* memory of the program, in the place of the block */
        char *page = upper - 16;
        free(upper);
        void *mapping = mmap(page, MAPPING, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        put(mapping, MAPPING, 'A');
        return;
    }
    put(lower + MAPPED, SLACK + (strcmp(way, "mapped-letter") == 0 ? 9 : 16), 'A');
    if (strcmp(way, "mapped-free") == 0)
        free(upper);
}

/* Blocks of an arena whose thread ends. */
static void *make_in_thread(void *argument)
{
    char **blocks = argument;
    blocks[0] = make(SMALL);
    blocks[1] = make_victim(SMALL);
    return NULL;
}

static void damage_arena(char *blocks[4])
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_in_thread, blocks) != 0 ||
        pthread_join(thread, NULL) != 0)
        exit(2);
    put(blocks[0] + SMALL, 8, 'A');
}

static void damage(const char *way, char *blocks[4])
{
    if (strcmp(way, "zero") == 0) /* as strcpy() does that forgets the end of the text */
        put(blocks[0] + SMALL, 1, 0);
    else if (strcmp(way, "letter") == 0) /* the size is then that of this block and the next */
        put(blocks[0] + SMALL, 1, 'A');
    else if (strcmp(way, "text") == 0)
        put(blocks[0], SMALL + 16, 'A');
    else if (strcmp(way, "before") == 0) /* its own header */
        put(blocks[1] - 1, 1, 7);
    else if (strcmp(way, "two") == 0) {
        put(blocks[0] + SMALL, 1, 'A');
        put(blocks[2] + SMALL, 1, 0);
    } else if (strcmp(way, "top") == 0)
        put(blocks[3], SMALL + 24, 'A');
    else if (strcmp(way, "derived") ==
             0) { /* the rest of the last chunk, of which blocks are made */
        put(blocks[3] + SMALL, 1, 0x51);
        blocks[3] = make(SMALL);
    } else if (strcmp(way, "free") == 0) {
        char *before = make(LARGE), *volatile free_block = make(LARGE),
             *volatile behind = make(SMALL);
        free(free_block);
        put(before, LARGE + 30, 'C');
        (void)behind;
    } else if (strcmp(way, "released") == 0) { /* nobody knows who was it */
        free(blocks[0]);
        put(blocks[0] + SMALL, 8, 'B');
    } else if (strcmp(way, "released-between") == 0) { /* live blocks before and behind */
        free(blocks[1]);
        put(blocks[1] + SMALL, 8, 'B');
    } else if (strcmp(way, "released-both") == 0) { /* no live block has the header */
        free(blocks[2]);
        free(blocks[1]);
        put(blocks[1] + SMALL, 8, 'B');
    } else if (strcmp(way, "arena") == 0) {
        damage_arena(blocks);
    } else if (strncmp(way, "mapped", 6) == 0)
        damage_mapped(way);
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "", *end = count > 2 ? arguments[2] : "";
    char *blocks[4] = {make(SMALL), make_victim(SMALL), make(SMALL), make(SMALL)};
    damage(way, blocks);
    if (strcmp(end, "free") == 0)
        free(blocks[0]);
    if (strcmp(end, "malloc") == 0)
        make(100000);
    if (strcmp(end, "realloc") == 0)
        return !realloc(blocks[0], LARGE);
    return 0;
}
