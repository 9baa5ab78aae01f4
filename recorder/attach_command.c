/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "arm/arm.h"
#include "attach/attach.h"
#include "collect/collector.h"
#include "collect/process/origin.h"
#include "launch.h"
#include "messages.h"
#include "options.h"

/* How long threads are waited for that are in the hooks, and how often that is looked at. */
#define LEAVE_NS UINT64_C(5000000000)
enum { GONE_LOOK_NS = 50 * 1000 * 1000, LEAVE_LOOK_NS = 5 * 1000 * 1000 };

static struct attachment attachment;
static char library[LAUNCH_PATH_MAX];
static unsigned children_left; /* with the library in them */
static volatile sig_atomic_t is_detached;
static const struct options *attach_options; /* NULL once it is said that the process is recorded */

bool attach_is_command(int argc, char **argv)
{
    return argc >= 2 && strcmp(argv[1], "attach") == 0;
}

static uint64_t attach_command_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ends the merge of a process with the calls that took effect before its hooks were taken away. */
static void attach_end_merge(const struct collector *collector, uint32_t pid, uint64_t last)
{
    struct process *process = processes_by_pid(&collector->processes, pid);
    if (process && last != 0)
        process->last_sequence = last;
}

/* Removes the library from the process, as far as possible by now. Returns false as long as it is
 * to be called again. */
static bool attach_command_detach_step(struct collector *collector, uint64_t *since)
{
    if (*since == 0)
        *since = attach_command_now();
    attach_unhook(&attachment);
    attach_end_merge(collector, attachment.pid, attachment.last_sequence);
    if (attach_remove(&attachment))
        return true;
    attachment.is_left = attach_command_now() - *since > LEAVE_NS;
    return attachment.is_left;
}

/* Removes the library from children that have forked. */
static void attach_command_clean_children(const struct collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++) {
        uint32_t pid = collector->processes.items[i]->pid;
        uint64_t last;
        if (pid == attachment.pid || !origin_is_running(pid))
            continue;
        children_left +=
            !attach_clean_child(pid, library, attachment.sequence, &last) && origin_is_running(pid);
        attach_end_merge(collector, pid, last);
    }
}

/* Has programs that the process executes recorded by the library that they can load. */
static void attach_name_library(const struct host *host)
{
    char path[LAUNCH_PATH_MAX];
    if (!launch_find_preload(path) || strlen(path) + sizeof "LD_PRELOAD=" > ATTACHED_PRELOAD)
        return;
    snprintf(attachment.preload, sizeof attachment.preload, "LD_PRELOAD=%.4096s", path);
    snprintf(attachment.place, sizeof attachment.place, CHANNEL_ENV "=%s", host->path);
}

/* Whether the program that the process has executed knows the channel's place. */
static bool attach_is_followed(void)
{
    return attachment.place[0] != '\0' && origin_has_variable(attachment.pid, attachment.place);
}

/* Says that the process is recorded, once others who ask for it find it: in another PID namespace
 * that takes the collector a moment. */
static void attach_say(const struct collector *collector)
{
    const struct options *options = attach_options;
    if (!options || !collector->has_attached_first)
        return;
    attach_options = NULL;
    options_report_ready(options);
    if (!options->is_quiet)
        message("attached to process %u, which was stopped for %.1f ms; ^C or 'ttdrecord detach "
                "%u' ends it",
                attachment.pid, (double)attachment.stop_time / 1e6, attachment.pid);
}

/* Called in each round of the collector. */
static void attach_step(struct collector *collector)
{
    static uint64_t since, next;
    attach_say(collector);
    static bool is_followed; /* the process executes another program; that is recorded */
    bool is_wanted = collector->is_to_detach || signals_seen.detach != 0;
    uint64_t now = attach_command_now();
    if (collector->launched_has_ended || now < next)
        return;
    next = now + (is_wanted ? LEAVE_LOOK_NS : GONE_LOOK_NS);
    bool is_gone = is_followed || attach_has_executed(&attachment);
    is_followed = is_followed || (is_gone && attach_is_followed());
    if (is_followed && !is_wanted)
        return;
    if (is_wanted && (is_followed || !is_gone) && since == 0)
        snapshots_take_last(collector);
    if (!is_gone && !(is_wanted && attach_command_detach_step(collector, &since)))
        return;
    attach_command_clean_children(collector);
    is_detached = true;
}

/* Writes the command line of the process with spaces, for the trace's metadata. */
static void join_command(char text[ATTACHED_COMMAND + 1])
{
    memcpy(text, attachment.command, attachment.command_size);
    launch_join_arguments(text, attachment.command_size);
}

/* The process may wait for chunks meanwhile. */
static void attach_tick(void *collector)
{
    host_tick(&((struct collector *)collector)->host);
}

/* Opens the channel and the trace, and begins to record. Returns an exit status. */
static int attach_open(struct collector *collector, const struct options *options)
{
    struct ttd_error error;
    int reason =
        limits_open_channel(&collector->host, attachment.channel, options->recording.flags);
    if (reason != 0) {
        message("cannot create shared memory: %s", strerror(reason));
        return EXIT_RECORDER;
    }
    collector->host.channel->launched_pid = attachment.pid;
    attachment.sequence = &collector->host.channel->sequence;
    attach_name_library(&collector->host);
    if (!collector_open(collector, options->output, &error)) {
        message_error(options->output, &error);
        return EXIT_OUTPUT;
    }
    if (attach_begin(&attachment, attach_tick, collector)) {
        collector->earlier = &attachment.known;
        collector->earlier_reason = attachment.known_reason;
        collector->unreturned = attachment.in_call;
        collector->unreturned_count = attachment.in_call_count;
        return EXIT_SUCCESS;
    }
    collector_close(collector);
    return EXIT_RECORDER;
}

static int attach_record(const struct options *options)
{
    static struct collector collector; /* larger than the stack may be */
    char command[ATTACHED_COMMAND + 1];
    join_command(command);
    collector.command = command;
    collector.recording = options->recording;
    collector.snapshots = options->snapshots;
    collector.wanted_group = options->group;
    collector.is_quiet = options->is_quiet;
    collector.is_attached = collector.had_run = true;
    collector.launched = (pid_t)attachment.pid;
    limits_raise(RLIMIT_NOFILE);
    int status = attach_reserve(&attachment) ? attach_open(&collector, options) : EXIT_RECORDER;
    if (status != EXIT_SUCCESS) {
        attach_give_up(&attachment);
        return status;
    }
    limits_raise(RLIMIT_FSIZE);
    limits_keep_memory();
    attach_options = options;
    collector.done = &signals_seen.done;
    collector.wants_stop = signals_want_stop;
    collector.stop = signals_stop;
    collector.step = attach_step;
    collector_run(&collector, &is_detached);
    summary_warn(&collector);
    if (attachment.is_left)
        message("warning: the recorder's functions stay in process %u, unused: a thread has not "
                "left them, or the process has confined itself",
                attachment.pid);
    if (children_left != 0)
        message("warning: the recorder's functions stay, unused, in %u child process%s",
                children_left, children_left == 1 ? "" : "es");
    if (!options->is_quiet && collector.has_attached_first)
        summary_print(&collector, options->output);
    bool is_written = collector.closers.unwritten == 0;
    collector_close(&collector);
    return is_written ? EXIT_SUCCESS : EXIT_OUTPUT;
}

/* Plans, and records from the program's first thread on. Returns an exit status, with the reason in
 * the attachment if there was no message. */
static int launch_attach(struct collector *collector, const struct options *options,
                         struct attach_hold *hold, uint32_t pid)
{
    attachment.hold = hold;
    if (!attach_plan(&attachment, pid, library))
        return EXIT_STATIC;
    const char *reason = attach_hold_thread(hold);
    if (reason) {
        snprintf(attachment.reason, sizeof attachment.reason, "%s", reason);
        return EXIT_STATIC;
    }
    return attach_reserve(&attachment) ? attach_open(collector, options) : EXIT_RECORDER;
}

int attach_launch(struct collector *collector, const struct options *options, const char *path,
                  char *const *arguments)
{
    struct launch launch;
    struct attach_hold hold;
    if (!launch_find_attached(library) || !launch_prepare(&launch, path, arguments, NULL, NULL))
        return EXIT_RECORDER;
    if (!attach_hold_begin(&hold, (uint32_t)launch.pid, &attachment.interrupted)) {
        message("cannot record '%s': it is statically linked, and the system does not permit "
                "tracing it",
                path);
        launch_cancel(&launch);
        return EXIT_RECORDER;
    }
    collector->launched = launch.pid;
    int status = launch_go(&launch) ? EXIT_SUCCESS : EXIT_CANNOT_RUN;
    bool runs = attach_hold_program(&hold) && status == EXIT_SUCCESS;
    if (runs)
        status = launch_attach(collector, options, &hold, (uint32_t)launch.pid);
    if (runs && status != EXIT_SUCCESS)
        kill(launch.pid, SIGKILL);
    attach_hold_end(&hold);
    attachment.hold = NULL;
    if (runs && status != EXIT_SUCCESS)
        waitpid(launch.pid, NULL, 0);
    if (attachment.reason[0] != '\0')
        message("cannot record '%s': %s", path, attachment.reason);
    attachment_free(&attachment);
    return status;
}

/* Returns the process id that is the whole text, or 0. */
static unsigned long attach_command_pid_of(const char *text)
{
    char *end;
    unsigned long pid = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    return pid != 0 && pid <= INT32_MAX && *end == '\0' ? pid : 0;
}

int attach_clean_command(const char *text)
{
    char reason[ATTACH_REASON_SIZE];
    unsigned long pid = attach_command_pid_of(text);
    if (pid == 0 || !launch_find_attached(library))
        return -1;
    if (attach_clean_left((uint32_t)pid, library, reason)) {
        message("removed from process %lu the remains of a killed recorder", pid);
        return EXIT_SUCCESS;
    }
    if (reason[0] == '\0')
        return -1;
    message("cannot remove from process %lu the remains of a killed recorder: %s", pid, reason);
    return EXIT_RECORDER;
}

int attach_process(const struct options *options, uint32_t pid)
{
    if (!launch_find_attached(library))
        return EXIT_RECORDER;
    signals_seen.done = true; /* those that end the recording count from now on */
    signals_catch(0);
    if (arm_seize(pid) == ARM_READY)
        return armed_record(options, pid, true);
    int status = attach_plan(&attachment, pid, library) ? attach_record(options) : EXIT_RECORDER;
    if (attachment.reason[0] != '\0')
        message("cannot attach to process %u: %s", pid, attachment.reason);
    attachment_free(&attachment);
    return status;
}

int attach_command(int argc, char **argv)
{
    struct options options;
    options_parse(argc - 1, argv + 1, true, &options);
    unsigned long pid = attach_command_pid_of(argv[1 + optind]);
    if (pid == 0 || argv[2 + optind]) {
        message("'attach' needs a process id and nothing else");
        return EXIT_RECORDER;
    }
    if (!launch_is_possible())
        return EXIT_RECORDER;
    suspend_await((uint32_t)pid);
    return options.has_descendants ? attach_tree(&options, (uint32_t)pid)
                                   : attach_process(&options, (uint32_t)pid);
}
