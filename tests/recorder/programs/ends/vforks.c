/* SPDX-License-Identifier: MIT */
/* Ends while a thread waits for the child that it has vforked, and cannot be interrupted. Loses a
 * block. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *run(void *unused)
{
    if (vfork() == 0) {
        for (int i = 0; i < 20; i++)
            usleep(100000);
        _exit(0);
    }
    return unused;
}

/* Allocates the block that is lost, and others that take its place in registers. */
__attribute__((noinline)) static void lose_a_block(void)
{
    void *volatile block = malloc(40);
    for (int i = 0; i < 3; i++) {
        block = malloc(50);
        free(block);
    }
    block = NULL;
}

int main(void)
{
    pthread_t thread;

    lose_a_block();
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        return 1;
    usleep(300000);
    return 0;
}
