/* SPDX-License-Identifier: MIT */
/*
 * Whatever recorded programs write into the shared memory, and whenever: the collector ends, and
 * each trace is closed, intact, and has the events that were counted. An input is a script of
 * writes in rounds, between which the collector runs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../target.h"
#include "channel_script.h"
#include "close_channel.h"
#include "collect/collector.h"

enum { ROUNDS_MAX = 64 };

static char directory[PATH_MAX];
static char output[PATH_MAX + 16];
static pid_t children[CHANNEL_SCRIPT_CHILDREN];

/* State of the present run. */
static struct channel_script script;
static struct collector collector;
static volatile sig_atomic_t is_over;
static unsigned rounds;
static uint64_t events_closed;

/* ---- Replacements for collect/trace/closers.c; quiet.c has the others ---- */

/* Closes the trace at once, without names: a script may name any file as a module. */
void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end)
{
    (void)closers;
    if (trace->created) {
        target_require(trace->writer != NULL, trace->error.what ? trace->error.what : "a writer");
        enum ttd_status status = ttd_writer_close(trace->writer, end, &trace->error);
        target_require(status == TTD_OK, "a trace is closed");
        trace->writer = NULL;
        events_closed += trace->events;
    }
    trace_free(trace);
}

/* The collector calls this between two rounds. */
bool trace_closers_step(struct trace_closers *closers)
{
    (void)closers;
    channel_script_write_round(&script);
    collector.host.channel->attention++;
    is_over = is_over || script.at == script.end || ++rounds == ROUNDS_MAX;
    return true;
}

/* ---- A run ---- */

static void end_children(void)
{
    for (int i = 0; i < CHANNEL_SCRIPT_CHILDREN; i++)
        kill(children[i], SIGKILL);
    rmdir(directory);
}

static void prepare(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (unsigned i = 0; i < 2 && !*output; i++) {
        snprintf(directory, sizeof directory, "%s/fuzz_channel.XXXXXX", places[i]);
        if (mkdtemp(directory))
            snprintf(output, sizeof output, "%s/trace", directory);
    }
    target_require(*output, "a directory");
    for (int i = 0; i < CHANNEL_SCRIPT_CHILDREN; i++) {
        children[i] = fork();
        target_require(children[i] >= 0, "a process");
        if (children[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }
    atexit(end_children);
}

static bool wants_stop(void)
{
    return false;
}

static void stop(int number)
{
    (void)number;
}

static void collect(void)
{
    static volatile sig_atomic_t done;
    struct ttd_error error;
    collector = (struct collector){.launched = getpid(), .command = "program"};
    target_require(host_open(&collector.host, 0) == 0, "a channel");
    target_require(collector_open(&collector, output, &error), "a collector");
    collector.done = &done;
    collector.wants_stop = wants_stop;
    collector.stop = stop;
    rounds = 0;
    events_closed = 0;
    is_over = 0;
    channel_script_write_round(&script);
    collector_run(&collector, &is_over);
    target_require(collector.processes.count == 0, "all processes are ended");
    collector_close(&collector);
    close_channel(&collector.host);
}

static uint64_t check_file(const char *path)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    target_require(ttd_input_file(path, NULL, &input, NULL) == TTD_OK, "a file");
    enum ttd_status status = ttd_verify(&input, NULL, NULL, &verdict, NULL);
    target_require(status == TTD_OK && verdict.ok, "a trace is intact");
    return verdict.events;
}

/* Checks that all files are intact traces with the events counted, and removes them. */
static void check_files(void)
{
    uint64_t events = 0;
    DIR *files = opendir(directory);
    struct dirent *entry;
    target_require(files != NULL, "the directory");
    while ((entry = readdir(files))) {
        char path[PATH_MAX + 300];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        events += check_file(path);
        unlink(path);
    }
    closedir(files);
    target_require(events == events_closed, "the events that were counted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*output)
        prepare();
    script = (struct channel_script){
        .at = data, .end = data + size, .collector = &collector, .children = children};
    collect();
    check_files();
    return 0;
}
