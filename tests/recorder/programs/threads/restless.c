/* SPDX-License-Identifier: MIT */
/*
 * Maps, unmaps, writes, allocates and forks in all threads until it is told to stop, and says
 * whether everything that it computed is right. Each page that it fills holds a checksum of itself,
 * so that nobody can take for a page what was never in memory.
 *
 *   restless THREADS [MEGABYTES]    ends when its standard input does; holds so much beside
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, BLOCK_PAGES = 40, SLOTS = 32 };

static atomic_int is_over;
static atomic_uint failures;

/* The first word tells that a page is filled: it is written after all others. The last word is the
 * sum of those before it. */
static const uint64_t mark = UINT64_C(0x7265737453654c46);

static void fill(uint64_t *page, uint64_t seed)
{
    uint64_t sum = mark;
    uint64_t words[WORDS] = {0};
    *(volatile uint64_t *)page = 0;
    atomic_signal_fence(memory_order_seq_cst);
    for (int i = 1; i < WORDS - 1; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        words[i] = seed;
        sum += seed;
    }
    words[WORDS - 1] = sum;
    memcpy(page + 1, words + 1, sizeof words - sizeof *words);
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)page = mark;
}

static int is_right(const uint64_t *page)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS - 1; i++)
        sum += page[i];
    return page[0] == mark && page[WORDS - 1] == sum;
}

static void check(int is_true)
{
    if (!is_true)
        atomic_fetch_add(&failures, 1);
}

/* A block with a mapping of its own: the system takes it back when it is freed. */
static void use_block(void **slot, uint64_t seed)
{
    if (*slot) {
        uint64_t *page = (uint64_t *)(((uintptr_t)*slot + PAGE - 1) / PAGE * PAGE);
        check(is_right(page));
        free(*slot);
    }
    *slot = malloc(BLOCK_PAGES * PAGE);
    fill((uint64_t *)(((uintptr_t)*slot + PAGE - 1) / PAGE * PAGE), seed);
}

static void use_mapping(uint64_t seed)
{
    uint64_t *page =
        mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED);
    fill(page + 3 * WORDS, seed);
    check(is_right(page + 3 * WORDS));
    munmap(page, 8 * PAGE);
}

static void use_fork(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    check(child > 0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* System calls that stop in a tracer's way could come back too early. */
static void use_sleep(void)
{
    struct timespec begin, end, wanted = {.tv_nsec = 1000000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    check(nanosleep(&wanted, NULL) == 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    check((end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec >= 1000000);
    check(poll(NULL, 0, 1) == 0);
}

static void *work(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    void *slots[SLOTS] = {NULL};
    for (unsigned round = 0; !atomic_load(&is_over); round++) {
        use_block(&slots[round % SLOTS], seed += round);
        use_mapping(seed);
        if (round % 64 == seed % 64)
            use_fork();
        if (round % 16 == 0)
            use_sleep();
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
    return NULL;
}

/* Fills a block with pages that stay. */
static void hold(size_t megabytes)
{
    size_t size = megabytes << 20;
    char *block = malloc(size + PAGE);
    char *first = (char *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE);
    for (size_t at = 0; block && at < size; at += PAGE)
        fill((uint64_t *)(first + at), at);
}

int main(int argc, char **argv)
{
    enum { THREADS_MAX = 64 };
    pthread_t threads[THREADS_MAX];
    char byte;
    int count = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2)
        hold(strtoul(argv[2], NULL, 10));
    for (int i = 0; i < count && i < THREADS_MAX; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    atomic_store(&is_over, 1);
    for (int i = 0; i < count && i < THREADS_MAX; i++)
        pthread_join(threads[i], NULL);
    printf("%u failures\n", atomic_load(&failures));
    return 0;
}
