/* SPDX-License-Identifier: MIT */
#include "output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Returns our standard output or error if it is this file, else -1. Opened once more, the file
 * would have a second offset, and messages and output would overwrite each other.
 */
static int find_standard(const struct stat *file)
{
    struct stat standard_file;
    for (int standard = STDOUT_FILENO; standard <= STDERR_FILENO; standard++)
        if (fstat(standard, &standard_file) == 0 && standard_file.st_dev == file->st_dev &&
            standard_file.st_ino == file->st_ino)
            return standard;
    return -1;
}

static int resolve_new(const char *name, struct output_path *output)
{
    struct stat link;
    if (lstat(name, &link) == 0)
        return ENOENT; /* a symbolic link that leads nowhere */
    char *path = strdup(name);
    if (!path)
        return ENOMEM;
    *output = (struct output_path){.path = path, .descriptor = -1};
    return 0;
}

/* Fails if the name, where others may change it, leads elsewhere than a moment ago. */
static int resolve_regular(const char *name, const struct stat *file, struct output_path *output)
{
    struct stat resolved;
    char *path = realpath(name, NULL);
    if (!path)
        return errno;
    if (lstat(path, &resolved) != 0 || resolved.st_dev != file->st_dev ||
        resolved.st_ino != file->st_ino) {
        free(path);
        return EACCES;
    }
    *output = (struct output_path){.path = path, .descriptor = -1, .exists = true};
    return 0;
}

/*
 * Whether another user put a FIFO or a symbolic link where everybody may put files. The user could
 * read the data from the FIFO, and choose by the link which file is replaced; the kernel refuses
 * such links only where fs.protected_symlinks is on.
 */
static bool is_planted(const char *name, const struct stat *file)
{
    struct stat directory;
    char *path = strdup(name);
    bool is_public = path && stat(dirname(path), &directory) == 0 &&
                     (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
    bool is_trusted = file->st_uid == geteuid() || (is_public && file->st_uid == directory.st_uid);
    free(path);
    return (S_ISFIFO(file->st_mode) || S_ISLNK(file->st_mode)) && is_public && !is_trusted;
}

int output_path_resolve(const char *name, struct output_path *output)
{
    struct stat file;
    if (lstat(name, &file) == 0 && is_planted(name, &file))
        return EACCES;
    if (stat(name, &file) != 0)
        return errno == ENOENT ? resolve_new(name, output) : errno;
    if (S_ISDIR(file.st_mode))
        return EISDIR;
    int standard = find_standard(&file);
    if (standard < 0 && S_ISREG(file.st_mode))
        return resolve_regular(name, &file, output);
    if (standard < 0 && is_planted(name, &file))
        return EACCES;
    int descriptor = standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                   : open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return errno;
    *output = (struct output_path){.descriptor = descriptor, .exists = true};
    return 0;
}

void output_path_free(struct output_path *output)
{
    free(output->path);
    output->path = NULL;
}

void standard_descriptors_open(void)
{
    for (int descriptor = 0; descriptor <= STDERR_FILENO; descriptor++) {
        int contrary = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        /* open() takes the lowest free number: this one, since those below it are open. */
        if (fcntl(descriptor, F_GETFD) < 0)
            (void)!open("/dev/null", contrary | O_CLOEXEC);
    }
}
