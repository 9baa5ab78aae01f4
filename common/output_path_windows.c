/* SPDX-License-Identifier: MIT */
/* Output files on Windows. Links need a privilege there, and nobody can put a pipe into a
 * directory; so a name leads to a file, or to a device. */
#include "output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns our standard output or error if it is this file, else -1: opened once more, the file
 * would have a second offset. */
static int path_find_stream(const struct stat *file)
{
    struct stat other;
    for (int standard = STDOUT_FILENO; standard <= STDERR_FILENO; standard++)
        if (S_ISREG(file->st_mode) && fstat(standard, &other) == 0 && S_ISREG(other.st_mode) &&
            other.st_dev == file->st_dev && other.st_ino == file->st_ino)
            return standard;
    return -1;
}

int output_path_resolve(const char *name, struct output_path *output)
{
    struct stat file;
    bool exists = stat(name, &file) == 0;
    if (!exists && errno != ENOENT)
        return errno;
    if (exists && S_ISDIR(file.st_mode))
        return EISDIR;
    int standard = exists ? path_find_stream(&file) : -1;
    if (exists && (standard >= 0 || !S_ISREG(file.st_mode))) {
        int descriptor = standard >= 0 ? dup(standard) : open(name, O_WRONLY);
        if (descriptor < 0)
            return errno;
        *output = (struct output_path){.descriptor = descriptor, .exists = true};
        return 0;
    }
    char *path = strdup(name);
    if (!path)
        return ENOMEM;
    *output = (struct output_path){.path = path, .descriptor = -1, .exists = exists};
    return 0;
}

size_t path_folder_size(const char *path)
{
    size_t size = strlen(path);
    while (size && !strchr("/\\:", path[size - 1]))
        size--;
    return size;
}

void output_path_free(struct output_path *output)
{
    free(output->path);
    output->path = NULL;
}

void standard_descriptors_open(void)
{
    for (int descriptor = 0; descriptor <= STDERR_FILENO; descriptor++) {
        if (_get_osfhandle(descriptor) < 0)
            (void)!open("NUL", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}
