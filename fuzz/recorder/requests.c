/* SPDX-License-Identifier: MIT */
/*
 * Whatever is sent to the control socket: each packet gets one answer that is well-formed, or none;
 * the trace stays intact, and has exactly the marks that were confirmed, byte by byte. An input is
 * packets, each after two bytes: how much of a request is filled in, and its length.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../target.h"
#include "collect/collector.h"
#include "lone_process.h"

enum { PACKETS_MAX = 40, PACKET_MAX = 640, FILL_MAGIC = 1, FILL_PID = 2, FILL_SIZE = 4 };

struct mark {
    size_t size;
    char text[CONTROL_TEXT_MAX];
};

static struct lone_process lone;
static struct mark marks[PACKETS_MAX];
static size_t mark_count;

/* Makes a packet of bytes of the input, parts of which are set to the fields of a request. */
static size_t fill(unsigned char packet[PACKET_MAX], const uint8_t *data, size_t size,
                   unsigned parts)
{
    struct control_request request = {.magic = CONTROL_MAGIC, .pid = (uint32_t)getpid()};
    memset(packet, 0, PACKET_MAX);
    memcpy(packet + (parts & FILL_MAGIC ? sizeof request.magic : 0), data, size);
    if (parts & FILL_MAGIC)
        memcpy(packet, &request.magic, sizeof request.magic);
    if (parts & FILL_PID)
        memcpy(packet + offsetof(struct control_request, pid), &request.pid, sizeof request.pid);
    return parts & FILL_SIZE ? sizeof request : size;
}

/* Checks an answer, and notes the mark that it confirms. */
static void check(const struct control_answer *answer, const unsigned char *packet)
{
    struct control_request request;
    memcpy(&request, packet, sizeof request);
    target_require(answer->magic == CONTROL_MAGIC && answer->result <= CONTROL_UNKNOWN &&
                       answer->size <= sizeof answer->text &&
                       answer->size == strnlen(answer->text, sizeof answer->text),
                   "an answer is well-formed");
    if (answer->result != CONTROL_DONE || request.command != CONTROL_MARK)
        return;
    target_require(request.size <= sizeof request.text, "a mark that was confirmed has room");
    marks[mark_count].size = request.size;
    memcpy(marks[mark_count++].text, request.text, request.size);
}

static void send_packet(const unsigned char *packet, size_t size)
{
    struct control *control = &lone.collector.control;
    struct control_answer answer;
    int ends[2];
    target_require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0, "a socket");
    target_require(send(ends[0], packet, size, 0) == (ssize_t)size, "a packet");
    control->clients[control->count++] =
        (struct control_client){.socket = ends[1], .deadline = UINT64_MAX};
    control_step(control, 0, requests_answer, &lone.collector);
    target_require(control->count == 0, "a client is done with");
    ssize_t got = recv(ends[0], &answer, sizeof answer, 0);
    if (got > 0) {
        target_require(got == sizeof answer && size == sizeof(struct control_request),
                       "an answer is to a request");
        check(&answer, packet);
    }
    close(ends[0]);
}

static int is_mark(const struct ttd_user_event *event)
{
    return memcmp(event->client, TTD_CLIENT_MARKS, sizeof event->client) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char packet[PACKET_MAX];
    struct lone_events events;
    size_t found = 0;
    lone_process_open(&lone);
    mark_count = 0;
    for (int i = 0; i < PACKETS_MAX && size >= 2; i++) {
        size_t part = data[1] * 2u < size - 2 ? data[1] * 2u : size - 2;
        size_t filled = fill(packet, data + 2, part, data[0]);
        if (filled != 0)
            send_packet(packet, filled);
        data += 2 + part;
        size -= 2 + part;
    }
    lone_process_close(&lone, &events);
    for (size_t i = 0; i < events.count; i++) {
        if (!is_mark(&events.items[i]))
            continue;
        target_require(found < mark_count && events.items[i].size == marks[found].size &&
                           memcmp(events.items[i].data, marks[found].text, marks[found].size) == 0,
                       "a mark is what was sent");
        found++;
    }
    target_require(found == mark_count, "a mark that was confirmed is in the trace");
    lone_events_free(&events);
    return 0;
}
