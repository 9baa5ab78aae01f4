/* SPDX-License-Identifier: MIT */
/* Requests to the collector, from `ttdrecord status` and its like and from recorded processes; and
 * what it does by itself from time to time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/process/origin.h"
#include "collect/process/processes.h"
#include "collect/trace/live_sizes.h"
#include "messages.h"

#define ASK_NS UINT64_C(10000000000) /* who has not asked by then is disconnected */

void control_open(struct control *control, struct channel *channel)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof name.sun_family; /* the kernel chooses a name */
    control->count = 0;
    control->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->listener < 0)
        return;
    if (bind(control->listener, (struct sockaddr *)&name, size) != 0 ||
        getsockname(control->listener, (struct sockaddr *)&name, (size = sizeof name, &size)) !=
            0 ||
        size <= offsetof(struct sockaddr_un, sun_path) + 1 ||
        size - offsetof(struct sockaddr_un, sun_path) > sizeof channel->control_name ||
        listen(control->listener, CONTROL_CLIENTS) != 0) {
        control_close(control);
        return;
    }
    channel->control_size = size - (uint32_t)offsetof(struct sockaddr_un, sun_path);
    memcpy(channel->control_name, name.sun_path, channel->control_size);
}

/* Whether the user at the other end may ask. */
static bool collector_may_ask(int socket)
{
    struct ucred user;
    socklen_t size = sizeof user;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && size == sizeof user &&
           (user.uid == geteuid() || user.uid == 0);
}

static void collector_accept_clients(struct control *control, uint64_t now)
{
    while (control->count < CONTROL_CLIENTS) {
        int socket = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0)
            return;
        if (!collector_may_ask(socket)) {
            close(socket);
            continue;
        }
        control->clients[control->count++] =
            (struct control_client){.socket = socket, .deadline = now + ASK_NS};
    }
}

/* Returns whether the client is done with: it has its answer, or gets none. */
static bool collector_serve(const struct control_client *client, uint64_t now,
                            control_function *handle, void *context)
{
    struct control_request request;
    ssize_t size = recv(client->socket, &request, sizeof request, MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return now > client->deadline;
    if (size != sizeof request || request.magic != CONTROL_MAGIC)
        return true;
    struct control_answer answer = {.magic = CONTROL_MAGIC, .result = CONTROL_FAILED};
    handle(context, &request, &answer);
    answer.size = (uint32_t)strnlen(answer.text, sizeof answer.text);
    send(client->socket, &answer, sizeof answer, MSG_NOSIGNAL);
    return true;
}

void control_step(struct control *control, uint64_t now, control_function *handle, void *context)
{
    if (control->listener < 0)
        return;
    collector_accept_clients(control, now);
    for (unsigned i = control->count; i-- > 0;)
        if (collector_serve(&control->clients[i], now, handle, context)) {
            close(control->clients[i].socket);
            control->clients[i] = control->clients[--control->count];
        }
}

void control_close(struct control *control)
{
    for (unsigned i = 0; i < control->count; i++)
        close(control->clients[i].socket);
    control->count = 0;
    if (control->listener >= 0)
        close(control->listener);
    control->listener = -1;
}

/* Much longer than a process waits. */
#define LOAN_NS UINT64_C(60000000000)

/* Takes a copy of a descriptor out of a process. */
static int loan_socket(uint32_t pid, int32_t descriptor)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int copy = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, descriptor, 0) : -1;
    if (process >= 0)
        close(process);
    return copy;
}

static bool loan_send(int socket, int descriptor)
{
    char byte = 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *(int *)(void *)CMSG_DATA(&control.header) = descriptor;
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* Gives a process the channel, opened anew: see host_is_held(). */
static bool loan_give(const struct host *host, const struct loan *loan)
{
    uint32_t pid = namespace_process(loan->pid, loan->address, loan->value);
    int socket = pid != 0 ? loan_socket(pid, loan->socket) : -1;
    int channel = socket >= 0 ? open(host->path, O_RDWR | O_CLOEXEC) : -1;
    bool is_sent = channel >= 0 && loan_send(socket, channel);
    if (channel >= 0)
        close(channel);
    if (socket >= 0)
        close(socket);
    return is_sent;
}

void loans_step(struct host *host, struct loan_seen *seen, uint64_t now)
{
    for (int i = 0; i < CHANNEL_LOANS; i++) {
        struct loan *loan = &host->channel->loans[i];
        uint32_t state = atomic_load_explicit(&loan->state, memory_order_acquire);
        if (state == LOAN_FREE || state != seen[i].state)
            seen[i] = (struct loan_seen){state, now};
        uint32_t next = state;
        if (state == LOAN_ASKED)
            next = loan_give(host, loan) ? LOAN_GIVEN : LOAN_REFUSED;
        else if (state != LOAN_FREE && now - seen[i].since > LOAN_NS)
            next = LOAN_FREE;
        if (next != state && atomic_compare_exchange_strong(&loan->state, &state, next))
            host_wake(&loan->state);
    }
}

/* Answers to requests, and upkeep. */

static void upkeep_answer_status(const struct process *process, struct control_answer *answer)
{
    const struct trace *trace = process->trace;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text,
             "'%s': %" PRIu64 " events (%" PRIu64 " allocations, %" PRIu64 " frees), %" PRIu64
             " lost, %zu thread%s%s",
             trace->path, trace->events, trace->acquisitions, trace->releases, trace->lost,
             process->thread_count, process->thread_count == 1 ? "" : "s",
             trace_is_stopped(trace) ? ", full"
             : process->is_paused    ? ", paused"
                                     : "");
}

/* Refuses requests to a process whose trace is complete. */
static bool upkeep_requests_refuse_stopped(const struct process *process,
                                           struct control_answer *answer)
{
    if (trace_is_stopped(process->trace))
        snprintf(answer->text, sizeof answer->text,
                 "its recording is over: its trace has the size that was asked for");
    return trace_is_stopped(process->trace);
}

static void upkeep_answer_snapshot(struct collector *collector, struct process *process,
                                   struct control_answer *answer)
{
    struct ttd_snapshot snapshot = {.reason = TTD_SNAPSHOT_REQUESTED,
                                    .contents = collector->snapshots.contents};
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (collector->is_letting_go) {
        snprintf(answer->text, sizeof answer->text, "its recording is just ending");
        return;
    }
    enum take_result result = snapshots_take(collector, process, &snapshot);
    if (result != TAKE_DONE) {
        snprintf(answer->text, sizeof answer->text, "a snapshot could not be taken%s",
                 result == TAKE_DENIED ? ": the system does not permit it" : "");
        return;
    }
    trace_flush(process->trace); /* it may be read at once */
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': snapshot %" PRIu32, process->trace->path,
             process->trace->snapshots);
}

static void upkeep_answer_snapshots(struct process *process, const struct control_request *request,
                                    struct control_answer *answer)
{
    uint64_t every;
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size != sizeof every) {
        snprintf(answer->text, sizeof answer->text, "no interval was given");
        return;
    }
    memcpy(&every, request->text, sizeof every);
    process->every = every;
    process->next_snapshot = 0;
    trace_flush(process->trace); /* those that were taken may be read at once */
    answer->result = CONTROL_DONE;
    if (every == 0)
        snprintf(answer->text, sizeof answer->text, "'%s': no more snapshots at intervals",
                 process->trace->path);
    else
        snprintf(answer->text, sizeof answer->text, "'%s': a snapshot every %g s",
                 process->trace->path, (double)every / 1e9);
}

/* Changes the stacks of the whole recording, and states it in the traces of all processes. */
static void upkeep_answer_stacks(struct collector *collector, const struct process *process,
                                 const struct control_request *request,
                                 struct control_answer *answer)
{
    struct channel *channel = collector->host.channel;
    uint64_t wanted;
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size != sizeof wanted) {
        snprintf(answer->text, sizeof answer->text, "no stacks were named");
        return;
    }
    memcpy(&wanted, request->text, sizeof wanted);
    struct recording_options *recording = &collector->recording;
    uint32_t stackless = (uint32_t)wanted & CALLS_ALL, depth = (uint32_t)(wanted >> 32);
    bool is_changed = stackless != recording->stackless || depth != recording->stack_depth;
    recording->stackless = stackless;
    recording->stack_depth = depth;
    recording->flags |= CHANNEL_FEW_STACKS;
    atomic_store(&channel->stackless, stackless);
    atomic_store(&channel->stack_depth, depth);
    __atomic_store_n(&channel->flags, recording->flags, __ATOMIC_RELEASE);
    for (size_t i = 0; i < collector->processes.count && is_changed; i++)
        origin_stacks(collector->processes.items[i]->trace, stackless, depth);
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': other stacks are recorded from now on",
             process->trace->path);
}

static void upkeep_answer_mark(struct collector *collector, struct process *process,
                               const struct control_request *request, struct control_answer *answer)
{
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size > sizeof request->text ||
        !user_events_mark(process, &collector->host, request->text, request->size)) {
        snprintf(answer->text, sizeof answer->text, "the mark could not be written");
        return;
    }
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': marked", process->trace->path);
}

static void upkeep_answer_pause(struct collector *collector, struct process *process,
                                bool is_paused, struct control_answer *answer)
{
    const char *state = is_paused ? "paused" : "resumed";
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (process->is_paused == is_paused) {
        snprintf(answer->text, sizeof answer->text, "its recording is %s",
                 is_paused ? "paused already" : "not paused");
        return;
    }
    if (!user_events_pause(process, &collector->host, is_paused)) {
        snprintf(answer->text, sizeof answer->text, "its recording could not be %s", state);
        return;
    }
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': %s", process->trace->path, state);
}

static void upkeep_answer_detach(struct collector *collector, const struct process *process,
                                 struct control_answer *answer)
{
    if (!collector->is_attached || process->pid != (uint32_t)collector->launched) {
        snprintf(answer->text, sizeof answer->text,
                 "it was started with the recorder, and cannot be without it");
        return;
    }
    collector->is_to_detach = true;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': detached", process->trace->path);
}

/* Process id, events, acquisitions, releases, live blocks, lost calls, age in nanoseconds, whether
 * it is paused, live bytes, whether these are a lower bound (1) or unknown (2), why, a tab, and the
 * path of the trace. */
static void upkeep_answer_counts(const struct collector *collector, uint32_t index,
                                 struct control_answer *answer)
{
    if (index >= collector->processes.count) {
        answer->result = CONTROL_UNKNOWN;
        return;
    }
    const struct process *process = collector->processes.items[index];
    const struct trace *trace = process->trace;
    uint64_t ended = trace->releases + trace->superseded;
    uint64_t now = host_now(&collector->host);
    enum live_doubt doubt = trace->sizes ? trace->sizes->doubt : LIVE_UNKNOWN;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text,
             "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
             " %d %" PRIu64 " %d %s\t%s",
             process->pid, trace->events, trace->acquisitions, trace->releases,
             trace->acquisitions > ended ? trace->acquisitions - ended : 0, trace->lost,
             now > process->start ? now - process->start : 0, process->is_paused,
             trace->sizes ? trace->sizes->bytes : 0,
             doubt == LIVE_EXACT ? 0 : 1 + (doubt >= LIVE_UNKNOWN), live_sizes_reason(doubt),
             trace->path);
}

void requests_answer(void *context, const struct control_request *request,
                     struct control_answer *answer)
{
    struct collector *collector = context;
    if (request->command == CONTROL_COUNTS) {
        upkeep_answer_counts(collector, request->pid, answer);
        return;
    }
    struct process *process = processes_by_pid(&collector->processes, request->pid);
    if (!process) {
        answer->result = CONTROL_UNKNOWN;
        return;
    }
    switch ((enum control_command)request->command) {
    case CONTROL_STATUS:
        upkeep_answer_status(process, answer);
        break;
    case CONTROL_SNAPSHOT:
        upkeep_answer_snapshot(collector, process, answer);
        break;
    case CONTROL_SNAPSHOTS:
        upkeep_answer_snapshots(process, request, answer);
        break;
    case CONTROL_STACKS:
        upkeep_answer_stacks(collector, process, request, answer);
        break;
    case CONTROL_MARK:
        upkeep_answer_mark(collector, process, request, answer);
        break;
    case CONTROL_PAUSE:
    case CONTROL_RESUME:
        upkeep_answer_pause(collector, process, request->command == CONTROL_PAUSE, answer);
        break;
    case CONTROL_DETACH:
        upkeep_answer_detach(collector, process, answer);
        break;
    default:
        snprintf(answer->text, sizeof answer->text, "the recorder does not know this command");
        break;
    }
}

#define FLUSH_NS         UINT64_C(1000000000)
#define REAP_NS          UINT64_C(500000000)
#define CONTROL_NS       UINT64_C(20000000)
#define PREPARE_NS       UINT64_C(50000000)
#define PREPARE_AGAIN_NS UINT64_C(1000000000)
/* Names are written into one trace at a time: nothing is collected during those milliseconds. */
#define NAMES_NS      UINT64_C(10000000)
#define NAMES_EACH_NS UINT64_C(250000000)

/* Starts a lookup of the names that a process lacks. A process that has just begun waits: most end
 * soon. */
static void upkeep_prepare_names(struct collector *collector, struct process *process, uint64_t now)
{
    bool is_old = now > process->start && now - process->start >= PREPARE_NS;
    if (!process->trace->writer || !is_old)
        return;
    trace_closers_prepare(&collector->closers, process->trace);
    process->next_prepare = now + PREPARE_AGAIN_NS;
}

void upkeep_at_end(struct collector *collector, struct process *process)
{
    if (process->trace->modules.frame_count > process->trace->frames_prepared)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

void upkeep_after_snapshot(struct collector *collector, struct process *process)
{
    if (process->trace->variables.count > 0)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

/* Writes cached names into the next trace that is due. */
static void upkeep_write_names(struct collector *collector, uint64_t now)
{
    size_t count = collector->processes.count;
    for (size_t i = 0; i < count; i++) {
        size_t index = (collector->names_turn + i) % count;
        struct process *process = collector->processes.items[index];
        if (process->next_names > now)
            continue;
        process->next_names = now + NAMES_EACH_NS;
        trace_write_known_names(process->trace, collector->closers.names);
        collector->names_turn = index + 1;
        return;
    }
}

/* Says that calls are lost as soon as they are, and again when their number has doubled. */
static void upkeep_tell_losses(struct trace *trace)
{
    if (trace->lost == 0 || trace->lost < 2 * trace->lost_told)
        return;
    trace->lost_told = trace->lost;
    message("warning: '%s': %" PRIu64 " call%s lost so far", trace->path, trace->lost,
            trace->lost == 1 ? "" : "s");
}

void upkeep(struct collector *collector, uint64_t now)
{
    if (now >= collector->next_control) {
        control_step(&collector->control, now, requests_answer, collector);
        collector->next_control = now + CONTROL_NS;
    }
    if (now >= collector->next_prepare) {
        for (size_t i = 0; i < collector->processes.count; i++) {
            struct process *process = collector->processes.items[i];
            size_t count = process->trace->modules.frame_count;
            size_t prepared = process->trace->frames_prepared;
            /* At once when the number of its addresses has doubled since the last time, otherwise
             * once in a while if it has grown. */
            if (count > 2 * prepared || (count > prepared && now >= process->next_prepare))
                upkeep_prepare_names(collector, process, now);
        }
        collector->next_prepare = now + PREPARE_NS;
    }
    if (now >= collector->next_names) {
        upkeep_write_names(collector, now);
        collector->next_names = now + NAMES_NS;
    }
    if (now >= collector->next_flush) {
        for (size_t i = 0; i < collector->processes.count; i++) {
            user_events_memory(collector->processes.items[i], &collector->host);
            trace_flush(collector->processes.items[i]->trace);
            upkeep_tell_losses(collector->processes.items[i]->trace);
            host_tick(&collector->host); /* there may be thousands */
        }
        collector->next_flush = now + FLUSH_NS;
    }
    if (now >= collector->next_reap) {
        for (size_t i = 0; i < collector->processes.count; i++)
            process_reap_threads(collector->processes.items[i], &collector->host);
        collector->next_reap = now + REAP_NS;
    }
}
