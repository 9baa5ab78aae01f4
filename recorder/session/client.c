/* SPDX-License-Identifier: MIT */
#include "session/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "common/visible.h"

#include "launch.h"
#include "messages.h"
#include "session/session_messages.h"

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
