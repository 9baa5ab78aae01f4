/* SPDX-License-Identifier: MIT */
/* Allocates, says so, and stays until its input ends. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile lost;

__attribute__((noinline)) static void lose_a_block(void)
{
    lost = malloc(100);
}

int main(void)
{
    char byte;
    lose_a_block();
    lost = NULL;
    puts("allocated");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
