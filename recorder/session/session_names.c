/* SPDX-License-Identifier: MIT */
#include "session/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <unistd.h>

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

static int names_mark(const struct names *names, unsigned how, const char *path)
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
    int error = names_mark(names, FAN_MARK_ADD, path);
    if (error != 0)
        return error;
    item->path = strdup(path);
    if (!item->path) {
        names_mark(names, FAN_MARK_REMOVE, path);
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
        names_mark(names, FAN_MARK_ADD, names->items[i].path);
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
                    names_mark(names, FAN_MARK_ADD, names->items[i].path);
            }
            at += (ssize_t)sizeof *change + change->len;
        }
}
