/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "channel_view.h"
#include "common/visible.h"
#include "messages.h"
#include "launch.h"
#include "options.h"
#include "snapshot/stop/threads.h"

enum { ANSWER_SECONDS = 60, EXPLAIN_MS = 1000, LEASE_TRIES = 20 };

static uint32_t control_command_of(const char *name)
{
    static const char *const names[] = {
        [CONTROL_STATUS] = "status",       [CONTROL_SNAPSHOT] = "snapshot",
        [CONTROL_MARK] = "mark",           [CONTROL_PAUSE] = "pause",
        [CONTROL_RESUME] = "resume",       [CONTROL_DETACH] = "detach",
        [CONTROL_SNAPSHOTS] = "snapshots",
    };
    for (uint32_t i = CONTROL_STATUS; i <= CONTROL_SNAPSHOTS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return 0;
}

/* Returns the number that is the whole text, or 0. */
static uint32_t control_number_of(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return 0;
    unsigned long number = strtoul(text, &end, 10);
    return *end == '\0' && number <= INT32_MAX ? (uint32_t)number : 0;
}

bool control_is_command(int argc, char **argv)
{
    uint32_t command = argc >= 3 ? control_command_of(argv[1]) : 0;
    if (command == CONTROL_SNAPSHOTS)
        return argc >= 4 && strncmp(argv[3], "--every", 7) == 0 && control_number_of(argv[2]) != 0;
    return command != 0 && argc == (command == CONTROL_MARK ? 4 : 3) &&
           control_number_of(argv[2]) != 0;
}

/* Sets the text of a request to the interval that the arguments behind the process id name. */
static bool control_set_interval(struct control_request *request, char **arguments)
{
    const char *every = arguments[0][7] == '=' ? arguments[0] + 8 : arguments[1];
    uint64_t interval = 0;
    if (!every || (arguments[0][7] != '=' && arguments[0][7] != '\0') ||
        (every == arguments[1] && arguments[2]) || (every != arguments[1] && arguments[1])) {
        message("'snapshots' needs a process id and --every SECONDS, or --every off");
        return false;
    }
    if (strcmp(every, "off") != 0 && strcmp(every, "0") != 0)
        interval = options_seconds(every);
    memcpy(request->text, &interval, sizeof interval);
    request->size = sizeof interval;
    return true;
}

/* Opens a file that is named like a channel: it may be anything, and must not block. The lease that
 * a collector holds now and then ends at once. */
static int control_open_channel(const char *path)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct stat status;
    int file = -1;
    for (int i = 0; i < LEASE_TRIES && file < 0; i++) {
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0 && errno != EWOULDBLOCK)
            break;
        if (file < 0)
            nanosleep(&moment, NULL);
    }
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(file);
        file = -1;
    }
    return file;
}

/* Whether the channel has a process. Recorders of others are not asked: one that hangs would keep
 * those waiting whom it does not concern. */
static bool control_channel_has(int file, const struct channel *channel, uint32_t process)
{
    uint32_t used = atomic_load(&channel->free_processes.used);
    for (uint32_t i = 0; i < used && i < CHANNEL_PROCESSES; i++) {
        struct process_slot slot;
        size_t size = offsetof(struct process_slot, seen_pid) + sizeof slot.seen_pid;
        if (pread(file, &slot, size, (off_t)channel_process_at(i)) != (ssize_t)size)
            break;
        uint32_t pid = slot.seen_pid != 0 ? slot.seen_pid : slot.pid;
        if (pid == process && atomic_load(&slot.state) == SLOT_READY)
            return true;
    }
    return false;
}

/* Reads the channel of a collector, if `path` is that, the collector is `pid`, and it records
 * `process` (0 for any). */
static bool control_read_channel(const char *path, uint32_t pid, uint32_t process,
                                 struct channel *channel)
{
    char target[64];
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size < 0)
        return false;
    target[size] = '\0';
    if (strcmp(target, CHANNEL_NAME " (deleted)") != 0)
        return false;
    int file = control_open_channel(path);
    if (file < 0)
        return false;
    size = pread(file, channel, sizeof *channel, 0);
    bool is_sought = size == sizeof *channel && channel->magic == CHANNEL_MAGIC &&
                     channel->version == CHANNEL_VERSION && channel->collector_pid == pid &&
                     channel->control_size > 0 &&
                     channel->control_size <= sizeof channel->control_name &&
                     (process == 0 || control_channel_has(file, channel, process));
    close(file); /* at once: as long as it is open, the collector waits for more processes */
    return is_sought;
}

/* Finds the channel of a process that may be a collector, and record `process`. */
static bool control_find_channel(uint32_t pid, uint32_t process, struct channel *channel)
{
    char path[300], name[16] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_recorder = fgets(name, sizeof name, file) && strcmp(name, "ttdrecord\n") == 0;
    fclose(file);
    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    DIR *files = is_recorder ? opendir(path) : NULL;
    if (!files)
        return false;
    bool is_found = false;
    const struct dirent *entry;
    while (!is_found && (entry = readdir(files))) {
        snprintf(path, sizeof path, "/proc/%u/fd/%.200s", pid, entry->d_name);
        is_found = control_read_channel(path, pid, process, channel);
    }
    closedir(files);
    return is_found;
}

/* Connects to the collector of a channel; -1 if nobody, or somebody else, is there. */
static int control_connect_to(const struct channel *channel)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, channel->control_name, channel->control_size);
    socklen_t size = (socklen_t)offsetof(struct sockaddr_un, sun_path) + channel->control_size;
    struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    struct ucred user;
    socklen_t user_size = sizeof user;
    int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connected < 0)
        return -1;
    if (setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        setsockopt(connected, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
        connect(connected, (struct sockaddr *)&name, size) != 0 ||
        getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &user, &user_size) != 0 ||
        (uint32_t)user.pid != channel->collector_pid) {
        close(connected);
        return -1;
    }
    return connected;
}

/* Waits until the collector has ended; it has then closed its traces. */
static void control_await_end(uint32_t collector)
{
    int process = (int)syscall(SYS_pidfd_open, (pid_t)collector, 0);
    struct pollfd event = {.fd = process, .events = POLLIN};
    if (process < 0)
        return;
    poll(&event, 1, ANSWER_SECONDS * 1000);
    close(process);
}

/* Whether a process is stopped by job control. */
static bool control_is_stopped(uint32_t pid)
{
    return threads_state_of(pid, pid) == 'T';
}

/* Says why a collector does not answer for a second: it stops with the program that it has started.
 */
static void control_explain_wait(int connected, const struct channel *channel)
{
    struct pollfd event = {.fd = connected, .events = POLLIN};
    uint32_t recorder = channel->collector_pid, program = channel->launched_pid;
    if (poll(&event, 1, EXPLAIN_MS) != 0 || !control_is_stopped(recorder))
        return;
    if (program != 0 && control_is_stopped(program))
        message("process %u is stopped, and its recorder with it: 'kill -CONT %u'", program,
                program);
    else
        message("the recorder is stopped: 'kill -CONT %u' lets it answer", recorder);
}

/* Sends a request to the collector of a channel. Sets `answer` unless the result is
 * CONTROL_UNKNOWN. */
static enum control_result control_exchange(const struct channel *channel,
                                            const struct control_request *request, bool explains,
                                            struct control_answer *answer)
{
    int connected = control_connect_to(channel);
    if (connected < 0)
        return CONTROL_UNKNOWN;
    ssize_t size = -1;
    if (send(connected, request, sizeof *request, MSG_NOSIGNAL) == sizeof *request) {
        if (explains)
            control_explain_wait(connected, channel);
        size = recv(connected, answer, sizeof *answer, 0);
    }
    bool is_late = size < 0 && errno == EAGAIN;
    close(connected);
    /* One that ends meanwhile closes the connection: it may be a recorder of other processes. */
    bool is_answer = size == sizeof *answer && answer->magic == CONTROL_MAGIC &&
                     answer->size <= CONTROL_TEXT_MAX && answer->result <= CONTROL_UNKNOWN;
    if (is_answer)
        return (enum control_result)answer->result;
    if (!is_late)
        return CONTROL_UNKNOWN;
    answer->size =
        (uint32_t)snprintf(answer->text, sizeof answer->text, "its recorder does not answer");
    return CONTROL_FAILED;
}

/* Asks the collector of a channel, and prints its answer. */
static enum control_result control_ask_channel(const struct channel *channel,
                                               const struct control_request *request)
{
    struct control_answer answer;
    enum control_result result = control_exchange(channel, request, true, &answer);
    if (result == CONTROL_DONE && request->command == CONTROL_DETACH)
        control_await_end(channel->collector_pid);
    if (result == CONTROL_DONE) {
        char text[4 * CONTROL_TEXT_MAX + 1];
        visible_escape(answer.text, answer.size, text, sizeof text);
        puts(text);
    } else if (result == CONTROL_FAILED) {
        message("process %u: %.*s", request->pid, (int)answer.size, answer.text);
    }
    return result;
}

enum control_result control_ask_collector(uint32_t collector, const struct control_request *request,
                                          struct control_answer *answer)
{
    struct channel channel;
    return control_find_channel(collector, 0, &channel)
               ? control_exchange(&channel, request, false, answer)
               : CONTROL_UNKNOWN;
}

int control_ask(char **argv)
{
    struct control_request request = {.magic = CONTROL_MAGIC,
                                      .command = control_command_of(argv[1]),
                                      .pid = control_number_of(argv[2])};
    if (request.command == CONTROL_MARK) {
        size_t size = strlen(argv[3]);
        if (size > sizeof request.text) {
            message("the mark is longer than %zu bytes", sizeof request.text);
            return EXIT_RECORDER;
        }
        request.size = (uint32_t)size;
        memcpy(request.text, argv[3], size);
    }
    if (request.command == CONTROL_SNAPSHOTS && !control_set_interval(&request, argv + 3))
        return EXIT_RECORDER;
    enum control_result result = CONTROL_UNKNOWN;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    while (processes && result == CONTROL_UNKNOWN && (entry = readdir(processes))) {
        struct channel channel;
        uint32_t pid = control_number_of(entry->d_name);
        if (pid != 0 && control_find_channel(pid, request.pid, &channel))
            result = control_ask_channel(&channel, &request);
    }
    if (processes)
        closedir(processes);
    if (result == CONTROL_UNKNOWN)
        message("process %u is not being recorded by this user", request.pid);
    return result == CONTROL_DONE && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_RECORDER;
}
