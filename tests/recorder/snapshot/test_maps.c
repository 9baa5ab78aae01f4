/* SPDX-License-Identifier: MIT */
/* The mappings of a process, as the system tells them one by one and as a text. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../recorder/snapshot/layout/maps.h"

enum { SIZE = 64 * 1024 };

/* Makes mappings of all kinds. */
static void map_all(void)
{
    FILE *file = tmpfile();
    cr_assert(ftruncate(fileno(file), SIZE) == 0);
    static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
                                      PROT_READ | PROT_EXEC};
    for (size_t i = 0; i < sizeof protections / sizeof *protections; i++) {
        mmap(NULL, SIZE, protections[i], MAP_PRIVATE, fileno(file), 0);
        mmap(NULL, SIZE, protections[i], MAP_SHARED, fileno(file), 0);
        mmap(NULL, SIZE, protections[i], MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        mmap(NULL, SIZE, protections[i], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    void *named = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, SIZE, "a name");
}

/* Copies the process, which stands still. */
static pid_t copy_process(void)
{
    map_all();
    pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (child == 0)
        pause();
    return child;
}

/* Removes what the system has for all processes, and tells only in the text. */
static void remove_common(struct maps *maps)
{
    struct mapping *last = &maps->items[maps->count - 1];
    maps->count -= strcmp(maps_name(maps, last), "[vsyscall]") == 0;
}

Test(maps, both_ways_tell_the_same)
{
    struct maps maps, text;
    pid_t child = copy_process();
    cr_assert(maps_read(&maps, (uint32_t)child, (uint32_t)child));
    cr_assert(maps_read_text(&text, (uint32_t)child, (uint32_t)child));
    cr_assert(maps.is_whole && text.is_whole);
    remove_common(&maps);
    remove_common(&text);
    cr_assert_eq(maps.count, text.count);
    cr_assert_gt(text.count, 20);
    for (size_t i = 0; i < text.count; i++) {
        struct mapping *mapping = &maps.items[i], *expected = &text.items[i];
        cr_assert_eq(mapping->begin, expected->begin);
        cr_assert_eq(mapping->end, expected->end);
        cr_assert_eq(mapping->is_writable, expected->is_writable);
        cr_assert_eq(mapping->is_executable, expected->is_executable);
        cr_assert_eq(mapping->is_shared, expected->is_shared);
        cr_assert_eq(mapping->is_file, expected->is_file);
        cr_assert_eq(mapping->inode, expected->inode);
        cr_assert_str_eq(maps_name(&maps, mapping), expected->name);
    }
    maps_free(&maps);
    maps_free(&text);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(maps, of_no_process)
{
    struct maps maps;
    cr_assert_not(maps_read(&maps, 0x7ffffffe, 0x7ffffffe));
    maps_free(&maps);
}
