/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Our standard output or error, if it is that file; else -1. */
static int find_standard(const struct stat *there)
{
    struct stat own;
    for (int file = STDOUT_FILENO; file <= STDERR_FILENO; file++)
        if (fstat(file, &own) == 0 && own.st_dev == there->st_dev && own.st_ino == there->st_ino)
            return file;
    return -1;
}

static int place_new(const char *name, struct place *place)
{
    struct stat link;
    if (lstat(name, &link) == 0)
        return ENOENT; /* a link that leads nowhere */
    char *path = strdup(name);
    if (path == NULL)
        return ENOMEM;
    *place = (struct place){.path = path, .descriptor = -1};
    return 0;
}

static int place_file(const char *name, struct place *place)
{
    char *path = realpath(name, NULL);
    if (path == NULL)
        return errno;
    *place = (struct place){.path = path, .descriptor = -1, .exists = true};
    return 0;
}

int place_find(const char *name, struct place *place)
{
    struct stat there;
    if (stat(name, &there) != 0)
        return errno == ENOENT ? place_new(name, place) : errno;
    if (S_ISDIR(there.st_mode))
        return EISDIR;
    int standard = find_standard(&there);
    if (standard < 0 && S_ISREG(there.st_mode))
        return place_file(name, place);
    int descriptor = standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                   : open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return errno;
    *place = (struct place){.descriptor = descriptor, .exists = true};
    return 0;
}

void place_free(struct place *place)
{
    free(place->path);
    place->path = NULL;
}
