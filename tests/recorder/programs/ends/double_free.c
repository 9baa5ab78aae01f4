/* SPDX-License-Identifier: MIT */
/* The C library aborts in the second free: a call that never returns. */
#include <stdlib.h>

int main(void)
{
    void *volatile block = malloc(10);
    free(block);
    free(block);
    return 0;
}
