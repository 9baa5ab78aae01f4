/* SPDX-License-Identifier: MIT */
/*
 * Whatever is sent to the daemon of a session: each packet that is a request gets one answer that
 * is well-formed, and any other gets none; a change that is confirmed is in the list, and nothing
 * is in it that was not asked for. An input is packets, each after three bytes: which parts of a
 * request are filled in, its command, and its length. No recorder is started, and no file watched.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../target.h"
#include "messages.h"
#include "session/daemon.h"

enum {
    PACKETS_MAX = 20,
    FILL_MAGIC = 1,
    FILL_COMMAND = 2,
    FILL_SIZE = 4,
    FILL_END = 8, /* the text ends with a NUL */
    NO_PROCESS = 0x7ffffff0
};

static unsigned asked; /* recorders that were started */

bool recorders_attach(struct daemon *daemon, struct daemon_record *record, uint32_t pid)
{
    (void)daemon;
    asked++;
    *record = (struct daemon_record){
        .entry = {.pid = pid, .collector = NO_PROCESS, .state = SESSION_RECORDING}, .ready = -1};
    return true;
}

bool recorders_catch(struct daemon *daemon, struct daemon_record *record,
                     const struct names_event *event, int *seized)
{
    (void)daemon, (void)record, (void)event, (void)seized;
    return false;
}

void message(const char *format, ...)
{
    (void)format;
}

/* Makes a packet of bytes of the input. Returns its size. */
static size_t fill(struct session_request *request, const uint8_t *data, size_t size,
                   unsigned parts, unsigned command)
{
    memset(request, 0, sizeof *request);
    if (parts & FILL_MAGIC) {
        request->magic = SESSION_MAGIC;
        memcpy(request->text, data, size);
        request->size = (uint32_t)size + ((parts & FILL_END) != 0);
    } else {
        memcpy(request, data, size);
    }
    if (parts & FILL_COMMAND)
        request->command = command % (SESSION_STOP + 1);
    return parts & FILL_SIZE ? sizeof *request : size;
}

static void check_list(const struct daemon *daemon, const struct session_request *request,
                       const struct session_answer *answer)
{
    target_require(answer->total == daemon->count && daemon->count == asked,
                   "the list has the processes that were asked for");
    uint32_t rest = request->from < answer->total ? answer->total - request->from : 0;
    target_require(answer->count == (rest < SESSION_ENTRIES ? rest : SESSION_ENTRIES),
                   "an answer has as many of them as it can");
    target_require(answer->size > 0 && answer->text[answer->size - 1] == '\0' &&
                       strcmp(answer->text, daemon->folder) == 0,
                   "a list begins with the folder");
}

/* Checks that all processes of a confirmed change are there. */
static void check_update(const struct daemon *daemon, const struct session_request *request)
{
    const char *end = request->text + request->size;
    target_require(request->size > 0 && request->size <= sizeof request->text && end[-1] == '\0',
                   "a change that was confirmed is whole");
    for (const char *word = request->text; word < end; word += strlen(word) + 1) {
        bool is_known = strncmp(word, "+p", 2) != 0;
        for (size_t i = 0; i < daemon->count; i++)
            is_known = is_known || daemon->records[i].entry.pid == strtoul(word + 2, NULL, 10);
        target_require(is_known, "a process that was added is in the list");
        target_require(word[0] == '+' || word[0] == '-', "a change that was confirmed is one");
    }
}

static void check(const struct daemon *daemon, const struct session_request *request,
                  const struct session_answer *answer)
{
    target_require(answer->magic == SESSION_MAGIC && answer->count <= SESSION_ENTRIES &&
                       answer->size <= sizeof answer->text,
                   "an answer is well-formed");
    if (request->command == SESSION_LIST)
        check_list(daemon, request, answer);
    else if (request->command == SESSION_UPDATE && answer->result == 0)
        check_update(daemon, request);
    else
        target_require(answer->result != 0, "what is no request is refused");
}

static void send_packet(struct daemon *daemon, const struct session_request *request, size_t size)
{
    static struct session_answer answer;
    int ends[2];
    target_require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0, "a socket");
    target_require(send(ends[0], request, size, 0) == (ssize_t)size, "a packet");
    bool is_request = size == sizeof *request && request->magic == SESSION_MAGIC;
    bool goes_on = daemon_serve(daemon, ends[1]);
    target_require(goes_on == is_request, "who sends no request is disconnected");
    ssize_t got = recv(ends[0], &answer, sizeof answer, 0);
    bool is_answered = is_request && request->command != SESSION_STOP;
    target_require(got == (is_answered ? (ssize_t)sizeof answer : -1), "a request has one answer");
    if (is_answered)
        check(daemon, request, &answer);
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct session_request request;
    struct daemon daemon = {.folder = "/folder",
                            .stopper = -1,
                            .names_error = EPERM,
                            .names = {.events = -1, .changes = -1}};
    asked = 0;
    for (int i = 0; i < PACKETS_MAX && size >= 3; i++) {
        size_t part = data[2] < size - 3 ? data[2] : size - 3;
        size_t filled = fill(&request, data + 3, part, data[0], data[1]);
        if (filled != 0)
            send_packet(&daemon, &request, filled);
        data += 3 + part;
        size -= 3 + part;
    }
    free(daemon.records);
    return 0;
}
