/* SPDX-License-Identifier: MIT */
/* The kind of a mapping, by its name and its file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/layout/maps.h"

static enum backing_kind kind_of(const char *name, bool is_shared)
{
    struct backing backing = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
    struct mapping mapping = {.is_file = *name != '\0', .is_shared = is_shared, .name = name};
    struct stat status;
    if (stat(name, &status) == 0) {
        mapping.device = status.st_dev;
        mapping.inode = status.st_ino;
    }
    enum backing_kind kind = backing_of(&backing, &mapping);
    backing_free(&backing);
    return kind;
}

Test(backing, memory)
{
    cr_assert_eq(kind_of("", false), BACKING_ANONYMOUS);
    cr_assert_eq(kind_of("/dev/zero (deleted)", true), BACKING_MEMORY);
    cr_assert_eq(kind_of("/memfd:any (deleted)", true), BACKING_MEMORY);
    cr_assert_eq(kind_of("/memfd:any (deleted)", false), BACKING_MEMORY);
    cr_assert_eq(kind_of("/SYSV00000000 (deleted)", true), BACKING_MEMORY);
    cr_assert_eq(kind_of("/dev/shm/any", true), BACKING_MEMORY);
    cr_assert_eq(kind_of("/anon_hugepage (deleted)", true), BACKING_HUGE);
}

/* Nothing is read of these but plain memory, and what was not touched is missing. */
Test(backing, devices)
{
    static const char *const names[] = {"/dev/mem",
                                        "/dev/dri/card0",
                                        "/sys/devices/pci0000:00/0000:00:02.0/resource0",
                                        "/proc/bus/pci/00/02.0",
                                        "anon_inode:[perf_event]",
                                        "socket:[1234]",
                                        "/dmabuf:any",
                                        "/[aio] (deleted)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cr_assert_eq(kind_of(names[i], true), BACKING_DEVICE, "%s", names[i]);
        cr_assert_eq(backing_untouched(kind_of(names[i], true)), UNTOUCHED_MISSING);
    }
}

Test(backing, files)
{
    char path[] = "/tmp/backing.XXXXXX";
    int file = mkstemp(path);
    cr_assert(file >= 0);
    enum backing_kind kind = kind_of(path, true);
    cr_assert(kind == BACKING_FILE || kind == BACKING_MEMORY || kind == BACKING_REMOTE);
    cr_assert_eq(kind_of("/proc/self/exe", true), BACKING_DEVICE, "a name below /proc");
    cr_assert_eq(kind_of("/bin/sh", true), BACKING_OLD);
    unlink(path);
    cr_assert_neq(kind_of(path, true), BACKING_OLD, "gone: it may have been written");
    close(file);
}
