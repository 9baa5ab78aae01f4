/* SPDX-License-Identifier: MIT */
/* Holds five blocks only in shared memory whose pages are not in its page table when it ends: with
 * "unmapped" since it wrote them by another mapping, with "fork" in a child, with "dropped" since
 * it had the system drop them, with "read only" by a mapping by which it cannot write, with "short"
 * by one that is longer than the file; with "threads" there is another thread as well. The second
 * argument is the size in kB; the third, if any, the descriptor of the memory. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void **shared;

static void __attribute__((noinline)) hold(void **words)
{
    for (int i = 0; i < 5; i++)
        words[32 * i] = malloc(300);
}

static void __attribute__((noinline)) clear_stack(void)
{
    char bytes[8192];
    memset(bytes, 0, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

static void hold_by_another(int file, size_t size)
{
    void **other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    hold(other);
    munmap(other, size);
}

static void *sleep_on(void *unused)
{
    pause();
    return unused;
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    size_t size = count > 2 ? strtoul(arguments[2], NULL, 10) * 1024 : 0;
    int file = count > 3 ? atoi(arguments[3]) : memfd_create("shared", 0);
    pthread_t thread;
    if (strcmp(way, "threads") == 0 && pthread_create(&thread, NULL, sleep_on, NULL) != 0)
        return 1;
    bool is_short = strcmp(way, "short") == 0;
    size_t file_size = is_short ? 64 * 1024 : size;
    if (ftruncate(file, (off_t)file_size) != 0)
        return 1;
    bool is_read_only = is_short || strcmp(way, "read only") == 0;
    shared =
        mmap(NULL, size, is_read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (is_read_only || strcmp(way, "unmapped") == 0)
        hold_by_another(file, file_size);
    else
        hold(shared);
    if (strcmp(way, "dropped") == 0 || strcmp(way, "threads") == 0)
        madvise(shared, size, MADV_DONTNEED);
    clear_stack();
    if (strcmp(way, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) /* it is recorded if it allocates */
            free(malloc(5));
        waitpid(child, NULL, 0);
    }
    return 0;
}
