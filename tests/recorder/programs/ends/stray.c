/* SPDX-License-Identifier: MIT */
/* Dies in the way that the argument names: uses a released block whose memory is unmapped, or one
 * that has a stray pointer in it, or releases a part of a variable, or a block behind one that it
 * has written beyond. It survives the release of a variable that looks like a block. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 16 << 20, OFFSET = 4096, SMALL = 40 };

struct node {
    struct node *next;
    char *text;
};

__attribute__((noinline)) static char *make(size_t size)
{
    return malloc(size);
}

__attribute__((noinline)) static void drop(void *block)
{
    free(block);
}

__attribute__((noinline)) static char use(const char *block)
{
    return ((const volatile char *)block)[OFFSET];
}

__attribute__((noinline)) static char follow(const struct node *node)
{
    return *((const volatile struct node *)node)->text;
}

static char table[256];

/* A part of a variable that the C library takes for a block of 56 bytes. */
static struct {
    uint64_t before, size;
    char text[48];
    uint64_t end[2];
} __attribute__((aligned(16))) disguised = {.size = 65};

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    char *volatile block = make(strcmp(way, "unmapped") == 0 ? LARGE : SMALL);
    char *volatile second = make(SMALL);
    if (strcmp(way, "unmapped") == 0) {
        drop(block);
        return use(block);
    }
    if (strcmp(way, "poisoned") == 0) {
        ((struct node *)block)->text = (char *)(uintptr_t)0xDEADBEEFDEADBEEF;
        return follow((const struct node *)block);
    }
    if (strcmp(way, "variable") == 0) {
        drop(&table[64]);
        return 0;
    }
    if (strcmp(way, "disguised") == 0) {
        drop(disguised.text);
        return 0;
    }
    for (volatile char *at = block; at < block + 3 * SMALL; at++)
        *at = 'x';
    drop(second);
    return 0;
}
