/* SPDX-License-Identifier: MIT */
/* The parent: starts children, bounds their time, and decides what is next when one fails. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "helper.h"
#include "inbox.h"
#include "worker.h"

enum { MODULE_TIME = 60 * 1000, TOTAL_TIME = 120 * 1000, PIPE_SIZE = 1024 * 1024 };

static volatile sig_atomic_t stopped;

void symbolize_stop(void)
{
    stopped = 1;
}

bool symbolize_is_stopped(void)
{
    return stopped;
}

struct child {
    pid_t pid;
    int fd;
};

static int start(struct work *work, struct child *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    /* A larger pipe saves switches; without it all works as well. */
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    work->fd = ends[1];
    pid_t pid = worker_start(work);
    int error = pid < 0 ? errno : 0;
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        return error;
    }
    *child = (struct child){pid, ends[0]};
    return 0;
}

static void stop(struct child child)
{
    close(child.fd);
    kill(child.pid, SIGKILL);
    worker_wait(child.pid);
}

/* Until all is told (true), or the child ends, lies or takes too long. */
static bool listen_to(struct inbox *box, int fd, unsigned module_time, int64_t end)
{
    int64_t module_end = milliseconds() + module_time;
    size_t module = box->module;
    while (!box->finished && !stopped) {
        int64_t left = (module_end < end ? module_end : end) - milliseconds();
        if (left <= 0)
            return false;
        struct pollfd event = {.fd = fd, .events = POLLIN};
        if (poll(&event, 1, left < 1000 ? (int)left : 1000) <= 0)
            continue;
        size_t room;
        uint8_t *bytes = inbox_room(box, &room);
        ssize_t size = read(fd, bytes, room);
        if (size < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (size <= 0 || !inbox_take(box, (size_t)size))
            return false;
        if (box->module != module) {
            module = box->module;
            module_end = milliseconds() + module_time;
        }
    }
    return box->finished;
}

/* After a child has failed on box->module: what the next one does with it. */
static void degrade(struct inbox *box, struct symbolize_summary *summary)
{
    if (box->reduced && box->reduced_module == box->module) {
        summary->modules_failed++;
        inbox_skip(box);
        return;
    }
    box->reduced = true;
    box->reduced_module = box->module;
}

static bool only_empty_left(const struct inbox *box)
{
    for (size_t i = box->module; i < box->count; i++) {
        if (box->modules[i].offset_count > 0)
            return false;
    }
    return true;
}

/* What it has not told when it fails is asked of others. */
static void ask_helper(struct inbox *box, struct helper *helper,
                       const struct symbolize_limits *limits)
{
    int64_t now = milliseconds();
    if (!helper_ask(helper, box->modules, box->count, now + limits->module_time))
        return;
    if (listen_to(box, helper->fd, limits->module_time, now + limits->total_time))
        helper_done(helper);
    else
        helper_give_up(helper);
}

static int run(struct inbox *box, struct helper *helper, const struct symbolize_limits *limits,
               struct symbolize_summary *summary)
{
    if (helper != NULL && !only_empty_left(box) && !stopped)
        ask_helper(box, helper, limits);
    /* All of it, whatever the helper took. */
    int64_t end = milliseconds() + limits->total_time;
    while (!box->finished && !only_empty_left(box)) {
        int64_t left = end - milliseconds();
        if (stopped)
            return EINTR;
        if (left <= 0)
            return 0;
        struct work work = {
            .modules = box->modules,
            .count = box->count,
            .first = box->module,
            .reduced = box->reduced && box->reduced_module == box->module,
            .answered = box->answered,
            .memory = limits->memory,
            .seconds = (unsigned)(left / 1000 + 2),
        };
        struct child child = {-1, -1};
        int error = start(&work, &child);
        if (error != 0)
            return error;
        inbox_restart(box);
        bool told_all = listen_to(box, child.fd, limits->module_time, end);
        stop(child);
        if (!told_all && !stopped && milliseconds() < end)
            degrade(box, summary);
    }
    return 0;
}

static void summarize(const struct inbox *box, struct symbolize_summary *summary)
{
    size_t used = 0;
    for (size_t i = 0; i < box->count; i++) {
        used += box->modules[i].offset_count > 0;
        summary->addresses += box->modules[i].offset_count;
    }
    summary->addresses_named = box->named;
    summary->modules_read = box->results[WIRE_READ];
    summary->modules_reduced = box->reduced_count;
    summary->modules_absent = box->results[WIRE_ABSENT];
    summary->modules_failed += box->results[WIRE_FAILED];
    summary->modules_skipped = used - summary->modules_read - summary->modules_reduced -
                               summary->modules_absent - summary->modules_failed;
}

static bool is_valid(const struct symbolize_module *modules, size_t count)
{
    for (size_t i = 0; i < count && i < UINT32_MAX; i++) {
        if (modules[i].offset_count > UINT32_MAX)
            return false;
    }
    return count <= UINT32_MAX;
}

int symbolize_with(struct helper *helper, const struct symbolize_limits *limits,
                   const struct symbolize_module *modules, size_t count,
                   symbolize_function *function, void *context, struct symbolize_summary *summary)
{
    struct symbolize_summary unused;
    summary = summary != NULL ? summary : &unused;
    *summary = (struct symbolize_summary){0};
    if (!is_valid(modules, count))
        return EINVAL;
    struct symbolize_limits used = limits != NULL ? *limits : (struct symbolize_limits){0};
    used.module_time = used.module_time > 0 ? used.module_time : MODULE_TIME;
    used.total_time = used.total_time > 0 ? used.total_time : TOTAL_TIME;
    used.memory = used.memory > 0 ? used.memory : SYMBOLIZE_MEMORY;
    struct inbox box;
    int error = inbox_init(&box, modules, count, function, context);
    if (error == 0)
        error = run(&box, helper, &used, summary);
    summarize(&box, summary);
    inbox_free(&box);
    return error;
}

int symbolize(const struct symbolize_module *modules, size_t count, symbolize_function *function,
              void *context, struct symbolize_summary *summary)
{
    return symbolize_with(NULL, NULL, modules, count, function, context, summary);
}
