/* SPDX-License-Identifier: MIT */
#include "symbolize/image/image_file.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

int image_file_open(const char *path)
{
    if (path == NULL || path[0] != '/')
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint64_t file_time(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool image_file_read(int fd, struct symbolize_file *file)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    *file = (struct symbolize_file){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size = (uint64_t)status.st_size,
        .modified = file_time(status.st_mtim),
        .changed = file_time(status.st_ctim),
    };
    return true;
}

bool image_file_same(const struct symbolize_file *now, const struct symbolize_file *file)
{
    return now->device == file->device && now->inode == file->inode && now->size == file->size &&
           now->modified == file->modified && (file->changed == 0 || now->changed == file->changed);
}

bool image_file_is(int fd, const struct symbolize_file *file)
{
    struct symbolize_file now;
    return file->inode == 0 || (image_file_read(fd, &now) && image_file_same(&now, file));
}
