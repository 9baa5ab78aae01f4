/* SPDX-License-Identifier: MIT */
#include "session/daemon.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "launch.h"
#include "messages.h"

int names_open(struct names *names)
{
    *names = (struct names){.events = -1, .changes = -1};
    names->events = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID,
                                  O_RDONLY | O_CLOEXEC);
    if (names->events < 0)
        return errno;
    names->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (names->changes >= 0)
        return 0;
    int error = errno;
    names_close(names);
    return error;
}

void names_close(struct names *names)
{
    if (names->events >= 0)
        close(names->events);
    if (names->changes >= 0)
        close(names->changes);
    names->events = names->changes = -1;
}

static int daemon_mark_name(const struct names *names, unsigned how, const char *path)
{
    return fanotify_mark(names->events, how, FAN_OPEN_EXEC_PERM, AT_FDCWD, path) == 0 ? 0 : errno;
}

/* Returns the index of a program; `count` if there is none. */
static size_t session_find_name(const struct names *names, const char *path)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->items[i].path, path) != 0)
        i++;
    return i;
}

/* Watches the folder of a program. */
static int session_names_watch_folder(const struct names *names, const char *path)
{
    char *folder = strdup(path);
    if (!folder)
        return -1;
    *(strrchr(folder, '/') == folder ? folder + 1 : strrchr(folder, '/')) = '\0';
    int watch = inotify_add_watch(names->changes, folder, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    free(folder);
    return watch;
}

int names_watch(struct names *names, const char *path)
{
    if (names->events < 0)
        return EPERM;
    if (session_find_name(names, path) < names->count)
        return EEXIST;
    if (names->count == NAMES_MAX)
        return ENOSPC;
    /* The folder first: a file that replaces it from now on is seen. */
    struct named_program *item = &names->items[names->count];
    item->folder = session_names_watch_folder(names, path);
    if (item->folder < 0)
        return errno;
    int error = daemon_mark_name(names, FAN_MARK_ADD, path);
    if (error != 0)
        return error;
    item->path = strdup(path);
    if (!item->path) {
        daemon_mark_name(names, FAN_MARK_REMOVE, path);
        return ENOMEM;
    }
    names->count++;
    return 0;
}

int names_forget(struct names *names, const char *path)
{
    size_t index = session_find_name(names, path);
    if (index == names->count)
        return ENOENT;
    bool is_shared = false;
    for (size_t i = 0; i < names->count; i++)
        is_shared =
            is_shared || (i != index && names->items[i].folder == names->items[index].folder);
    if (!is_shared)
        inotify_rm_watch(names->changes, names->items[index].folder);
    free(names->items[index].path);
    names->items[index] = names->items[--names->count];
    /* All marks are made anew: a file that was replaced may have one yet. */
    fanotify_mark(names->events, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
    for (size_t i = 0; i < names->count; i++)
        daemon_mark_name(names, FAN_MARK_ADD, names->items[i].path);
    return 0;
}

bool names_next(struct names *names, struct names_event *event)
{
    struct fanotify_event_metadata data;
    /* Room for one event: the next ones stay in the queue. */
    while (read(names->events, &data, sizeof data) == sizeof data) {
        if (data.vers != FANOTIFY_METADATA_VERSION || data.fd < 0)
            continue;
        *event = (struct names_event){data.fd, data.pid > 0 ? (uint32_t)data.pid : 0};
        return true;
    }
    return false;
}

void names_allow(struct names *names, struct names_event *event)
{
    const struct fanotify_response response = {.fd = event->file, .response = FAN_ALLOW};
    ssize_t written = write(names->events, &response, sizeof response);
    (void)written; /* the thread may have been killed meanwhile */
    close(event->file);
    event->file = -1;
}

void names_follow_changes(struct names *names)
{
    _Alignas(struct inotify_event) char buffer[4096];
    ssize_t size;
    while ((size = read(names->changes, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event *change = (const void *)(buffer + at);
            for (size_t i = 0; i < names->count; i++) {
                const char *name = strrchr(names->items[i].path, '/') + 1;
                if (change->len != 0 && names->items[i].folder == change->wd &&
                    strcmp(change->name, name) == 0)
                    daemon_mark_name(names, FAN_MARK_ADD, names->items[i].path);
            }
            at += (ssize_t)sizeof *change + change->len;
        }
}

/* How long a program may wait for its recorder before it is let go unrecorded. */
#define PENDING_NS UINT64_C(2000000000)

static uint64_t daemon_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool daemon_record_is_live(const struct daemon_record *record)
{
    return record->entry.state == SESSION_STARTING || record->entry.state == SESSION_RECORDING;
}

/* Makes room for one more record: the oldest one that is over is forgotten if there are many. */
static bool daemon_reserve_record(struct daemon *daemon)
{
    for (size_t i = 0; daemon->count == DAEMON_RECORDS && i < daemon->count; i++)
        if (!daemon_record_is_live(&daemon->records[i]))
            memmove(&daemon->records[i], &daemon->records[i + 1],
                    (--daemon->count - i) * sizeof *daemon->records);
    if (daemon->count == DAEMON_RECORDS)
        return false;
    void *records =
        array_grow(daemon->records, daemon->count, &daemon->capacity, sizeof *daemon->records);
    if (!records)
        return false;
    daemon->records = records;
    return true;
}

/* Starts the recorder of a process that runs. Returns an exit status, and a text. */
static int daemon_attach(struct daemon *daemon, uint32_t pid, char *text, size_t size)
{
    for (size_t i = 0; i < daemon->count; i++)
        if (daemon->records[i].entry.pid == pid && daemon_record_is_live(&daemon->records[i])) {
            snprintf(text, size, "process %u is in the session already", pid);
            return EXIT_RECORDER;
        }
    if (!daemon_reserve_record(daemon) ||
        !recorders_attach(daemon, &daemon->records[daemon->count], pid)) {
        snprintf(text, size, "no recorder for process %u can be started: too many, or no memory",
                 pid);
        return EXIT_MEMORY;
    }
    daemon->count++;
    return EXIT_SUCCESS;
}

/* Attaches to the processes that run a program. */
static void daemon_attach_running(struct daemon *daemon, const char *path)
{
    char link[300], text[128];
    struct stat program, other;
    DIR *processes = stat(path, &program) == 0 ? opendir("/proc") : NULL;
    for (const struct dirent *entry; processes && (entry = readdir(processes));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(link, sizeof link, "/proc/%.200s/exe", entry->d_name);
        if (stat(link, &other) == 0 && other.st_ino == program.st_ino &&
            other.st_dev == program.st_dev)
            daemon_attach(daemon, (uint32_t)strtoul(entry->d_name, NULL, 10), text, sizeof text);
    }
    if (processes)
        closedir(processes);
}

static int daemon_add_name(struct daemon *daemon, const char *path, bool has_running, char *text,
                           size_t size)
{
    int error = daemon->names_error != 0 ? daemon->names_error : names_watch(&daemon->names, path);
    if (has_running && error != EEXIST)
        daemon_attach_running(daemon, path);
    if (error == 0)
        return EXIT_SUCCESS;
    if (error == EEXIST)
        snprintf(text, size, "'%s' is recorded already", path);
    else
        snprintf(text, size, "new processes of '%s' are not recorded: %s%s", path, strerror(error),
                 error == EPERM ? "; that needs root, with CAP_SYS_ADMIN" : "");
    return error == EPERM    ? EXIT_DENIED
           : error == EEXIST ? EXIT_EXISTS
           : error == ENOMEM ? EXIT_MEMORY
                             : EXIT_RECORDER;
}

static int daemon_remove_process(struct daemon *daemon, uint32_t pid, char *text, size_t size)
{
    for (size_t i = 0; i < daemon->count; i++)
        if (daemon->records[i].entry.pid == pid && daemon_record_is_live(&daemon->records[i])) {
            kill((pid_t)daemon->records[i].entry.collector, SIGTERM);
            return EXIT_SUCCESS;
        }
    snprintf(text, size, "process %u is not in the session", pid);
    return EXIT_RECORDER;
}

/* Makes one change. Returns an exit status, and a text if it is not 0. */
static int daemon_change_one(struct daemon *daemon, const char *word, char *text, size_t size)
{
    char *end = NULL;
    bool is_added = word[0] == '+';
    char kind = word[0] != '\0' ? word[1] : '\0';
    const char *value = word + 2;
    if ((!is_added && word[0] != '-') || kind == '\0')
        kind = '\0';
    if (kind == 'p') {
        unsigned long pid = isdigit((unsigned char)value[0]) ? strtoul(value, &end, 10) : 0;
        if (pid != 0 && pid <= INT32_MAX && *end == '\0')
            return is_added ? daemon_attach(daemon, (uint32_t)pid, text, size)
                            : daemon_remove_process(daemon, (uint32_t)pid, text, size);
    }
    if (kind == 's' && is_added && isdigit((unsigned char)value[0])) {
        daemon->options.snapshots.every = strtoull(value, NULL, 10); /* of recordings to come */
        return EXIT_SUCCESS;
    }
    if (kind == 'k' && is_added && isdigit((unsigned char)value[0])) {
        uint64_t stacks = strtoull(value, NULL, 10); /* likewise: see CONTROL_STACKS */
        daemon->options.recording.stackless = (uint32_t)stacks & CALLS_ALL;
        daemon->options.recording.stack_depth = (uint32_t)(stacks >> 32);
        daemon->options.recording.flags |= CHANNEL_FEW_STACKS;
        return EXIT_SUCCESS;
    }
    if ((kind == 'n' || kind == 'e') && value[0] == '/') {
        if (is_added)
            return daemon_add_name(daemon, value, kind == 'n', text, size);
        if (daemon->names_error == 0 && names_forget(&daemon->names, value) == 0)
            return EXIT_SUCCESS;
        snprintf(text, size, "'%s' is not recorded by name", value);
        return EXIT_RECORDER;
    }
    snprintf(text, size, "the daemon does not know this change");
    return EXIT_RECORDER;
}

/* Makes all changes. The answer has the first problem. */
static void daemon_update(struct daemon *daemon, const struct session_request *request,
                          struct session_answer *answer)
{
    const char *word = request->text, *end = request->text + request->size;
    daemon->was_updated = true;
    if (request->size == 0 || end[-1] != '\0') {
        answer->result = EXIT_RECORDER;
        snprintf(answer->text, sizeof answer->text, "the daemon does not know this request");
        return;
    }
    for (; word < end; word += strlen(word) + 1) {
        char text[SESSION_TEXT_MAX];
        int status = daemon_change_one(daemon, word, text, sizeof text);
        if (status == EXIT_SUCCESS || answer->result != EXIT_SUCCESS)
            continue;
        answer->result = (uint32_t)status;
        snprintf(answer->text, sizeof answer->text, "%s", text);
    }
}

static void daemon_append_text(struct session_answer *answer, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size > sizeof answer->text - answer->size)
        return;
    memcpy(answer->text + answer->size, text, size);
    answer->size += (uint32_t)size;
}

static void daemon_list(const struct daemon *daemon, uint32_t from, struct session_answer *answer)
{
    daemon_append_text(answer, daemon->folder);
    for (size_t i = 0; i < daemon->names.count; i++)
        daemon_append_text(answer, daemon->names.items[i].path);
    answer->total = (uint32_t)daemon->count;
    for (size_t i = from; i < daemon->count && answer->count < SESSION_ENTRIES; i++)
        answer->entries[answer->count++] = daemon->records[i].entry;
}

/* Ends all recordings, and all waiting. */
static void daemon_begin_to_stop(struct daemon *daemon)
{
    daemon->is_stopping = true;
    while (daemon->pending_count > 0)
        names_allow(&daemon->names, &daemon->pending[--daemon->pending_count].event);
    names_close(&daemon->names);
    for (size_t i = 0; i < daemon->count; i++)
        if (daemon_record_is_live(&daemon->records[i]))
            kill((pid_t)daemon->records[i].entry.collector, SIGTERM);
}

static void daemon_answer(struct daemon *daemon, const struct session_request *request,
                          struct session_answer *answer)
{
    *answer = (struct session_answer){.magic = SESSION_MAGIC};
    if (request->command == SESSION_LIST) {
        daemon_list(daemon, request->from, answer);
        return;
    }
    if (request->command == SESSION_STOP)
        daemon_begin_to_stop(daemon);
    else if (request->command == SESSION_UPDATE && request->size <= sizeof request->text &&
             !daemon->is_stopping)
        daemon_update(daemon, request, answer);
    else {
        answer->result = EXIT_RECORDER;
        snprintf(answer->text, sizeof answer->text,
                 daemon->is_stopping ? "the session ends"
                                     : "the daemon does not know this request");
    }
    answer->size = (uint32_t)strnlen(answer->text, sizeof answer->text);
}

static bool daemon_client_may_ask(int client)
{
    struct ucred user;
    socklen_t size = sizeof user;
    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && size == sizeof user &&
           (user.uid == geteuid() || user.uid == 0);
}

static void daemon_accept_client(struct daemon *daemon)
{
    int client = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    if (!daemon_client_may_ask(client)) {
        close(client);
        return;
    }
    if (daemon->client_count == DAEMON_CLIENTS) { /* one that asks nothing makes room */
        close(daemon->clients[0]);
        if (daemon->stopper == daemon->clients[0])
            daemon->stopper = -1;
        memmove(daemon->clients, daemon->clients + 1,
                --daemon->client_count * sizeof *daemon->clients);
    }
    daemon->clients[daemon->client_count++] = client;
}

bool daemon_serve(struct daemon *daemon, int client)
{
    static struct session_request request;
    static struct session_answer answer;
    ssize_t size = recv(client, &request, sizeof request, MSG_TRUNC);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    if (size != sizeof request || request.magic != SESSION_MAGIC)
        return false;
    daemon_answer(daemon, &request, &answer);
    if (request.command == SESSION_STOP) {
        daemon->stopper = client; /* it is answered by the end of the connection */
        return true;
    }
    return send(client, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

static void daemon_end_client(struct daemon *daemon, int client)
{
    for (size_t i = 0; i < daemon->client_count; i++)
        if (daemon->clients[i] == client) {
            close(client);
            daemon->clients[i] = daemon->clients[--daemon->client_count];
            daemon->stopper = daemon->stopper == client ? -1 : daemon->stopper;
        }
}

/* Takes the statuses of recorders that have ended. */
static void daemon_reap(struct daemon *daemon)
{
    struct signalfd_siginfo info;
    while (read(daemon->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD && !daemon->is_stopping)
            daemon_begin_to_stop(daemon);
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < daemon->count; i++) {
            struct daemon_record *record = &daemon->records[i];
            if (record->entry.collector != (uint32_t)pid || !daemon_record_is_live(record))
                continue;
            bool has_begun = record->entry.state == SESSION_RECORDING;
            record->entry.state = has_begun ? SESSION_ENDED : SESSION_REFUSED;
            record->entry.status =
                (uint32_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
            if (record->ready >= 0)
                close(record->ready);
            record->ready = -1;
        }
}

static void daemon_note_ready(struct daemon_record *record)
{
    char byte;
    if (read(record->ready, &byte, 1) == 1)
        record->entry.state = SESSION_RECORDING;
    close(record->ready);
    record->ready = -1;
}

/* Begins to trace the thread; it waits meanwhile. */
static void daemon_catch_thread(struct daemon *daemon, struct names_event *event)
{
    bool is_caught = event->tid == 0 || daemon->pending_count == DAEMON_PENDING;
    for (size_t i = 0; i < daemon->count;
         i++) /* the program is a script, and its interpreter too */
        is_caught = is_caught || (daemon->records[i].thread == event->tid &&
                                  daemon->records[i].entry.state == SESSION_STARTING);
    struct daemon_pending *pending = &daemon->pending[daemon->pending_count];
    if (!is_caught && daemon_reserve_record(daemon)) {
        *pending = (struct daemon_pending){.event = *event, .deadline = daemon_now() + PENDING_NS};
        if (recorders_catch(daemon, &daemon->records[daemon->count], event, &pending->seized)) {
            daemon->count++;
            daemon->pending_count++;
            return;
        }
        if (daemon_reserve_record(daemon))
            daemon->records[daemon->count++] = (struct daemon_record){
                .entry = {.pid = event->tid, .state = SESSION_REFUSED, .status = EXIT_RECORDER},
                .ready = -1};
    }
    names_allow(&daemon->names, event);
}

static void daemon_end_pending(struct daemon *daemon, size_t index)
{
    names_allow(&daemon->names, &daemon->pending[index].event);
    close(daemon->pending[index].seized);
    daemon->pending[index] = daemon->pending[--daemon->pending_count];
}

/* Lets programs go whose recorder does not come. Returns the time limit of poll(). */
static int daemon_expire(struct daemon *daemon)
{
    uint64_t now = daemon_now();
    for (size_t i = daemon->pending_count; i-- > 0;)
        if (daemon->pending[i].deadline <= now) {
            message("warning: thread %u was executed before its recorder traced it",
                    daemon->pending[i].event.tid);
            daemon_end_pending(daemon, i);
        }
    return daemon->pending_count > 0 ? 100 : -1;
}

static void poll_add(struct pollfd *polled, size_t *count, int file)
{
    if (file >= 0)
        polled[(*count)++] = (struct pollfd){.fd = file, .events = POLLIN};
}

static bool daemon_has_event(const struct pollfd *polled, size_t count, int file)
{
    for (size_t i = 0; i < count && file >= 0; i++)
        if (polled[i].fd == file)
            return polled[i].revents != 0;
    return false;
}

static size_t poll_all(const struct daemon *daemon, struct pollfd *polled)
{
    size_t count = 0;
    poll_add(polled, &count, daemon->signals);
    poll_add(polled, &count, daemon->listener);
    poll_add(polled, &count, daemon->names.events);
    poll_add(polled, &count, daemon->names.changes);
    for (size_t i = 0; i < daemon->client_count; i++)
        poll_add(polled, &count, daemon->clients[i]);
    for (size_t i = 0; i < daemon->pending_count; i++)
        poll_add(polled, &count, daemon->pending[i].seized);
    for (size_t i = 0; i < daemon->count; i++)
        poll_add(polled, &count, daemon->records[i].ready);
    return count;
}

/* Handles the events of the poll. */
static void daemon_step(struct daemon *daemon, const struct pollfd *polled, size_t count)
{
    struct names_event event;
    for (size_t i = daemon->pending_count; i-- > 0;)
        if (daemon_has_event(polled, count, daemon->pending[i].seized))
            daemon_end_pending(daemon, i);
    for (size_t i = 0; i < daemon->count; i++)
        if (daemon_has_event(polled, count, daemon->records[i].ready))
            daemon_note_ready(&daemon->records[i]);
    if (daemon_has_event(polled, count, daemon->signals))
        daemon_reap(daemon);
    if (daemon_has_event(polled, count, daemon->names.changes))
        names_follow_changes(&daemon->names);
    if (daemon_has_event(polled, count, daemon->names.events))
        while (names_next(&daemon->names, &event))
            daemon_catch_thread(daemon, &event);
    for (size_t i = daemon->client_count; i-- > 0;) {
        int client = daemon->clients[i];
        if (daemon_has_event(polled, count, client) && !daemon_serve(daemon, client))
            daemon_end_client(daemon, client);
    }
    if (daemon_has_event(polled, count, daemon->listener))
        daemon_accept_client(daemon);
}

static bool daemon_is_over(const struct daemon *daemon)
{
    bool has_live = daemon->pending_count > 0;
    for (size_t i = 0; i < daemon->count; i++)
        has_live = has_live || daemon_record_is_live(&daemon->records[i]);
    return !has_live && (daemon->is_stopping ||
                         (daemon->ends_unused && daemon->was_updated && daemon->names.count == 0));
}

void daemon_run(struct daemon *daemon)
{
    static struct pollfd polled[DAEMON_RECORDS + DAEMON_PENDING + DAEMON_CLIENTS + 4];
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGINT);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    daemon->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    daemon->stopper = -1;
    while (!daemon_is_over(daemon)) {
        int limit = daemon_expire(daemon);
        size_t count = poll_all(daemon, polled);
        if (poll(polled, count, limit) > 0)
            daemon_step(daemon, polled, count);
    }
}
