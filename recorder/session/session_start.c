/* SPDX-License-Identifier: MIT */
/* The folder that has the sockets of sessions, and the start of a daemon there. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/client.h"
#include "launch.h"
#include "messages.h"
#include "session/daemon.h"
#include "session/session_messages.h"

#define PLACE_NAME "ttdrecord"

static bool session_start_place_is_own(int folder, mode_t forbidden)
{
    struct stat status;
    return fstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & forbidden) == 0;
}

/* Opens a folder in another one; makes it if it is not there. */
static int session_start_place_make_folder(int above, const char *name)
{
    mkdirat(above, name, S_IRWXU);
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Opens the folder that ours is to be in: nobody but this user and root can rename its files.
 */
static int session_start_open_above(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/') {
        int above = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0 && session_start_place_is_own(above, S_IWGRP | S_IWOTH))
            return above;
        if (above >= 0)
            close(above);
    }
    if (geteuid() == 0) {
        int above = open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above >= 0 && session_start_place_is_own(above, S_IWGRP | S_IWOTH))
            return above;
        if (above >= 0)
            close(above);
    }
    const struct passwd *user = getpwuid(geteuid());
    const char *home = user ? user->pw_dir : NULL;
    int above = home ? open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (above < 0 || !session_start_place_is_own(above, S_IWGRP | S_IWOTH)) {
        if (above >= 0)
            close(above);
        return -1;
    }
    int cache = session_start_place_make_folder(above, ".cache");
    close(above);
    return cache;
}

int place_open(const char **reason)
{
    int above = session_start_open_above();
    int place = above >= 0 ? session_start_place_make_folder(above, PLACE_NAME) : -1;
    if (above >= 0)
        close(above);
    if (place >= 0 && session_start_place_is_own(place, S_IRWXG | S_IRWXO))
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

/* Takes the lock of a session for as long as the descriptor is open in any process. Returns -1 if a
 * daemon has it, or with another errno. */
static int session_start_place_lock(int place, const char *name)
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

/* Removes the files of a session whose lock is held. */
static void session_start_place_remove(int place, const char *name)
{
    char file[SESSION_NAME_MAX + 8];
    snprintf(file, sizeof file, "%s.socket", name);
    unlinkat(place, file, 0);
}

/* Makes the folder; it must be this user's alone. Returns its absolute path, or NULL. */
static char *session_make_folder(const char *folder)
{
    struct stat status;
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        message("cannot make the folder '%s': %s", folder, strerror(errno));
        return NULL;
    }
    char *path = realpath(folder, NULL);
    if (path && stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return path;
    message("'%s' is not a folder that only this user can write to", folder);
    free(path);
    return NULL;
}

static int session_start_listen_in(int place, const char *session)
{
    struct sockaddr_un address;
    place_address(place, session, &address);
    session_start_place_remove(place,
                               session); /* of a daemon that was killed: it has the lock no more */
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return -1;
    mode_t before = umask(S_IRWXG | S_IRWXO);
    bool is_bound = bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
                    listen(listener, DAEMON_CLIENTS) == 0;
    umask(before);
    if (is_bound)
        return listener;
    int error = errno;
    close(listener);
    errno = error;
    return -1;
}

/* Makes this process a daemon whose messages go to the log. */
static bool session_start_become_daemon(const char *folder)
{
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/session.log", folder);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    return log >= 0 && nothing >= 0 && setsid() >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
           dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0 && chdir("/") == 0;
}

/* The daemon: reports an errno value, or 0, and serves. */
static _Noreturn void session_serve(int place, const char *session, const char *folder,
                                    const struct options *options, bool ends_unused, int report)
{
    static struct daemon daemon;
    daemon.folder = folder;
    daemon.options = *options;
    daemon.ends_unused = ends_unused;
    daemon.names_error = names_open(&daemon.names);
    daemon.listener = session_start_listen_in(place, session);
    int error = daemon.listener < 0 || !session_start_become_daemon(folder) ? errno : 0;
    limits_raise(RLIMIT_NOFILE);
    if (write(report, &error, sizeof error) != sizeof error || error != 0)
        _exit(EXIT_RECORDER);
    close(report);
    daemon_run(&daemon);
    session_start_place_remove(place, session);
    _exit(EXIT_SUCCESS);
}

/* Forks the daemon, and waits until it listens. Returns an errno value. */
static int start_daemon(int place, const char *session, const char *folder,
                        const struct options *options, bool ends_unused)
{
    int report[2], error = 0;
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    pid_t middle = fork();
    if (middle == 0) {
        close(report[0]);
        pid_t pid = fork();
        if (pid == 0)
            session_serve(place, session, folder, options, ends_unused, report[1]);
        _exit(pid < 0);
    }
    close(report[1]);
    if (middle < 0)
        error = errno;
    else if (read(report[0], &error, sizeof error) != sizeof error)
        error = ENOMEM;
    close(report[0]);
    if (middle > 0)
        waitpid(middle, NULL, 0);
    return error;
}

static int session_status_of(int error)
{
    return error == ENOMEM || error == EAGAIN  ? EXIT_MEMORY
           : error == EACCES || error == EPERM ? EXIT_DENIED
                                               : EXIT_RECORDER;
}

int session_start(const char *session, const char *folder, const struct options *options,
                  bool ends_unused)
{
    const char *reason = NULL;
    int place = place_open(&reason);
    if (place < 0) {
        message("%s", reason);
        return EXIT_DENIED;
    }
    int lock = session_start_place_lock(place, session);
    if (lock < 0 && errno == EWOULDBLOCK) {
        if (!ends_unused)
            message("there is a session '%s' already: 'ttdrecord session update' changes it",
                    session);
        close(place);
        return EXIT_EXISTS;
    }
    char *path = lock >= 0 ? session_make_folder(folder) : NULL;
    int error = !path ? EACCES : start_daemon(place, session, path, options, ends_unused);
    if (path && error != 0)
        message("cannot start the session: %s", strerror(error));
    free(path);
    close(place);
    if (lock >= 0)
        close(lock); /* the daemon has it open, too */
    return error == 0 ? EXIT_SUCCESS : session_status_of(error);
}
