/* SPDX-License-Identifier: MIT */
#include "armed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arm/arm.h"
#include "collect/collector.h"
#include "launch.h"
#include "messages.h"
#include "signals.h"
#include "recording_summary.h"

enum { COMMAND_MAX = 1024 };

static volatile sig_atomic_t is_left;

/* Called in each round of the collector. */
static void armed_step(struct collector *collector)
{
    if (is_left || collector->launched_has_ended ||
        (!collector->is_to_detach && signals_seen.detach == 0))
        return;
    snapshots_take_last(collector);
    is_left = true;
}

/* Reads the arguments of a process, with spaces between them, for the trace's metadata. */
static void armed_read_command(uint32_t pid, char command[COMMAND_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, command, COMMAND_MAX - 1) : -1;
    if (file >= 0)
        close(file);
    size = size > 0 ? size : 0;
    while (size > 0 && command[size - 1] == '\0')
        size--;
    command[size] = '\0';
    for (ssize_t i = 0; i < size; i++)
        if (command[i] == '\0')
            command[i] = ' ';
}

/* Whether the program can be recorded: like launch_find(). */
static int check_executable(uint32_t pid)
{
    char link[64], path[LAUNCH_PATH_MAX];
    snprintf(link, sizeof link, "/proc/%u/exe", pid);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return launch_check(link, path);
}

/* Opens the channel and the trace, and arms the process, which is let go in any case. */
static int armed_open(struct collector *collector, struct arm_door *door,
                      const struct options *options, const char *preload, bool is_suspended)
{
    struct ttd_error error;
    uint32_t pid = (uint32_t)collector->launched;
    int reason = limits_open_channel(&collector->host, -1, options->recording.flags);
    if (reason != 0) {
        message("cannot create shared memory: %s", strerror(reason));
        arm_release(pid, is_suspended);
        return EXIT_RECORDER;
    }
    collector->host.channel->launched_pid = pid;
    const char *refusal =
        arm_door_open(door, pid, preload, collector->host.memfd, collector->host.path);
    if (!refusal && !collector_open(collector, options->output, &error)) {
        message_error(options->output, &error);
        arm_release(pid, is_suspended);
        collector_close(collector);
        return EXIT_OUTPUT;
    }
    if (!refusal)
        refusal = arm_environment(pid, preload, door->path);
    arm_release(pid, is_suspended);
    if (!refusal)
        return EXIT_SUCCESS;
    message("cannot record process %u: %s", pid, refusal);
    if (collector->first)
        collector_close(collector);
    return EXIT_RECORDER;
}

int armed_record(const struct options *options, uint32_t pid, bool is_suspended)
{
    static struct collector collector; /* larger than the stack may be */
    char preload[LAUNCH_PATH_MAX], command[COMMAND_MAX];
    struct arm_door door = {0};
    int status = check_executable(pid);
    if (status == 0 && !launch_find_preload(preload))
        status = EXIT_RECORDER;
    if (status != 0) {
        arm_release(pid, is_suspended);
        return status;
    }
    armed_read_command(pid, command);
    collector.command = command;
    collector.snapshots = options->snapshots;
    collector.recording = options->recording;
    collector.is_quiet = options->is_quiet;
    collector.is_attached = true;
    collector.launched = (pid_t)pid;
    limits_raise(RLIMIT_NOFILE);
    status = armed_open(&collector, &door, options, preload, is_suspended);
    if (status != EXIT_SUCCESS) {
        arm_door_close(&door);
        return status;
    }
    limits_raise(RLIMIT_FSIZE);
    limits_keep_memory();
    options_report_ready(options);
    if (!options->is_quiet)
        message("process %u is recorded from its first instruction on; %s%s", pid,
                is_suspended ? "'ttdrecord resume' lets it go on; " : "",
                "^C or 'ttdrecord detach' ends that");
    collector.done = &signals_seen.done;
    collector.wants_stop = signals_want_stop;
    collector.stop = signals_stop;
    collector.step = armed_step;
    collector_run(&collector, &is_left);
    summary_warn(&collector);
    if (!options->is_quiet && collector.has_attached_first)
        summary_print(&collector, options->output);
    bool is_written = collector.closers.unwritten == 0;
    collector_close(&collector);
    arm_door_close(&door);
    return is_written ? EXIT_SUCCESS : EXIT_OUTPUT;
}
