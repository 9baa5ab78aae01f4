/* SPDX-License-Identifier: MIT */
/*
 * Maps the windows of the channel. Once the process is attached, no file is opened for that:
 * descriptors belong to the program, and it may even give up the right to open files. A new window
 * is a second mapping of the first one, moved to another part of the file.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "channel_pool.h"
#include "preload/system/sys.h"
#include "preload/channel/target.h"

/* Threads and processes that have room when no more windows can be mapped. */
enum { AHEAD = 64 };

struct channel *target_channel;
struct channel_view target_view;
_Atomic bool channel_is_short;

/* The path of the file, for systems that need it to map a window. */
static char channel_path[96];
static struct stat channel_file;
static uint32_t owner;

/* Addresses around the window's. */
struct windows_room {
    long begin, window, end;
};

static bool windows_is_error(long address)
{
    return address < 0 && address > -4096;
}

static void windows_view_unmap(long address)
{
    sys_call3(SYS_munmap, address, CHANNEL_WINDOW, 0);
}

uint32_t channel_owner(void)
{
    return owner;
}

/* Maps a window of an open file, and identifies the file. */
static char *windows_map_open(long file, uint64_t offset, struct stat *status)
{
    long address = 0;
    if (sys_call3(SYS_fstat, file, (long)status, 0) == 0 &&
        status->st_size >= (off_t)(offset + CHANNEL_WINDOW))
        address = sys_call6(SYS_mmap, 0, CHANNEL_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            (long)offset);
    if (offset == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (sys_call3(SYS_fcntl, file, F_GETLK, (long)&lock) == 0 && lock.l_type != F_UNLCK)
            owner = (uint32_t)lock.l_pid;
    }
    return address == 0 || windows_is_error(address) ? NULL : (char *)address;
}

/* Maps a window of the file that `path` opens, likewise. */
static char *windows_map_file(const char *path, uint64_t offset, struct stat *status)
{
    long file = sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return NULL;
    char *window = windows_map_open(file, offset, status);
    sys_call3(SYS_close, file, 0, 0);
    return window;
}

static char *windows_map_by_path(uint64_t offset)
{
    struct stat status;
    char *window = windows_map_file(channel_path, offset, &status);
    if (!window || (status.st_ino == channel_file.st_ino && status.st_dev == channel_file.st_dev))
        return window;
    windows_view_unmap((long)window);
    return NULL;
}

/* Finds room for a window at a multiple of the size of a chunk: the system then puts all pages of a
 * chunk in place at once, when the chunk is taken. Returns false if there is none. */
static bool windows_reserve(struct windows_room *room)
{
    enum { SIZE = CHANNEL_WINDOW + CHANNEL_CHUNK_SIZE };
    room->begin = sys_call6(SYS_mmap, 0, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    room->window = (room->begin + CHANNEL_CHUNK_SIZE - 1) & -(long)CHANNEL_CHUNK_SIZE;
    room->end = room->begin + SIZE;
    return !windows_is_error(room->begin);
}

/* Unmaps the memory around the window. */
static void windows_trim(const struct windows_room *room)
{
    if (room->window != room->begin)
        sys_call3(SYS_munmap, room->begin, room->window - room->begin, 0);
    sys_call3(SYS_munmap, room->window + CHANNEL_WINDOW, room->end - room->window - CHANNEL_WINDOW,
              0);
}

static char *windows_map_again(uint64_t offset)
{
    struct windows_room room;
    if (!windows_reserve(&room))
        return NULL;
    long address = sys_call6(SYS_mremap, (long)target_channel, 0, CHANNEL_WINDOW,
                             MREMAP_MAYMOVE | MREMAP_FIXED, room.window, 0);
    windows_trim(&room);
    if (windows_is_error(address)) { /* emulators do not know how */
        windows_view_unmap(room.window);
        return windows_map_by_path(offset);
    }
    if (sys_call6(SYS_remap_file_pages, address, CHANNEL_WINDOW, 0, (long)(offset / CHANNEL_PAGE),
                  MAP_NONBLOCK, 0) == 0) /* or all of it would be put into memory */
        return (char *)address;
    windows_view_unmap(address);
    return windows_map_by_path(offset);
}

char *channel_map(struct channel_view *view, uint32_t index)
{
    char *mapped = NULL;
    char *window = process_is_confined ? NULL : windows_map_again((uint64_t)index * CHANNEL_WINDOW);
    if (!window) {
        atomic_store(&channel_is_short, true);
        return NULL;
    }
    sys_call3(SYS_madvise, (long)window, CHANNEL_WINDOW, MADV_DONTDUMP);
    if (atomic_compare_exchange_strong(&view->windows[index], &mapped, window))
        return window;
    windows_view_unmap((long)window);
    return mapped;
}

static void windows_map_entries(uint64_t begin, uint32_t count, uint64_t size)
{
    uint64_t end = begin + count * size;
    for (uint64_t offset = begin; offset < end; offset += CHANNEL_WINDOW)
        channel_at(&target_view, offset);
}

/* Returns how many entries of a pool to map ahead: those that were used, and some more. */
static uint32_t windows_entries_ahead(const struct channel_pool *pool, uint32_t count,
                                      uint32_t spare)
{
    uint32_t used = channel_used(pool, count);
    return count - used < spare ? count : used + spare;
}

void channel_map_ahead(void)
{
    const struct channel *channel = target_channel;
    windows_map_entries(CHANNEL_PROCESSES_AT,
                        windows_entries_ahead(&channel->free_processes, CHANNEL_PROCESSES, AHEAD),
                        CHANNEL_PROCESS_SIZE);
    windows_map_entries(CHANNEL_THREADS_AT,
                        windows_entries_ahead(&channel->free_threads, CHANNEL_THREADS, AHEAD),
                        sizeof(struct thread_slot));
    windows_map_entries(CHANNEL_SMALL_AT,
                        windows_entries_ahead(&channel->free_small, CHANNEL_SMALL_CHUNKS, AHEAD),
                        CHANNEL_SMALL_SIZE);
    windows_map_entries(
        CHANNEL_LARGE_AT,
        windows_entries_ahead(&channel->free_large, CHANNEL_LARGE_CHUNKS, CHANNEL_BACKLOG + AHEAD),
        CHANNEL_CHUNK_SIZE);
}

bool channel_is_reachable(void)
{
    struct stat status;
    return sys_call6(SYS_newfstatat, AT_FDCWD, (long)channel_path, (long)&status, 0, 0, 0) == 0 &&
           status.st_ino == channel_file.st_ino && status.st_dev == channel_file.st_dev &&
           status.st_uid == (uid_t)sys_call3(SYS_geteuid, 0, 0, 0);
}

const char *channel_place(void)
{
    return channel_path;
}

/* Takes the first window of a file that may be a channel. */
static bool take_channel(char *window)
{
    struct channel *channel = (struct channel *)window;
    if (!window)
        return false;
    if (channel->magic != CHANNEL_MAGIC || channel->version != CHANNEL_VERSION ||
        channel->size != CHANNEL_SIZE) {
        windows_view_unmap((long)window);
        return false;
    }
    sys_call3(SYS_madvise, (long)window, CHANNEL_WINDOW, MADV_DONTDUMP);
    target_channel = channel;
    atomic_store(&target_view.windows[0], window);
    return true;
}

/* Takes the channel by the number of a descriptor; closes that if it is the channel's. */
static bool windows_take_lent(const char *number)
{
    enum { DIGITS_MAX = 9 };
    int file = 0;
    for (int i = 0; i < DIGITS_MAX && *number >= '0' && *number <= '9'; i++)
        file = file * 10 + (*number++ - '0');
    if (*number != '\0' || !take_channel(windows_map_open(file, 0, &channel_file)))
        return false;
    sys_call3(SYS_close, file, 0, 0);
    return true;
}

bool channel_attach(const char *variable)
{
    size_t size = strcspn(variable, "=");
    if (size >= sizeof channel_path)
        return false;
    memcpy(channel_path, variable, size);
    return (variable[size] == '=' && windows_take_lent(variable + size + 1)) ||
           take_channel(windows_map_file(channel_path, 0, &channel_file));
}

bool channel_attach_file(int file, const char *path)
{
    strcpy(channel_path, path);
    return take_channel(windows_map_open(file, 0, &channel_file));
}
