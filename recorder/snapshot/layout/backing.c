/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/backing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/process_reader.h"

static bool backing_name_begins(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0;
}

static bool backing_name_is_any(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Reads a file of /proc. Returns a text that the caller frees; NULL if that is impossible. */
static char *backing_read(const char *path)
{
    enum { SIZE_MAX_READ = 1 << 20 };
    char *text = malloc(SIZE_MAX_READ);
    size_t size = 0;
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t part = file >= 0 && text ? 1 : -1;
    while (part > 0 && (part = read(file, text + size, SIZE_MAX_READ - 1 - size)) > 0)
        size += (size_t)part;
    if (file >= 0)
        close(file);
    reader_leave();
    if (part < 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* Returns when the process began, in seconds since 1970; 0 if that is not known. */
static uint64_t backing_start(uint32_t pid)
{
    enum { START = 20 /* fields behind the name */ };
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    char *text = backing_read(path);
    const char *field = text ? strrchr(text, ')') : NULL;
    struct timespec now, running;
    for (int i = 0; field && i < START; i++)
        field = strchr(field + 1, ' ');
    uint64_t ticks = field ? strtoull(field, NULL, 10) : 0;
    free(text);
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &running);
    uint64_t age = (uint64_t)running.tv_sec - ticks / (uint64_t)sysconf(_SC_CLK_TCK);
    return ticks != 0 && age < (uint64_t)now.tv_sec ? (uint64_t)now.tv_sec - age : 0;
}

/* Finds the type of the file system that a device has, or "". */
static void backing_type(const struct backing *backing, uint64_t device, char type[32])
{
    char wanted[32];
    *type = '\0';
    snprintf(wanted, sizeof wanted, " %u:%u ", major(device), minor(device));
    const char *line = backing->mounts ? strstr(backing->mounts, wanted) : NULL;
    const char *behind = line ? strstr(line, " - ") : NULL;
    if (behind)
        sscanf(behind, " - %31s", type);
}

/* Whether a file was not written since the process began. Its time is also the time of the last
 * write to any shared mapping of it. */
static bool backing_is_old(const struct backing *backing, const struct mapping *mapping)
{
    enum { MARGIN = 2 /* seconds: times of files are not exact */ };
    struct stat status;
    char path[4200];
    int size = snprintf(path, sizeof path, "/proc/%u/task/%u/root%s", backing->pid, backing->tid,
                        mapping->name);
    reader_enter();
    bool is_there = size < (int)sizeof path && stat(path, &status) == 0;
    reader_leave();
    if (!is_there || status.st_ino != mapping->inode || !S_ISREG(status.st_mode))
        return false;
    uint64_t written =
        (uint64_t)(status.st_mtime > status.st_ctime ? status.st_mtime : status.st_ctime);
    return written + MARGIN < backing->start;
}

static enum backing_kind backing_of_file(struct backing *backing, const struct mapping *mapping)
{
    static const char *const memory[] = {"tmpfs", "ramfs", "devtmpfs", NULL};
    static const char *const local[] = {"ext2", "ext3",    "ext4",  "xfs",      "btrfs",
                                        "f2fs", "overlay", "zfs",   "bcachefs", "squashfs",
                                        "vfat", "exfat",   "erofs", "jfs",      NULL};
    char type[32], path[64];
    if (!backing->has_looked) {
        backing->has_looked = true;
        snprintf(path, sizeof path, "/proc/%u/task/%u/mountinfo", backing->pid, backing->tid);
        backing->mounts = backing_read(path);
        backing->start = backing_start(backing->pid);
    }
    backing_type(backing, mapping->device, type);
    if (strcmp(type, "hugetlbfs") == 0)
        return BACKING_HUGE;
    bool is_special = backing_name_begins(mapping->name, "/dev/") ||
                      backing_name_begins(mapping->name, "/sys/") ||
                      backing_name_begins(mapping->name, "/proc/");
    if (is_special && !backing_name_begins(mapping->name, "/dev/shm/"))
        return BACKING_DEVICE;
    if (backing_name_is_any(type, memory))
        return BACKING_MEMORY;
    if (backing_is_old(backing, mapping))
        return BACKING_OLD;
    return backing_name_is_any(type, local) ? BACKING_FILE : BACKING_REMOTE;
}

enum backing_kind backing_of(struct backing *backing, const struct mapping *mapping)
{
    const char *name = mapping->name;
    if (!mapping->is_file && !mapping->is_shared)
        return BACKING_ANONYMOUS;
    if (backing_name_begins(name, "/dev/zero") || backing_name_begins(name, "/memfd:") ||
        backing_name_begins(name, "/SYSV") || backing_name_begins(name, "/dev/shm/"))
        return BACKING_MEMORY;
    if (backing_name_begins(name, "/anon_hugepage"))
        return BACKING_HUGE;
    if (*name != '/' || backing_name_begins(name, "/[") || backing_name_begins(name, "/dmabuf:"))
        return BACKING_DEVICE;
    if (!backing->has_looked || mapping->device != backing->last_device ||
        mapping->inode != backing->last_inode) {
        backing->last_kind = backing_of_file(backing, mapping);
        backing->last_device = mapping->device;
        backing->last_inode = mapping->inode;
    }
    return backing->last_kind;
}

enum region_untouched backing_untouched(enum backing_kind kind)
{
    switch (kind) {
    case BACKING_ANONYMOUS:
    case BACKING_OLD:
        return UNTOUCHED_EMPTY;
    case BACKING_MEMORY:
        return UNTOUCHED_RESIDENT;
    case BACKING_FILE:
        return UNTOUCHED_SEARCHED;
    case BACKING_HUGE:
    case BACKING_REMOTE:
    case BACKING_DEVICE:
        break;
    }
    return UNTOUCHED_MISSING;
}

void backing_free(struct backing *backing)
{
    free(backing->mounts);
}
