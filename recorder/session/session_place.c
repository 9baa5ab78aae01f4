/* SPDX-License-Identifier: MIT */
#include "session/session_place.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session_messages.h"

#define PLACE_NAME "ttdrecord"

static bool place_is_own(int folder, mode_t forbidden)
{
    struct stat status;
    return fstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & forbidden) == 0;
}

static int open_folder(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Opens a folder in another one, which is made if it is not there. */
static int place_make_folder(int above, const char *name)
{
    mkdirat(above, name, S_IRWXU);
    return open_folder(above, name);
}

/* Opens the folder in which ours is to be: nobody but this user and root can rename its files.
 */
static int open_above(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/') {
        int above = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0 && place_is_own(above, S_IWGRP | S_IWOTH))
            return above;
        if (above >= 0)
            close(above);
    }
    if (geteuid() == 0) {
        int above = open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0 && place_is_own(above, S_IWGRP | S_IWOTH))
            return above;
        if (above >= 0)
            close(above);
    }
    const struct passwd *user = getpwuid(geteuid());
    const char *home = user ? user->pw_dir : NULL;
    int above = home ? open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (above < 0 || !place_is_own(above, S_IWGRP | S_IWOTH)) {
        if (above >= 0)
            close(above);
        return -1;
    }
    int cache = place_make_folder(above, ".cache");
    close(above);
    return cache;
}

int place_open(const char **reason)
{
    int above = open_above();
    int place = above >= 0 ? place_make_folder(above, PLACE_NAME) : -1;
    if (above >= 0)
        close(above);
    if (place >= 0 && place_is_own(place, S_IRWXG | S_IRWXO))
        return place;
    *reason = above < 0 ? "neither XDG_RUNTIME_DIR nor the home directory is this user's own"
                        : "its folder '" PLACE_NAME "' in XDG_RUNTIME_DIR, in /run or in "
                          "~/.cache is not this user's alone";
    if (place >= 0)
        close(place);
    return -1;
}

bool place_is_name(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= SESSION_NAME_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_.") ==
               size;
}

void place_address(int place, const char *name, struct sockaddr_un *address)
{
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s.socket", place,
             name);
}

int place_lock(int place, const char *name)
{
    char file[SESSION_NAME_MAX + 8];
    snprintf(file, sizeof file, "%s.lock", name);
    int lock = openat(place, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    int error = errno;
    if (lock >= 0)
        close(lock);
    errno = error;
    return -1;
}

void place_remove(int place, const char *name)
{
    char file[SESSION_NAME_MAX + 8];
    snprintf(file, sizeof file, "%s.socket", name);
    unlinkat(place, file, 0);
}
