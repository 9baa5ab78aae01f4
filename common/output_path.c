/* SPDX-License-Identifier: MIT */
#include "output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * Returns our standard output or error if it is this file, else -1. Opened once more, the file
 * would have a second offset, and messages and output would overwrite each other.
 */
static int path_find_standard(const struct stat *file)
{
    struct stat standard_file;
    for (int standard = STDOUT_FILENO; standard <= STDERR_FILENO; standard++)
        if (fstat(standard, &standard_file) == 0 && standard_file.st_dev == file->st_dev &&
            standard_file.st_ino == file->st_ino)
            return standard;
    return -1;
}

static int path_resolve_new(const char *name, struct output_path *output)
{
    char *path = strdup(name);
    if (!path)
        return ENOMEM;
    *output = (struct output_path){.path = path, .descriptor = -1};
    return 0;
}

static bool path_is_same_file(const struct stat *file, const struct stat *other)
{
    return file->st_dev == other->st_dev && file->st_ino == other->st_ino;
}

/* Fails if the name, where others may change it, leads elsewhere than a moment ago. */
static int path_resolve_regular(const char *name, const struct stat *file,
                                struct output_path *output)
{
    struct stat resolved;
    char *path = realpath(name, NULL);
    if (!path)
        return errno;
    if (lstat(path, &resolved) != 0 || !path_is_same_file(&resolved, file)) {
        free(path);
        return EACCES;
    }
    *output = (struct output_path){.path = path, .descriptor = -1, .exists = true};
    return 0;
}

/* Opens a file that is not regular. Fails if the name leads elsewhere than a moment ago. */
static int path_resolve_other(const char *name, const struct stat *file, struct output_path *output)
{
    struct stat opened;
    int standard = path_find_standard(file);
    int descriptor = standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                   : open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return errno;
    if (fstat(descriptor, &opened) != 0 || !path_is_same_file(&opened, file)) {
        close(descriptor);
        return EACCES;
    }
    *output = (struct output_path){.descriptor = descriptor, .exists = true};
    return 0;
}

static int path_resolve_file(const char *name, const struct stat *file, struct output_path *output)
{
    if (S_ISDIR(file->st_mode))
        return EISDIR;
    return S_ISREG(file->st_mode) && path_find_standard(file) < 0
               ? path_resolve_regular(name, file, output)
               : path_resolve_other(name, file, output);
}

/*
 * Whether another user put a FIFO or a symbolic link where everybody may put files. The user could
 * read the data from the FIFO, and choose by the link which file is replaced; the kernel refuses
 * such links only where fs.protected_symlinks is on and the directory is sticky.
 */
static bool path_is_planted(const char *name, const struct stat *file)
{
    struct stat directory;
    char *path = strdup(name);
    bool is_public =
        path && stat(dirname(path), &directory) == 0 && (directory.st_mode & S_IWOTH) != 0;
    bool is_trusted = file->st_uid == geteuid() || (is_public && file->st_uid == directory.st_uid);
    free(path);
    return (S_ISFIFO(file->st_mode) || S_ISLNK(file->st_mode)) && is_public && !is_trusted;
}

size_t path_folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Returns the name that the open symbolic link leads to, to be freed; or NULL, and sets errno. */
static char *path_read_link(int link, const char *name)
{
    char target[PATH_MAX];
    char *joined = NULL;
    ssize_t size = readlinkat(link, "", target, sizeof target - 1);
    if (size < 0)
        return NULL;
    target[size] = '\0';
    int prefix = *target != '/' ? (int)path_folder_size(name) : 0;
    return asprintf(&joined, "%.*s%s", prefix, name, target) < 0 ? NULL : joined;
}

/*
 * Looks at the name once: all is decided by the file that it was then. A symbolic link is read, not
 * followed, so that each one on the way is looked at; those in /proc have no names to read.
 *
 * @param next  set to the name that a link leads to, to be freed, else untouched
 */
static int path_resolve_once(const char *name, struct output_path *output, char **next)
{
    struct stat file;
    struct statfs system;
    int found = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0)
        return errno;
    int reason = fstat(found, &file) != 0 || fstatfs(found, &system) != 0 ? errno : 0;
    if (reason == 0 && path_is_planted(name, &file)) {
        reason = EACCES;
    } else if (reason == 0 && S_ISLNK(file.st_mode) && system.f_type != PROC_SUPER_MAGIC) {
        *next = path_read_link(found, name);
        reason = *next ? 0 : errno;
    } else if (reason == 0) {
        reason = S_ISLNK(file.st_mode) && stat(name, &file) != 0
                     ? errno
                     : path_resolve_file(name, &file, output);
    }
    close(found);
    return reason;
}

int output_path_resolve(const char *name, struct output_path *output)
{
    enum { LINKS_MAX = 40 }; /* as in the kernel */
    char *link = NULL;
    for (int links = 0; links <= LINKS_MAX; links++) {
        char *next = NULL;
        int reason = path_resolve_once(link ? link : name, output, &next);
        free(link);
        link = next;
        if (!link)
            return reason == ENOENT && links == 0 ? path_resolve_new(name, output) : reason;
    }
    free(link);
    return ELOOP;
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
