/* SPDX-License-Identifier: MIT */
/* Executes itself argv[1] times; each image makes 400 calls, half of them in a thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(77777);
        free(block);
    }
    return unused;
}

int main(int count, char **arguments)
{
    int left = count > 1 ? atoi(arguments[1]) : 0;
    char text[20];
    pthread_t thread;
    work(NULL);
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 2;
    if (left == 0)
        return 0;
    snprintf(text, sizeof text, "%d", left - 1);
    execl("/proc/self/exe", arguments[0], text, (char *)NULL);
    return 2;
}
