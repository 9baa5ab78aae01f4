/* SPDX-License-Identifier: MIT */
/* Writes beyond the end of the block that one of five functions made, by its number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAKER(name, size)                                                                          \
    __attribute__((noinline)) static char *name(void)                                              \
    {                                                                                              \
        char *volatile block = malloc(size);                                                       \
        return block;                                                                              \
    }
MAKER(make_first, 24)
MAKER(make_second, 40)
MAKER(make_third, 56)
MAKER(make_fourth, 72)
MAKER(make_fifth, 104)

int main(int argc, char **argv)
{
    char *blocks[] = {make_first(),  make_second(), make_third(),
                      make_fourth(), make_fifth(),  malloc(200)};
    static const size_t sizes[] = {24, 40, 56, 72, 104};
    int way = argc == 2 ? atoi(argv[1]) : 0;
    volatile size_t end = sizes[way];
    char *volatile block = blocks[way];
    if (way == 0)
        block[end] = 0; /* the end of a text */
    else if (way == 1)
        ((int *)block)[end / sizeof(int)] = 12345; /* one element too many */
    else if (way == 2)
        memset(block, 'A', end + 8);
    else if (way == 3)
        sprintf(block, "%0*d", (int)end + 3, 7);
    else
        for (size_t i = 0; i <= end; i++)
            block[i] = 'B';
    puts(blocks[5] ? "done" : "");
    return 0;
}
