/* SPDX-License-Identifier: MIT */
/*
 * A collector that takes no traces: it hands each request for a snapshot to a test, and what the
 * test says to the process.
 *
 *     answerer CONTENTS REPORT REPLIES PRELOAD PROGRAM [ARGUMENT]...
 *
 * CONTENTS is what the snapshot at the end is to have. Each request is a line of JSON on the
 * descriptor REPORT. A line on REPLIES says what happens: "taken", "refused", "denied"; "silent":
 * no answer; "stalled": no sign of life either; "dead": this process ends. Ends as the program
 * does.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder/channel_pool.h"
#include "recorder/collect/channel/host.h"
#include "recorder/collect/channel/translate.h"

enum { CALLS_MAX = 65536, TICK_MS = 1, UNHELD_LOOKS = 100 };

static struct host host;
static FILE *report;
static int replies;

static void print_calls(const char *name, const uint64_t *addresses, size_t count)
{
    fprintf(report, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        fprintf(report, "%s%" PRIu64, i == 0 ? "" : ",", addresses[i]);
    fputc(']', report);
}

/* Prints the blocks that the process has acquired and released so far. */
static void print_blocks(uint32_t process)
{
    static uint64_t acquired[CALLS_MAX], released[CALLS_MAX];
    size_t acquired_count = 0, released_count = 0;
    uint32_t used = channel_used(&host.channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= used; index++) {
        struct thread_slot *slot = channel_thread(&host.view, index);
        if (slot->state >> SLOT_PROCESS != process || (slot->state & SLOT_STATE) != SLOT_READY)
            continue;
        struct stream stream = {0};
        struct record record;
        while (stream_peek(&stream, &host, &slot->first, &record)) {
            const struct call_shape *shape = &call_shapes[record_operation(record.head)];
            const volatile uint64_t *operands = record.words + 1 + record_changes(record.head);
            bool acquires = shape->kind == CALL_ACQUISITION || shape->kind == CALL_END;
            if (acquires && acquired_count < CALLS_MAX)
                acquired[acquired_count++] = operands[shape->operands - 1];
            else if (shape->kind != CALL_UNKNOWN && !acquires && released_count < CALLS_MAX)
                released[released_count++] = operands[0];
            stream_consume(&stream, &record);
        }
        /* The first chunk may be freed by now: see stream_look(). */
        slot->state = SLOT_KNOWN | process << SLOT_PROCESS;
    }
    print_calls("acquired", acquired, acquired_count);
    print_calls("released", released, released_count);
}

static void print_request(uint32_t process, const struct snapshot_request *request)
{
    fprintf(report,
            "{\"pid\":%u,\"tid\":%u,\"reason\":%u,\"contents\":%u,\"has_permitted\":%u,"
            "\"stack_pointer\":%" PRIu64 ",\"thread_pointer\":%" PRIu64 ",\"own_memory\":%" PRIu64
            ",\"signal\":%u,\"code\":%d,\"fault_address\":%" PRIu64 ",\"registers\":{",
            channel_process(&host.view, process)->pid, request->tid, request->reason,
            request->contents, request->has_permitted, request->stack_pointer,
            request->thread_pointer, request->own_memory, request->signal, request->code,
            request->fault_address);
    const char *separator = "";
    for (int i = 0; i < SNAPSHOT_REGISTERS; i++)
        if ((request->registers_valid >> i & 1) != 0) {
            fprintf(report, "%s\"%d\":%" PRIu64, separator, i, request->registers[i]);
            separator = ",";
        }
    fputs("},\"frames\":[", report);
    for (uint32_t i = 0; i < request->frame_count; i++)
        fprintf(report, "%s[%" PRIu64 ",%" PRIu64 "]", i == 0 ? "" : ",", request->frame_pcs[i],
                request->frame_cfas[i]);
    fputc(']', report);
    print_blocks(process);
    fputs("}\n", report);
    fflush(report);
}

static void answer(struct snapshot_request *request, uint32_t state)
{
    uint32_t expected = SNAPSHOT_ASKED;
    if (atomic_compare_exchange_strong(&request->state, &expected, state))
        host_wake(&request->state);
}

/* Lets the test say what happens with a request, and shows signs of life meanwhile. */
static void take_reply(struct snapshot_request *request)
{
    char line[16] = "";
    size_t size = 0;
    struct pollfd wanted = {.fd = replies, .events = POLLIN};
    while (size + 1 < sizeof line && !strchr(line, '\n')) {
        while (poll(&wanted, 1, TICK_MS) == 0)
            host_tick(&host);
        if (read(replies, line + size, 1) != 1)
            exit(EXIT_FAILURE);
        size++;
    }
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "dead") == 0)
        _exit(EXIT_SUCCESS);
    bool is_silent = strcmp(line, "silent") == 0;
    while ((is_silent || strcmp(line, "stalled") == 0) &&
           atomic_load(&request->state) == SNAPSHOT_ASKED) {
        usleep(1000 * TICK_MS);
        if (is_silent)
            host_tick(&host);
    }
    answer(request, strcmp(line, "taken") == 0    ? SNAPSHOT_TAKEN
                    : strcmp(line, "denied") == 0 ? SNAPSHOT_DENIED
                                                  : SNAPSHOT_REFUSED);
}

static void look(void)
{
    uint32_t used = channel_used(&host.channel->free_processes, CHANNEL_PROCESSES);
    for (uint32_t process = 1; process <= used; process++) {
        struct snapshot_request *request = channel_request(&host.view, process);
        if (atomic_load(&request->state) != SNAPSHOT_ASKED)
            continue;
        print_request(process, request);
        take_reply(request);
    }
}

static pid_t start(const char *preload, char **command)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    setenv("LD_PRELOAD", preload, 1);
    setenv(CHANNEL_ENV, host.path, 1);
    execvp(command[0], command);
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 6 || host_open(&host, 0) != 0)
        return EXIT_FAILURE;
    report = fdopen(atoi(argv[2]), "w");
    replies = atoi(argv[3]);
    fcntl(fileno(report), F_SETFD, FD_CLOEXEC);
    fcntl(replies, F_SETFD, FD_CLOEXEC);
    host.channel->exit_contents = (uint32_t)atoi(argv[1]);
    pid_t pid = start(argv[4], argv + 5);
    int status = 0;
    for (int unheld = 0; unheld < UNHELD_LOOKS;) {
        uint32_t attention = atomic_load(&host.channel->attention);
        host_tick(&host);
        look();
        if (pid != 0 && waitpid(pid, &status, WNOHANG) == pid)
            pid = 0;
        unheld = pid != 0 || host_is_held(&host) ? 0 : unheld + 1;
        host_sleep(&host, attention, TICK_MS);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
