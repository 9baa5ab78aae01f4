/* SPDX-License-Identifier: MIT */
/* The parent process: starts children, limits their time, and decides how to go on after a
 * failure. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "symbolize/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/process/worker.h"
#include "symbolize/wire/wire.h"

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

static int symbolize_start(struct worker_job *job, struct child *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    /* A larger pipe saves context switches; failure is harmless. */
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    job->fd = ends[1];
    pid_t pid = worker_start(job);
    int error = pid < 0 ? errno : 0;
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        return error;
    }
    *child = (struct child){pid, ends[0]};
    return 0;
}

/* Decodes messages until all modules are done (true), or the child ends, sends a malformed message
 * or exceeds a limit. */
static bool symbolize_listen_to(struct wire_decoder *decoder, int fd, unsigned module_time,
                                int64_t end)
{
    int64_t module_end = symbolize_milliseconds() + module_time;
    size_t module = decoder->module;
    while (!decoder->is_finished && !stopped) {
        int64_t remaining = (module_end < end ? module_end : end) - symbolize_milliseconds();
        if (remaining <= 0)
            return false;
        struct pollfd event = {.fd = fd, .events = POLLIN};
        if (poll(&event, 1, remaining < 1000 ? (int)remaining : 1000) <= 0)
            continue;
        size_t room;
        uint8_t *bytes = wire_decoder_room(decoder, &room);
        ssize_t size = read(fd, bytes, room);
        if (size < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (size <= 0 || !wire_decoder_take(decoder, (size_t)size))
            return false;
        if (decoder->module != module) {
            module = decoder->module;
            module_end = symbolize_milliseconds() + module_time;
        }
    }
    return decoder->is_finished;
}

/* Decides how the next child treats the module that this one failed on: reads its symbol table only
 * or, if this one did that, skips the module. */
static void symbolize_degrade(struct wire_decoder *decoder, struct symbolize_summary *summary)
{
    if (decoder->is_reduced && decoder->reduced_module == decoder->module) {
        summary->modules_failed++;
        wire_decoder_skip(decoder);
        return;
    }
    decoder->is_reduced = true;
    decoder->reduced_module = decoder->module;
}

static bool symbolize_only_empty_left(const struct wire_decoder *decoder)
{
    for (size_t i = decoder->module; i < decoder->count; i++) {
        if (decoder->modules[i].offset_count > 0)
            return false;
    }
    return true;
}

/* Asks the helper. If it fails, children are asked for the rest. */
static void symbolize_ask_helper(struct wire_decoder *decoder,
                                 const struct symbolize_options *options)
{
    struct helper *helper = options->helper;
    int64_t now = symbolize_milliseconds();
    if (!helper_ask(helper, decoder->modules, decoder->count, now + options->module_time))
        return;
    if (symbolize_listen_to(decoder, helper->fd, options->module_time, now + options->total_time))
        helper_done(helper);
    else
        helper_give_up(helper);
}

static int symbolize_run(struct wire_decoder *decoder, const struct symbolize_options *options,
                         struct symbolize_summary *summary)
{
    if (options->helper && !symbolize_only_empty_left(decoder) && !stopped)
        symbolize_ask_helper(decoder, options);
    /* The whole time limit is for the children: the helper's time does not count. */
    int64_t end = symbolize_milliseconds() + options->total_time;
    while (!decoder->is_finished && !symbolize_only_empty_left(decoder)) {
        int64_t remaining = end - symbolize_milliseconds();
        if (stopped)
            return EINTR;
        if (remaining <= 0)
            return 0;
        struct worker_job job = {
            .modules = decoder->modules,
            .count = decoder->count,
            .first = decoder->module,
            .is_reduced = decoder->is_reduced && decoder->reduced_module == decoder->module,
            .answered = decoder->answered,
            .memory = options->memory,
            .seconds = (unsigned)(remaining / 1000 + 2),
        };
        struct child child = {-1, -1};
        int error = symbolize_start(&job, &child);
        if (error != 0)
            return error;
        wire_decoder_restart(decoder);
        bool is_done = symbolize_listen_to(decoder, child.fd, options->module_time, end);
        close(child.fd);
        kill(child.pid, SIGKILL);
        worker_wait(child.pid);
        if (!is_done && !stopped && symbolize_milliseconds() < end)
            symbolize_degrade(decoder, summary);
    }
    return 0;
}

static void symbolize_summarize(const struct wire_decoder *decoder,
                                struct symbolize_summary *summary)
{
    size_t asked_modules = 0;
    for (size_t i = 0; i < decoder->count; i++) {
        asked_modules += decoder->modules[i].offset_count > 0;
        summary->addresses += decoder->modules[i].offset_count;
    }
    summary->addresses_named = decoder->named;
    summary->modules_read = decoder->results[WIRE_READ];
    summary->modules_reduced = decoder->reduced_count;
    summary->modules_absent = decoder->results[WIRE_ABSENT];
    summary->modules_failed += decoder->results[WIRE_FAILED];
    summary->modules_skipped = asked_modules - summary->modules_read - summary->modules_reduced -
                               summary->modules_absent - summary->modules_failed;
}

static bool symbolize_is_valid(const struct symbolize_module *modules, size_t count)
{
    for (size_t i = 0; i < count && i < UINT32_MAX; i++) {
        if (modules[i].offset_count > UINT32_MAX)
            return false;
    }
    return count <= UINT32_MAX;
}

int symbolize_with(const struct symbolize_options *options, const struct symbolize_module *modules,
                   size_t count, symbolize_function *function, void *context,
                   struct symbolize_summary *summary)
{
    struct symbolize_summary unused;
    summary = summary ? summary : &unused;
    *summary = (struct symbolize_summary){0};
    if (!symbolize_is_valid(modules, count))
        return EINVAL;
    struct symbolize_options request_options = options ? *options : (struct symbolize_options){0};
    request_options.module_time =
        request_options.module_time > 0 ? request_options.module_time : MODULE_TIME;
    request_options.total_time =
        request_options.total_time > 0 ? request_options.total_time : TOTAL_TIME;
    request_options.memory = request_options.memory > 0 ? request_options.memory : SYMBOLIZE_MEMORY;
    struct wire_decoder decoder;
    int error = wire_decoder_init(&decoder, modules, count, function, context);
    decoder.module_results = request_options.results;
    decoder.begin = request_options.begin;
    if (error == 0)
        error = symbolize_run(&decoder, &request_options, summary);
    symbolize_summarize(&decoder, summary);
    wire_decoder_free(&decoder);
    return error;
}

int symbolize(const struct symbolize_module *modules, size_t count, symbolize_function *function,
              void *context, struct symbolize_summary *summary)
{
    return symbolize_with(NULL, modules, count, function, context, summary);
}
