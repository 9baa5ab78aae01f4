/* SPDX-License-Identifier: MIT */
/*
 * Calls all the time, until its input ends: threads that allocate, that come and go, that fork,
 * that load and unload a module, that wait; and a signal every few milliseconds. Each block's
 * contents are looked after. Exits 0 if nothing was wrong.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 32 };

static atomic_bool is_over;
static atomic_ulong mistakes;

static void check(const unsigned char *block, size_t size, int value)
{
    for (size_t i = 0; i < size; i += 97)
        if (block[i] != (unsigned char)value)
            mistakes++;
}

static void work(unsigned seed, int count)
{
    unsigned char *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    for (; count > 0; count--) {
        seed = seed * 1103515245 + 12345;
        int i = (int)(seed / 65536 % BLOCKS);
        size_t size = seed / 256 % 3000 + 1, common = size < sizes[i] ? size : sizes[i];
        if (blocks[i] && seed % 4 == 0) {
            blocks[i] = realloc(blocks[i], size);
            check(blocks[i], common, i);
        } else {
            if (blocks[i])
                check(blocks[i], sizes[i], i);
            free(blocks[i]);
            blocks[i] = seed % 8 < 3   ? malloc(size)
                        : seed % 8 < 6 ? calloc(1, size)
                                       : aligned_alloc(64, (size + 63) / 64 * 64);
        }
        sizes[i] = size;
        memset(blocks[i], i, size);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static void *work_always(void *number)
{
    for (unsigned seed = (unsigned)(size_t)number; !is_over; seed++)
        work(seed, 5000);
    return NULL;
}

static void *work_once(void *number)
{
    work((unsigned)(size_t)number, 1000);
    return NULL;
}

static void *begin_threads(void *unused)
{
    for (size_t i = 0; !is_over; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work_once, (void *)i) == 0)
            pthread_join(thread, NULL);
    }
    return unused;
}

static void *fork_children(void *unused)
{
    while (!is_over) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            work(7, 100);
            _exit(7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 7 << 8)
            mistakes++;
        usleep(5000);
    }
    return unused;
}

static void *load_modules(void *path)
{
    while (!is_over) {
        void *module = dlopen(path, RTLD_NOW);
        work(9, 50);
        if (!module || dlclose(module) != 0)
            mistakes++;
        usleep(3000);
    }
    return NULL;
}

static void *wait_often(void *unused)
{
    sigset_t often;
    sigemptyset(&often);
    sigaddset(&often, SIGVTALRM);
    pthread_sigmask(SIG_BLOCK, &often, NULL);
    while (!is_over)
        if (usleep(4000) != 0)
            mistakes++;
    return unused;
}

static void on_signal(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    const struct itimerval often = {{0, 3000}, {0, 3000}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t threads[6];
    char byte;
    if (argc != 2)
        return 2;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    sigaction(SIGVTALRM, &action, NULL);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    pthread_create(&threads[0], NULL, work_always, (void *)1);
    pthread_create(&threads[1], NULL, work_always, (void *)2);
    pthread_create(&threads[2], NULL, begin_threads, NULL);
    pthread_create(&threads[3], NULL, fork_children, NULL);
    pthread_create(&threads[4], NULL, load_modules, argv[1]);
    pthread_create(&threads[5], NULL, wait_often, NULL);
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    is_over = true;
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    return mistakes != 0;
}
