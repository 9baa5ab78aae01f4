/* SPDX-License-Identifier: MIT */
/* The mappings of a process are those that it made. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapshot/layout/maps.h"

enum { SIZE = 64 * 1024, MANY = 3000 };

static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
                                  PROT_READ | PROT_EXEC};
static const int flags[] = {MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_ANONYMOUS,
                            MAP_SHARED | MAP_ANONYMOUS};

enum {
    PROTECTIONS = sizeof protections / sizeof *protections,
    FLAGS = sizeof flags / sizeof *flags
};

static char *made[PROTECTIONS][FLAGS];

/* Reserves addresses, so that the system joins no mapping made there with one that lies outside. */
static char *reserve(size_t size)
{
    char *begin = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(begin != MAP_FAILED);
    return begin;
}

/* Makes mappings of all kinds, each between two that differ from all of them. */
static void map_all(void)
{
    FILE *file = tmpfile();
    cr_assert(ftruncate(fileno(file), SIZE) == 0);
    char *next = reserve((2 * PROTECTIONS * FLAGS + 1) * (size_t)SIZE);
    for (size_t i = 0; i < PROTECTIONS; i++) {
        for (size_t j = 0; j < FLAGS; j++) {
            int descriptor = flags[j] & MAP_ANONYMOUS ? -1 : fileno(file);
            mmap(next, SIZE, PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0);
            made[i][j] =
                mmap(next + SIZE, SIZE, protections[i], flags[j] | MAP_FIXED, descriptor, 0);
            cr_assert(made[i][j] == next + SIZE);
            next += 2 * (size_t)SIZE;
        }
    }
    mmap(next, SIZE, PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0);
}

/* Copies the process, which stands still. */
static pid_t copy_process(void)
{
    map_all();
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (child == 0 && getppid() == parent)
        pause();
    if (child == 0) /* the parent ended before it could take the child along */
        _exit(1);
    return child;
}

static const struct mapping *find(const struct maps *maps, const void *begin)
{
    for (size_t i = 0; i < maps->count; i++)
        if (maps->items[i].begin == (uintptr_t)begin)
            return &maps->items[i];
    return NULL;
}

static void check(const struct mapping *mapping, int protection, int kind)
{
    bool is_private = (kind & MAP_PRIVATE) != 0, is_anonymous = (kind & MAP_ANONYMOUS) != 0;
    cr_assert_not_null(mapping);
    cr_assert_eq(mapping->end - mapping->begin, SIZE);
    cr_assert_eq(mapping->is_readable, (protection & PROT_READ) != 0);
    cr_assert_eq(mapping->is_writable, (protection & PROT_WRITE) != 0);
    cr_assert_eq(mapping->is_executable, (protection & PROT_EXEC) != 0);
    cr_assert_eq(mapping->is_shared, !is_private);
    /* Shared memory without a file is one of the system's. */
    cr_assert_eq(mapping->is_file, !is_anonymous || !is_private);
    cr_assert_eq(mapping->inode != 0, mapping->is_file);
    cr_assert_eq(*mapping->name != '\0', mapping->is_file, "%s", mapping->name);
}

Test(maps, are_those_that_were_made)
{
    struct maps maps;
    pid_t child = copy_process();
    cr_assert(maps_read(&maps, (uint32_t)child, (uint32_t)child));
    cr_assert(maps.is_whole);
    for (size_t i = 1; i < maps.count; i++)
        cr_assert_leq(maps.items[i - 1].end, maps.items[i].begin);
    for (size_t i = 0; i < PROTECTIONS; i++)
        for (size_t j = 0; j < FLAGS; j++)
            check(find(&maps, made[i][j]), protections[i], flags[j]);
    maps_free(&maps);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Makes so many mappings that their text is read in parts. */
static void *map_many(void)
{
    char *first = reserve((MANY + 2) * (size_t)SIZE) + SIZE;
    for (size_t i = 0; i < MANY; i++) {
        int protection = i % 2 == 0 ? PROT_READ | PROT_WRITE : PROT_READ;
        cr_assert_eq(mprotect(first + i * SIZE, SIZE, protection), 0);
    }
    return first;
}

Test(maps, may_be_many)
{
    struct maps maps;
    const char *first = map_many();
    cr_assert(maps_read(&maps, (uint32_t)getpid(), (uint32_t)getpid()));
    cr_assert(maps.is_whole);
    for (size_t i = 0; i < MANY; i++) {
        const struct mapping *mapping = find(&maps, first + i * SIZE);
        cr_assert_not_null(mapping, "%zu", i);
        cr_assert_eq(mapping->is_writable, i % 2 == 0);
    }
    maps_free(&maps);
}

/* The process that is killed once its mappings have been read in part. */
static pid_t victim;

/* Takes the place of the C library's. */
ssize_t read(int file, void *bytes, size_t size)
{
    ssize_t result = syscall(SYS_read, file, bytes, size);
    siginfo_t end;
    if (victim != 0) {
        kill(victim, SIGKILL);
        waitid(P_PID, (id_t)victim, &end, WEXITED | WNOWAIT);
    }
    return result;
}

Test(maps, of_a_process_that_is_killed_are_not_whole)
{
    struct maps maps;
    map_many();
    pid_t child = copy_process();
    victim = child;
    cr_assert(maps_read(&maps, (uint32_t)child, (uint32_t)child));
    victim = 0;
    cr_assert_lt(maps.count, MANY);
    cr_assert_not(maps.is_whole);
    maps_free(&maps);
    waitpid(child, NULL, 0);
}

Test(maps, of_no_process)
{
    struct maps maps;
    cr_assert_not(maps_read(&maps, 0x7ffffffe, 0x7ffffffe));
    maps_free(&maps);
}
