/* SPDX-License-Identifier: MIT */
/* Many children that end at the same time. Of the blocks of each one is held by a word of shared
 * memory alone, and one by nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 40, SHARED = 24 << 20, APART = 300000 };

static void *volatile lost;

__attribute__((noinline)) static void allocate(char *place)
{
    void *held = malloc(4321);
    memcpy(place, &held, sizeof held);
    lost = malloc(1234);
    lost = NULL;
}

/* Overwrites what calls have left on the stack and in registers. */
__attribute__((noinline)) static void forget(void)
{
    char bytes[4096];
    memset(bytes, 0, sizeof bytes);
    __asm__ volatile("" ::"r"(bytes) : "memory");
}

int main(void)
{
    int ends[2];
    char byte;
    char *shared = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(ends) != 0)
        return 1;
    memset(shared, 1, SHARED);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() != 0)
            continue;
        close(ends[1]);
        allocate(shared + i * (APART + 8)); /* in any place of a page */
        forget();
        return read(ends[0], &byte, 1) != 0; /* until all are there */
    }
    close(ends[0]);
    close(ends[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
