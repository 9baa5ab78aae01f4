/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "snapshot/process_reader.h"

/* A million mappings or so; the rest is left out. */
enum { TEXT_FIRST = 64 * 1024, TEXT_MAX = 128 << 20 };

/* Reads a file whose size is not known. Returns NULL if memory runs out or it cannot be read. */
static char *maps_read_all(int file, bool *is_whole)
{
    size_t size = 0, capacity = TEXT_FIRST;
    char *text = malloc(capacity);
    ssize_t read_size = 0;
    while (text) {
        reader_enter();
        read_size = read(file, text + size, capacity - 1 - size);
        reader_leave();
        if (read_size < 0 && errno == EINTR)
            continue;
        if (read_size <= 0)
            break;
        size += (size_t)read_size;
        if (capacity - 1 - size >= TEXT_FIRST / 4)
            continue;
        char *grown = capacity < TEXT_MAX ? realloc(text, capacity * 2) : NULL;
        if (!grown)
            break;
        text = grown;
        capacity *= 2;
    }
    *is_whole = text && read_size == 0;
    if (!text || size == 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* Whether the process has its memory still: the text of one that was killed just ends. */
static bool maps_has_memory(int file)
{
    char byte;
    reader_enter();
    bool is_there = pread(file, &byte, 1, 0) == 1;
    reader_leave();
    return is_there;
}

/* Whether the pages of a private mapping are the process's own from the begin, whatever its name.
 */
static bool maps_is_plain_memory(const struct mapping *mapping)
{
    return !mapping->is_shared && (strcmp(mapping->name, "/dev/zero") == 0 ||
                                   strncmp(mapping->name, "/anon_hugepage", 14) == 0);
}

/* Decodes "begin-end perms offset device inode   name". Returns false if it is none. */
static bool maps_parse_line(char *line, struct mapping *mapping)
{
    char *text;
    mapping->begin = strtoull(line, &text, 16);
    if (*text != '-')
        return false;
    mapping->end = strtoull(text + 1, &text, 16);
    if (*text != ' ' || strlen(text) < 6 || mapping->end <= mapping->begin)
        return false;
    mapping->is_readable = text[1] == 'r';
    mapping->is_writable = text[2] == 'w';
    mapping->is_executable = text[3] == 'x';
    mapping->is_shared = text[4] == 's';
    mapping->offset = strtoull(text + 6, &text, 16);
    if (*text != ' ')
        return false;
    unsigned device = (unsigned)strtoul(text + 1, &text, 16);
    if (*text != ':')
        return false;
    mapping->device = makedev(device, (unsigned)strtoul(text + 1, &text, 16));
    mapping->inode = strtoull(text, &text, 10);
    mapping->name = text + strspn(text, " ");
    mapping->is_file = mapping->inode != 0 && !maps_is_plain_memory(mapping);
    return true;
}

static bool maps_add(struct maps *maps, const struct mapping *mapping)
{
    void *items = array_grow(maps->items, maps->count, &maps->capacity, sizeof *maps->items);
    if (!items)
        return false;
    maps->items = items;
    maps->items[maps->count++] = *mapping;
    return true;
}

static int open_maps(uint32_t pid, uint32_t tid)
{
    char path[64];
    if (tid == pid) /* the system would make a directory of the thread first */
        snprintf(path, sizeof path, "/proc/%u/maps", pid);
    else
        snprintf(path, sizeof path, "/proc/%u/task/%u/maps", pid, tid);
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    reader_leave();
    return file;
}

/* The system can also be asked for one mapping after the other, but a question takes as long as
 * some lines of the text do, or longer where calls are dear, and asks for no name. */
bool maps_read(struct maps *maps, uint32_t pid, uint32_t tid)
{
    *maps = (struct maps){0};
    int file = open_maps(pid, tid);
    if (file < 0)
        return false;
    maps->text = maps_read_all(file, &maps->is_whole);
    maps->is_whole = maps->is_whole && maps_has_memory(file);
    close(file);
    for (char *line = maps->text, *end; line && *line != '\0'; line = end) {
        struct mapping mapping;
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        if (maps_parse_line(line, &mapping) && !maps_add(maps, &mapping))
            maps->is_whole = false;
    }
    return maps->text != NULL;
}

void maps_free(struct maps *maps)
{
    free(maps->text);
    free(maps->items);
}

static bool kernel_files_add_epoll(struct kernel_files *files, uint32_t tid, uint32_t number)
{
    void *epolls = array_grow(files->epolls, files->epoll_count, &files->epoll_capacity,
                              sizeof *files->epolls);
    if (!epolls)
        return false;
    files->epolls = epolls;
    files->epolls[files->epoll_count++] = (struct kernel_epoll){tid, number};
    return true;
}

/* Adds the files of a table, by a thread that has it. */
static bool kernel_files_add_table(struct kernel_files *files, uint32_t pid, uint32_t tid)
{
    static const char ring[] = "anon_inode:[io_uring]", epoll[] = "anon_inode:[eventpoll]";
    char path[64], text[sizeof epoll];
    files->tables[files->table_count++] = tid;
    snprintf(path, sizeof path, "/proc/%u/task/%u/fd", pid, tid);
    reader_enter();
    DIR *directory = opendir(path);
    bool is_whole = directory != NULL;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        ssize_t size = readlinkat(dirfd(directory), entry->d_name, text, sizeof text);
        files->count += size > 0;
        files->has_ring |= size == sizeof ring - 1 && memcmp(text, ring, sizeof ring - 1) == 0;
        if (size == sizeof epoll - 1 && memcmp(text, epoll, sizeof epoll - 1) == 0)
            is_whole &=
                kernel_files_add_epoll(files, tid, (uint32_t)strtoul(entry->d_name, NULL, 10));
    }
    if (directory)
        closedir(directory);
    reader_leave();
    return is_whole;
}

bool kernel_files_find(struct kernel_files *files, uint32_t pid, uint32_t tid)
{
    *files = (struct kernel_files){.has_ring = false};
    return kernel_files_add_table(files, pid, tid);
}

bool kernel_files_add(struct kernel_files *files, uint32_t pid, uint32_t tid)
{
    enum { KCMP_FILES = 2, LISTED_MAX = 20000 };
    long order = 0;
    for (size_t i = 0; i < files->table_count; i++) {
        reader_enter();
        order = files->tables[i] != tid ? syscall(SYS_kcmp, files->tables[i], tid, KCMP_FILES, 0, 0)
                                        : 0;
        reader_leave();
        if (order == 0)
            return true;
    }
    if (order > 0)
        return files->table_count < KERNEL_TABLES_MAX && kernel_files_add_table(files, pid, tid);
    /* Not permitted, as in some containers: a list that differs is of another table. */
    files->listed += files->count + 1;
    return files->listed <= LISTED_MAX && kernel_files_stay(files, pid, tid);
}

bool kernel_files_stay(const struct kernel_files *files, uint32_t pid, uint32_t tid)
{
    struct kernel_files later;
    bool are_same = kernel_files_find(&later, pid, tid) && later.has_ring == files->has_ring &&
                    later.epoll_count <= files->epoll_count;
    for (size_t i = 0; are_same && i < later.epoll_count; i++)
        are_same = later.epolls[i].number == files->epolls[i].number &&
                   files->epolls[i].tid == files->tables[0];
    size_t count = later.epoll_count;
    are_same =
        are_same && (count == files->epoll_count || files->epolls[count].tid != files->tables[0]);
    kernel_files_free(&later);
    return are_same;
}

void kernel_files_free(struct kernel_files *files)
{
    free(files->epolls);
}

static bool kernel_words_add(struct kernel_words *words, uint64_t value)
{
    void *items = array_grow(words->items, words->count, &words->capacity, sizeof *words->items);
    if (!items)
        return false;
    words->items = items;
    words->items[words->count++] = value;
    return true;
}

/* Adds the number behind each mark that follows a label in a file of /proc. */
static bool kernel_words_parse(struct kernel_words *words, const char *path, const char *label,
                               const char *mark)
{
    bool is_whole = true;
    reader_enter();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    reader_leave();
    if (file < 0)
        return false;
    char *text = maps_read_all(file, &is_whole);
    close(file);
    for (const char *place = text; place && (place = strstr(place, label));) {
        place += strlen(label);
        const char *number = strstr(place, mark);
        is_whole = number && kernel_words_add(words, strtoull(number + strlen(mark), NULL, 16)) &&
                   is_whole;
    }
    free(text);
    return is_whole;
}

bool kernel_words_of_epoll(struct kernel_words *words, const struct kernel_files *files,
                           uint32_t pid)
{
    bool is_whole = true;
    char path[64];
    for (size_t i = 0; i < files->epoll_count; i++) {
        const struct kernel_epoll *epoll = &files->epolls[i];
        snprintf(path, sizeof path, "/proc/%u/task/%u/fdinfo/%u", pid, epoll->tid, epoll->number);
        is_whole &= kernel_words_parse(words, path, "tfd:", "data:");
    }
    return is_whole;
}

bool kernel_words_of_timers(struct kernel_words *words, uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/timers", pid);
    /* Systems may be built without that file. */
    return access(path, F_OK) != 0 || kernel_words_parse(words, path, "signal:", "/");
}

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

/* Finds the file of a mapping; false if another one, or none, has its name by now. */
static bool backing_stat(const struct backing *backing, const struct mapping *mapping,
                         struct stat *status)
{
    char path[4200];
    int size = snprintf(path, sizeof path, "/proc/%u/task/%u/root%s", backing->pid, backing->tid,
                        mapping->name);
    reader_enter();
    bool is_there = size < (int)sizeof path && stat(path, status) == 0;
    reader_leave();
    return is_there && status->st_ino == mapping->inode && S_ISREG(status->st_mode);
}

/* Whether a file was not written since the process began. Its time is also the time of the last
 * write to any shared mapping of it. */
static bool backing_is_old(const struct backing *backing, const struct stat *status)
{
    enum { MARGIN = 2 /* seconds: times of files are not exact */ };
    uint64_t written =
        (uint64_t)(status->st_mtime > status->st_ctime ? status->st_mtime : status->st_ctime);
    return written + MARGIN < backing->start;
}

static enum backing_kind backing_of_file(struct backing *backing, const struct mapping *mapping)
{
    static const char *const memory[] = {"tmpfs", "ramfs", "devtmpfs", NULL};
    static const char *const local[] = {"ext2", "ext3",    "ext4",  "xfs",      "btrfs",
                                        "f2fs", "overlay", "zfs",   "bcachefs", "squashfs",
                                        "vfat", "exfat",   "erofs", "jfs",      NULL};
    char type[32], path[64];
    struct stat status;
    backing->last_size = UINT64_MAX;
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
    if (backing_stat(backing, mapping, &status)) {
        if (backing_is_old(backing, &status))
            return BACKING_OLD;
        backing->last_size = (uint64_t)status.st_size;
    }
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

uint64_t backing_end(const struct backing *backing, const struct mapping *mapping)
{
    uint64_t size = backing->last_size > mapping->offset ? backing->last_size - mapping->offset : 0;
    bool is_file = backing->last_kind == BACKING_FILE || backing->last_kind == BACKING_REMOTE;
    if (!is_file || size >= mapping->end - mapping->begin)
        return mapping->end;
    return mapping->begin + (size + REGION_PAGE - 1) / REGION_PAGE * REGION_PAGE;
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

/* ---- Regions ---- */

void regions_free(struct regions *regions)
{
    free(regions->items);
    *regions = (struct regions){0};
}

void regions_add(struct regions *regions, const struct region *region)
{
    if (region->begin >= region->end)
        return;
    void *items =
        array_grow(regions->items, regions->count, &regions->capacity, sizeof *regions->items);
    if (!items) {
        regions->is_short = true;
        return;
    }
    regions->items = items;
    regions->items[regions->count++] = *region;
}

const struct region *regions_at(const struct regions *regions, uint64_t address)
{
    size_t ended_count = array_count_up_to(regions->items, regions->count, sizeof *regions->items,
                                           offsetof(struct region, end), address);
    bool is_found = ended_count < regions->count && regions->items[ended_count].begin <= address;
    return is_found ? &regions->items[ended_count] : NULL;
}

static int regions_compare_begins(const void *left, const void *right)
{
    uint64_t a = ((const struct region *)left)->begin, b = ((const struct region *)right)->begin;
    return a < b ? -1 : a > b;
}

/* Adds the part of a region in [begin, end), within the mapping of another one. */
static void regions_add_part(struct regions *regions, const struct region *region,
                             const struct region *mapping, uint64_t begin, uint64_t end)
{
    struct region part = *region;
    part.untouched = mapping->untouched;
    part.is_device = mapping->is_device;
    part.shared_device = mapping->shared_device;
    part.shared_inode = mapping->shared_inode;
    part.shared_shift = mapping->shared_shift;
    part.begin = begin;
    part.end = end;
    regions_add(regions, &part);
}

void regions_refine(struct regions *regions, struct regions *refined)
{
    struct regions result = {.is_short = regions->is_short || refined->is_short};
    size_t next = 0;
    if (refined->count == 0) {
        regions->is_short |= refined->is_short;
        return;
    }
    qsort(refined->items, refined->count, sizeof *refined->items, regions_compare_begins);
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *whole = &regions->items[i];
        uint64_t address = whole->begin;
        while (next < refined->count && refined->items[next].end <= address)
            next++;
        for (size_t j = next;
             j < refined->count && refined->items[j].begin < whole->end && address < whole->end;
             j++) {
            const struct region *over = &refined->items[j];
            uint64_t begin = over->begin > address ? over->begin : address;
            uint64_t end = over->end < whole->end ? over->end : whole->end;
            if (begin >= end)
                continue;
            regions_add_part(&result, whole, whole, address, begin);
            regions_add_part(&result, over, whole, begin, end);
            address = end;
        }
        regions_add_part(&result, whole, whole, address, whole->end);
    }
    regions_free(refined);
    regions_free(regions);
    *regions = result;
}
