/* SPDX-License-Identifier: MIT */
/*
 * The blocks that are found in a process are those that it says to have: of a program that keeps a
 * list, and of the C library's own count. The program is this one, started with a way of allocating
 * as its argument.
 */
#include <gnu/libc-version.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/known_blocks.h"
#include "support/entropy.h"

enum { THREADS_MAX = 8, FRESH = 3, BLOCKS = 4000, ROUNDS = 60000, CACHE = 648 };

/* Shared by both processes. */
struct report {
    struct known_block blocks[THREADS_MAX][BLOCKS]; /* address 0: none */
    struct memory_span data;                        /* of the C library */
    struct mallinfo2 info;
    unsigned threads;
    uint64_t pointers[THREADS_MAX + FRESH]; /* of the threads; 0 for none */
};

struct way {
    const char *name;
    unsigned threads;
    void (*prepare)(void);
    void (*between)(void); /* halfway, in the main thread */
    const char *tunables;
    bool is_exact;  /* the library counts the same bytes: all blocks are of the main arena */
    bool has_fresh; /* threads that have not released anything: their caches are empty */
};

static struct report *report;
static size_t large_max = 400000; /* bytes of the largest blocks */

/* ---- The program ---- */

static void *allocate(uint64_t random, size_t size)
{
    switch (random % 16) {
    case 0:
        return calloc(1, size);
    case 1:
        return memalign(64, size);
    case 2:
        return memalign(1 << (random / 16 % 16), size);
    default:
        return malloc(size);
    }
}

static size_t choose_size(uint64_t random)
{
    switch (random % 64) {
    case 0:
        return random / 64 % large_max; /* some have mappings of their own */
    case 1:
    case 2:
        return random / 64 % 20000;
    case 3:
        return 640; /* as large as a thread's cache */
    default:
        return random / 64 % 300;
    }
}

/* Allocates and releases at random, and keeps a list. */
static void churn(struct known_block *blocks, uint64_t seed)
{
    struct entropy entropy;
    entropy = entropy_of_seed(seed);
    for (int i = 0; i < ROUNDS; i++) {
        struct known_block *block = &blocks[entropy_next(&entropy) % BLOCKS];
        uint64_t random = entropy_next(&entropy);
        void *old = (void *)block->address;
        if (old && random % 8 == 0) {
            block->address = (uintptr_t)realloc(old, choose_size(random / 8) + 1);
        } else if (old) {
            free(old);
            block->address = 0;
        } else {
            void *made = allocate(random, choose_size(random / 1024));
            if (made && choose_size(random / 1024) >= 8)
                memset(made, (int)random & 3, 8); /* also words that are 0 */
            block->address = (uintptr_t)made;
        }
        block->size = block->address != 0 ? malloc_usable_size((void *)block->address) : 0;
    }
}

/* Fills the bins for small chunks: a thread's cache takes just a few. */
static void fill_bins(void)
{
    enum { COUNT = 20, SMALL_MAX = 120, STEP = 16 };
    void *blocks[COUNT];
    for (size_t size = 24; size <= SMALL_MAX; size += STEP) {
        for (size_t i = 0; i < COUNT; i++)
            blocks[i] = malloc(size);
        for (size_t i = 0; i < COUNT; i++)
            free(blocks[i]);
    }
}

static pthread_barrier_t barrier;

static void *run_fresh(void *pointer)
{
    *(uint64_t *)pointer = (uintptr_t)pthread_self();
    void *volatile block = malloc(100);
    (void)block;
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return NULL;
}

static void *run_thread(void *blocks)
{
    report->pointers[(struct known_block(*)[BLOCKS])blocks - report->blocks] =
        (uintptr_t)pthread_self();
    churn(blocks, 2 + (uint64_t)((struct known_block(*)[BLOCKS])blocks - report->blocks));
    fill_bins();
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return NULL;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libc.so.6"))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0) {
            uint64_t begin = info->dlpi_addr + segment->p_vaddr;
            *(struct memory_span *)data =
                (struct memory_span){begin, begin + segment->p_memsz / 8 * 8};
        }
    }
    return 1;
}

static void run(const struct way *way)
{
    pthread_t thread;
    if (way->prepare)
        way->prepare();
    report->threads = way->threads;
    report->pointers[0] = (uintptr_t)pthread_self();
    pthread_barrier_init(&barrier, NULL, way->threads + (way->has_fresh ? FRESH : 0));
    for (unsigned i = 0; way->has_fresh && i < FRESH; i++)
        if (pthread_create(&thread, NULL, run_fresh, &report->pointers[THREADS_MAX + i]) != 0)
            _exit(2);
    for (unsigned i = 1; i < way->threads; i++)
        if (pthread_create(&thread, NULL, run_thread, report->blocks[i]) != 0)
            _exit(2);
    churn(report->blocks[0], 1);
    if (way->between) {
        way->between();
        churn(report->blocks[0], 2);
    }
    fill_bins();
    pthread_barrier_wait(&barrier);
    report->info = mallinfo2();
    dl_iterate_phdr(find_libc, &report->data);
    raise(SIGSTOP);
    _exit(0);
}

/* Makes the program break immovable. */
static void block_break(void)
{
    char *end = sbrk(0);
    char *page = (char *)(((uintptr_t)end + 4095) & -(uintptr_t)4096);
    if (mmap(page + 4096, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        _exit(2);
}

static void allow_more(void)
{
    large_max *= 10;
}

static void move_break(void)
{
    memset(sbrk(3 * 4096), 0x11, 3 * 4096);
}

static const struct way ways[] = {
    {"one thread", 1, NULL, NULL, NULL, true, false},
    {"eight threads", 8, NULL, NULL, NULL, false, false},
    {"threads with empty caches", 2, NULL, NULL, NULL, false, true},
    {"empty caches in one arena", 1, NULL, NULL, "glibc.malloc.arena_max=1", false, true},
    {"without caches", 4, NULL, NULL, "glibc.malloc.tcache_count=0", false, false},
    {"with large caches", 4, NULL, NULL, "glibc.malloc.tcache_count=2000", false, false},
    {"one arena", 8, NULL, NULL, "glibc.malloc.arena_max=1", false, false},
    {"nothing mapped", 2, NULL, NULL, "glibc.malloc.mmap_max=0", false, false},
    {"several heaps of an arena", 3, allow_more, NULL, "glibc.malloc.mmap_max=0", false, false},
    {"much mapped", 2, NULL, NULL, "glibc.malloc.mmap_threshold=4096", false, false},
    {"break moved first", 1, move_break, NULL, NULL, true, false},
    {"break moved between", 1, NULL, move_break, NULL, false, false},
    {"break blocked", 2, NULL, block_break, NULL, false, false},
    {"huge pages", 2, NULL, NULL, "glibc.malloc.hugetlb=1", false, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- The test ---- */

static const struct known_block *find(const struct known_blocks *blocks, uint64_t address)
{
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < blocks->count && blocks->items[low].address == address ? &blocks->items[low]
                                                                        : NULL;
}

/* Counts the program's blocks that were found with their size; returns how many were not. */
static size_t count_missing(const struct known_blocks *blocks, size_t *listed)
{
    size_t missing = 0;
    *listed = 0;
    for (unsigned thread = 0; thread < report->threads; thread++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            const struct known_block *block = &report->blocks[thread][i];
            if (block->address == 0)
                continue;
            const struct known_block *found = find(blocks, block->address);
            ++*listed;
            if (!found || found->size != block->size) {
                if (missing++ < 5)
                    printf("block %#lx of %lu bytes: %s\n", block->address, block->size,
                           found ? "another size" : "missing");
            }
        }
    }
    return missing;
}

/* Returns how many blocks of the size of a thread's cache were found that are not the program's. */
static size_t count_caches(const struct known_blocks *blocks)
{
    size_t count = 0;
    for (size_t i = 0; i < blocks->count; i++)
        count += blocks->items[i].size == CACHE;
    for (unsigned thread = 0; thread < report->threads; thread++)
        for (size_t i = 0; i < BLOCKS; i++)
            count -=
                report->blocks[thread][i].address != 0 && report->blocks[thread][i].size == CACHE;
    return count;
}

/* Bytes of the chunks in the heap, as the library counts them: without mapped ones. */
static uint64_t heap_bytes(const struct known_blocks *blocks)
{
    uint64_t bytes = blocks->cached;
    for (size_t i = 0; i < blocks->count; i++)
        if ((blocks->items[i].size + 16) % 4096 != 0 || blocks->items[i].size < 4096)
            bytes += blocks->items[i].size + 8;
    return bytes;
}

static bool check(const struct way *way, pid_t pid, unsigned version)
{
    enum { EXTRA = 16 }; /* of the loader, the standard streams, and each thread's start */
    struct memory memory;
    struct maps maps = {0};
    struct known_blocks blocks;
    size_t listed, count = 0;
    uint64_t pointers[THREADS_MAX + FRESH];
    for (size_t i = 0; i < THREADS_MAX + FRESH; i++)
        if (report->pointers[i] != 0)
            pointers[count++] = report->pointers[i];
    const struct known_threads threads = {pointers, count};
    if (!memory_open(&memory, (uint32_t)pid, (uint32_t)pid) ||
        !maps_read(&maps, (uint32_t)pid, (uint32_t)pid) ||
        !known_blocks_find(&memory, &maps, report->data, version, threads, &blocks)) {
        printf("%s: cannot be read\n", way->name);
        return false;
    }
    size_t missing = count_missing(&blocks, &listed);
    size_t caches = count_caches(&blocks);
    printf("%s: %zu blocks listed, %zu missing, %zu found, %zu caches, heap %lu of %zu, %s\n",
           way->name, listed, missing, blocks.count, caches, heap_bytes(&blocks),
           report->info.uordblks + report->info.fsmblks,
           blocks.reason ? blocks.reason : "complete");
    bool is_right = missing == 0 && listed > 1000 &&
                    blocks.count <= listed + EXTRA * way->threads && !blocks.reason &&
                    !blocks.is_busy && (!way->has_fresh || caches == 0);
    known_blocks_free(&blocks);
    maps_free(&maps);
    memory_close(&memory);
    return is_right;
}

static bool try_way(const struct way *way, const char *program, int file, unsigned version)
{
    char number[16], descriptor[16];
    int status;
    memset(report, 0, sizeof *report);
    snprintf(number, sizeof number, "%zd", way - ways);
    snprintf(descriptor, sizeof descriptor, "%d", file);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (way->tunables)
            setenv("GLIBC_TUNABLES", way->tunables, 1);
        execl(program, program, number, descriptor, NULL);
        _exit(127);
    }
    bool is_stopped = waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
    bool is_right = is_stopped && check(way, pid, version);
    if (!is_stopped)
        printf("%s: ended with %d\n", way->name, status);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return is_right;
}

static unsigned own_version(void)
{
    static const char strings[] = "\0GLIBC_2.2.5\0GLIBC_2.36\0GLIBC_PRIVATE\0GLIBC_2.4";
    unsigned version = 0;
    if (known_blocks_version(strings, sizeof strings) != 36)
        return 0;
    sscanf(gnu_get_libc_version(), "2.%u", &version);
    return version;
}

int main(int argc, char **argv)
{
    int file = argc == 3 ? atoi(argv[2]) : memfd_create("report", 0);
    bool is_right = true;
    if (file < 0 || (argc != 3 && ftruncate(file, sizeof *report) != 0))
        return 2;
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (report == MAP_FAILED)
        return 2;
    if (argc == 3)
        run(&ways[atoi(argv[1])]);
    unsigned version = own_version();
    if (version > KNOWN_BLOCKS_NEWEST)
        return 77; /* skipped */
    for (size_t i = 0; i < WAYS; i++)
        is_right &= try_way(&ways[i], "/proc/self/exe", file, version);
    return is_right ? 0 : 1;
}
