/* SPDX-License-Identifier: MIT */
/* Writes beyond the end of a block, and releases the one behind it: the C library aborts. */
#include <stdlib.h>

int main(void)
{
    char *first = malloc(24);
    char *volatile second = malloc(24);
    char *volatile third = malloc(24);
    for (volatile char *at = first; at < first + 48; at++)
        *at = 'x';
    free(second);
    free(third);
    free(first);
    return 0;
}
