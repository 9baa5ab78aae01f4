/* SPDX-License-Identifier: MIT */
/* Allocates, and then waits for the end of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    char c;
    static void *kept[100000];
    for (unsigned i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        free(malloc(i % 1000));
        kept[i] = malloc(i % 100);
    }
    puts("sleeping");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) == 1)
        continue;
    for (unsigned i = 0; i < sizeof kept / sizeof kept[0]; i++)
        free(kept[i]);
    return 0;
}
