/* SPDX-License-Identifier: MIT */
#include "session/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "common/visible.h"
#include "launch.h"
#include "messages.h"
#include "session/daemon.h"
#include "session/session_messages.h"

/* The folder that has the sockets of sessions, and the start of a daemon there. */

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
static int client_start_daemon(int place, const char *session, const char *folder,
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
    int error = !path ? EACCES : client_start_daemon(place, session, path, options, ends_unused);
    if (path && error != 0)
        message("cannot start the session: %s", strerror(error));
    free(path);
    close(place);
    if (lock >= 0)
        close(lock); /* the daemon has it open, too */
    return error == 0 ? EXIT_SUCCESS : session_status_of(error);
}

enum { ANSWER_MS = 60 * 1000, LOOK_NS = 10 * 1000 * 1000 };

/* Connects through the open folder; -1 if nobody, or another user, is there. */
static int client_connect_in(int place, const char *session)
{
    struct sockaddr_un address;
    struct ucred user;
    socklen_t size = sizeof user;
    place_address(place, session, &address);
    int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connected < 0)
        return -1;
    if (connect(connected, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && user.uid == geteuid())
        return connected;
    close(connected);
    return -1;
}

int client_connect(const char *session)
{
    const char *reason = NULL;
    int place = place_open(&reason);
    if (place < 0) {
        message("%s", reason);
        return -1;
    }
    int connected = client_connect_in(place, session);
    close(place);
    if (connected < 0)
        message("there is no session '%s' of this user", session);
    return connected;
}

/* Sends a request, and receives its answer. Returns false after a message. */
static bool client_exchange(int connected, const struct session_request *request,
                            struct session_answer *answer)
{
    struct pollfd event = {.fd = connected, .events = POLLIN};
    if (send(connected, request, sizeof *request, MSG_NOSIGNAL) == sizeof *request &&
        poll(&event, 1, ANSWER_MS) == 1 &&
        recv(connected, answer, sizeof *answer, 0) == sizeof *answer &&
        answer->magic == SESSION_MAGIC && answer->count <= SESSION_ENTRIES &&
        answer->size <= sizeof answer->text)
        return true;
    message("the daemon of the session does not answer");
    return false;
}

int client_update(int connected, const char *words, size_t size)
{
    static struct session_request request;
    static struct session_answer answer;
    char text[1024];
    request.magic = SESSION_MAGIC;
    request.command = SESSION_UPDATE;
    request.size = (uint32_t)size;
    memcpy(request.text, words, size);
    if (!client_exchange(connected, &request, &answer))
        return EXIT_RECORDER;
    if (answer.result != EXIT_SUCCESS) {
        visible_escape(answer.text, answer.size < 200 ? answer.size : 200, text, sizeof text);
        message("%s", text);
    }
    return (int)answer.result;
}

int client_read(int connected, struct client_list *list)
{
    static struct session_request request;
    static struct session_answer answer;
    size_t capacity = 0;
    *list = (struct client_list){0};
    request.magic = SESSION_MAGIC;
    request.command = SESSION_LIST;
    do {
        request.from = (uint32_t)list->count;
        if (!client_exchange(connected, &request, &answer)) {
            free(list->entries);
            return EXIT_RECORDER;
        }
        void *entries = array_reserve(list->entries, list->count + answer.count + 1, &capacity,
                                      sizeof *list->entries);
        if (!entries) {
            free(list->entries);
            return EXIT_MEMORY;
        }
        list->entries = entries;
        memcpy(list->entries + list->count, answer.entries, answer.count * sizeof *answer.entries);
        list->count += answer.count;
    } while (answer.count > 0 && list->count < answer.total);
    list->text_size = answer.size;
    memcpy(list->text, answer.text, answer.size);
    return EXIT_SUCCESS;
}

/* Prints the last line of the session's log that names a process. */
static void client_print_reason(const char *folder, uint32_t pid)
{
    char path[4096 + 32], line[1024], last[1024] = "", sought[32], text[4 * sizeof last];
    snprintf(path, sizeof path, "%.4096s/session.log", folder);
    snprintf(sought, sizeof sought, "process %u", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, sought))
            memcpy(last, line, sizeof last);
    if (file)
        fclose(file);
    last[strcspn(last, "\n")] = '\0';
    const char *from = strncmp(last, "ttdrecord: ", 11) == 0 ? last + 11 : last;
    visible_escape(from, strlen(from), text, sizeof text);
    if (text[0] != '\0')
        message("%s", text);
    else
        message("process %u is not recorded: see '%s'", pid, path);
}

/* Whether the changes add the process. */
static bool client_changes_name(const char *words, size_t size, uint32_t pid)
{
    for (const char *word = words; word < words + size; word += strlen(word) + 1)
        if (strncmp(word, "+p", 2) == 0 && strtoul(word + 2, NULL, 10) == pid)
            return true;
    return false;
}

int client_await(int connected, const char *words, size_t size)
{
    const struct timespec moment = {.tv_nsec = LOOK_NS};
    for (;; nanosleep(&moment, NULL)) {
        struct client_list list;
        bool has_starting = false;
        int status = client_read(connected, &list);
        if (status != EXIT_SUCCESS)
            return status;
        for (size_t i = 0; i < list.count; i++)
            has_starting = has_starting || list.entries[i].state == SESSION_STARTING;
        for (size_t i = 0; !has_starting && i < list.count; i++) {
            bool is_newest = true; /* of this process id */
            for (size_t k = i + 1; k < list.count; k++)
                is_newest = is_newest && list.entries[k].pid != list.entries[i].pid;
            if (!is_newest || list.entries[i].state != SESSION_REFUSED ||
                !client_changes_name(words, size, list.entries[i].pid))
                continue;
            client_print_reason(list.text, list.entries[i].pid);
            status = (int)list.entries[i].status;
        }
        free(list.entries);
        if (!has_starting)
            return status;
    }
}

int client_stop(const char *session)
{
    static struct session_request request;
    char byte;
    int connected = client_connect(session);
    if (connected < 0)
        return EXIT_NO_SESSION;
    request.magic = SESSION_MAGIC;
    request.command = SESSION_STOP;
    bool is_sent = send(connected, &request, sizeof request, MSG_NOSIGNAL) == sizeof request;
    ssize_t size;
    do /* the connection ends with the daemon */
        size = is_sent ? recv(connected, &byte, 1, 0) : -1;
    while (size < 0 && is_sent && errno == EINTR);
    close(connected);
    if (is_sent)
        return EXIT_SUCCESS;
    message("the daemon of the session does not answer");
    return EXIT_RECORDER;
}

int client_list(void)
{
    static const char end[] = ".socket";
    const char *reason = NULL;
    int place = place_open(&reason);
    if (place < 0) {
        message("%s", reason);
        return EXIT_RECORDER;
    }
    DIR *folder = fdopendir(fcntl(place, F_DUPFD_CLOEXEC, 0));
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t size = strlen(entry->d_name);
        if (size < sizeof end || strcmp(entry->d_name + size - (sizeof end - 1), end) != 0)
            continue;
        entry->d_name[size - (sizeof end - 1)] = '\0';
        int connected = place_is_name(entry->d_name) ? client_connect_in(place, entry->d_name) : -1;
        struct client_list list;
        if (connected >= 0 && client_read(connected, &list) == EXIT_SUCCESS) {
            size_t live = 0;
            for (size_t i = 0; i < list.count; i++)
                live += list.entries[i].state == SESSION_RECORDING;
            printf("%s: %zu process%s recorded, in '%s'\n", entry->d_name, live,
                   live == 1 ? "" : "es", list.text);
            free(list.entries);
        }
        if (connected >= 0)
            close(connected);
    }
    if (folder)
        closedir(folder);
    close(place);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_RECORDER;
}
