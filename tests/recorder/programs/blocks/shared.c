/* SPDX-License-Identifier: MIT */
/* Holds 20,000 blocks by as many words of one variable. */
#include <stdlib.h>

static void *volatile shared[20000];

int main(void)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        shared[i] = malloc(24);
    return 0;
}
