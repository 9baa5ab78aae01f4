/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arm/arm.h"
#include "arrays.h"
#include "attach/attach.h"
#include "channel.h"
#include "collect/collector.h"
#include "collect/process/origin.h"
#include "launch.h"
#include "messages.h"
#include "options.h"

/* How long threads are waited for that are in the hooks, and how often that is looked at. */
#define LEAVE_NS UINT64_C(5000000000)
enum { GONE_LOOK_NS = 50 * 1000 * 1000, LEAVE_LOOK_NS = 5 * 1000 * 1000 };

/* The same of a program that the process is about to execute, or its loader to load. */
#define PROGRAM_NS UINT64_C(1000000000)
enum { PROGRAM_LOOK_NS = 1000 * 1000 };

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

/* Takes the history of the process's copies: one may still have to be waited for. */
static void attach_take_copies(const struct collector *collector)
{
    const struct process *process = processes_by_pid(&collector->processes, attachment.pid);
    if (process)
        attachment.copies = process->copies;
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
    if (*since == 0) {
        *since = attach_command_now();
        attach_take_copies(collector);
    }
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
    if (is_gone && !origin_has_environment(attachment.pid))
        return; /* it is still unknown whether that is recorded */
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
    attachment.chooses = (options->recording.flags & CHANNEL_CHOOSES) != 0;
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
        collector->copies = attachment.copies;
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
    memset(&collector, 0, sizeof collector);
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

/* Attaches to the process and records it. Waits for a program that the process is about to execute
 * or to load. */
static int attach_record_program(const struct options *options, uint32_t pid)
{
    const struct timespec pause = {.tv_nsec = PROGRAM_LOOK_NS};
    uint64_t begin = attach_command_now();
    for (;;) {
        int status = EXIT_RECORDER;
        if (attach_plan(&attachment, pid, library))
            status = attach_record(options);
        bool is_for_now = attachment.is_early || attach_is_past(&attachment);
        if (attachment.reason[0] == '\0' || !is_for_now ||
            attach_command_now() - begin > PROGRAM_NS)
            return status;
        attach_forget(&attachment);
        nanosleep(&pause, NULL);
    }
}

int attach_process(const struct options *options, uint32_t pid)
{
    if (!launch_find_attached(library))
        return EXIT_RECORDER;
    signals_seen.done = true; /* those that end the recording count from now on */
    signals_catch(0);
    if (arm_seize(pid) == ARM_READY)
        return armed_record(options, pid, true);
    int status = attach_record_program(options, pid);
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

/* ttdrecord attach --children: a recorder for a process, and one for each of its descendants. */

/* How often descendants are looked for: those that began meanwhile are found the next time. */
enum { TREE_LOOKS = 4 };

/* A process, and its recorder; 0 if it has none. */
struct tree_member {
    uint32_t pid;
    pid_t recorder;
    bool is_attached;
    bool is_foreign; /* another recorder recorded it before */
};

/* A process of the system. */
struct tree_process {
    uint32_t pid;
    uint32_t parent;
};

struct tree {
    const struct options *options;
    struct ttd_group group;
    uint32_t root;
    struct tree_member *members; /* the first one is the root */
    size_t count, capacity;
    struct tree_process *processes;
    size_t process_count, process_capacity;
};

static volatile sig_atomic_t tree_is_over;

static void attach_tree_on_signal(int number)
{
    (void)number;
    tree_is_over = true;
}

/* Has signals that end a recording interrupt waiting. A terminal sends them to all recorders. */
static void attach_tree_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = attach_tree_on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- Processes ---- */

/* Whether a recorder's memory is mapped: children of a recorded process have it. */
static bool attach_tree_is_recorded(uint32_t pid)
{
    char path[64], line[PATH_MAX + 128];
    bool is_recorded = false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && !is_recorded && fgets(line, sizeof line, file))
        is_recorded = strstr(line, CHANNEL_NAME);
    if (file)
        fclose(file);
    return is_recorded;
}

/* Adds a process to the tree, unless it is there. False if memory ran out. */
static bool attach_tree_add_member(struct tree *tree, uint32_t pid)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->members[i].pid == pid)
            return true;
    struct tree_member *members =
        array_grow(tree->members, tree->count, &tree->capacity, sizeof *members);
    if (!members)
        return false;
    tree->members = members;
    members[tree->count++] = (struct tree_member){.pid = pid};
    return true;
}

static bool attach_tree_add_process(struct tree *tree, uint32_t pid)
{
    struct tree_process *processes = array_grow(tree->processes, tree->process_count,
                                                &tree->process_capacity, sizeof *processes);
    if (!processes)
        return false;
    tree->processes = processes;
    processes[tree->process_count++] = (struct tree_process){pid, origin_parent(pid)};
    return true;
}

static bool attach_tree_list_processes(struct tree *tree)
{
    const struct dirent *entry;
    bool has_memory = true;
    DIR *directory = opendir("/proc");
    tree->process_count = 0;
    while (directory && has_memory && (entry = readdir(directory)))
        if (isdigit((unsigned char)*entry->d_name))
            has_memory = attach_tree_add_process(tree, (uint32_t)strtoul(entry->d_name, NULL, 10));
    if (directory)
        closedir(directory);
    return directory && has_memory;
}

/* Adds the processes that descend from the root. */
static void attach_tree_find_members(struct tree *tree)
{
    bool has_memory = attach_tree_list_processes(tree);
    for (size_t i = 0; i < tree->count && has_memory; i++)
        for (size_t k = 0; k < tree->process_count && has_memory; k++)
            if (tree->processes[k].parent == tree->members[i].pid)
                has_memory = attach_tree_add_member(tree, tree->processes[k].pid);
    if (!has_memory)
        message("warning: the system does not list all descendants of process %" PRIu32,
                tree->root);
}

/* ---- Recorders ---- */

/* Names the trace of a member as a child's trace is named: FILE.PID.NAME. */
static void attach_tree_name_file(const struct tree *tree, const struct tree_member *member,
                                  char *path, size_t size)
{
    char file_name[64], name[32] = "";
    if (member->pid == tree->root) {
        snprintf(path, size, "%s", tree->options->output);
        return;
    }
    snprintf(file_name, sizeof file_name, "/proc/%" PRIu32 "/comm", member->pid);
    FILE *file = fopen(file_name, "re");
    if (file) {
        if (fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && !strchr("+_-", *c))
            *c = '_';
    snprintf(path, size, "%s.%" PRIu32 "%s%s", tree->options->output, member->pid,
             name[0] != '\0' ? "." : "", name);
}

/* In the new process: records the member until it ends or is left. It ends with its parent. */
static _Noreturn void attach_tree_record(const struct tree *tree, const struct tree_member *member,
                                         pid_t self, int ready)
{
    static char path[PATH_MAX + 64];
    struct options options = *tree->options;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self)
        _exit(EXIT_RECORDER);
    attach_tree_name_file(tree, member, path, sizeof path);
    options.output = path;
    options.ready = ready;
    options.is_quiet = true;
    options.group = tree->group;
    _exit(attach_process(&options, member->pid));
}

/* Starts the recorder of a member, and waits until the process is recorded or cannot be. */
static bool attach_tree_attach(const struct tree *tree, struct tree_member *member)
{
    int ends[2];
    char byte;
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    member->recorder = fork();
    if (member->recorder == 0) {
        close(ends[0]);
        attach_tree_record(tree, member, self, ends[1]);
    }
    close(ends[1]);
    ssize_t size;
    while ((size = read(ends[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    member->is_attached = size == 1;
    return member->is_attached;
}

/* Attaches to descendants that are not recorded. Those that fork from now on are recorded by the
 * recorders of their parents. Returns how many there are. */
static size_t attach_tree_attach_descendants(struct tree *tree)
{
    size_t descendants = 0;
    for (int look = 0; look < TREE_LOOKS && !tree_is_over; look++) {
        size_t before = descendants;
        attach_tree_find_members(tree);
        for (size_t i = 1; i < tree->count && !tree_is_over; i++) {
            struct tree_member *member = &tree->members[i];
            if (member->recorder != 0 || !origin_is_running(member->pid) ||
                (!member->is_foreign && attach_tree_is_recorded(member->pid)))
                continue;
            descendants++;
            (void)attach_tree_attach(tree, member);
        }
        if (descendants == before)
            break;
    }
    return descendants;
}

static size_t attach_tree_count_attached(const struct tree *tree)
{
    size_t count = 0;
    for (size_t i = 1; i < tree->count; i++)
        count += tree->members[i].is_attached;
    return count;
}

static void attach_tree_end_recorders(const struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->members[i].recorder > 0)
            kill(tree->members[i].recorder, SIGTERM);
}

/* Waits for all recorders. Once the root is recorded no longer, but runs, nor are the others.
 * Returns the exit status of the root's recorder, or else the first that is no success. */
static int attach_tree_wait(struct tree *tree)
{
    int result = EXIT_SUCCESS;
    for (;;) {
        int status;
        if (tree_is_over)
            attach_tree_end_recorders(tree);
        pid_t recorder = waitpid(-1, &status, 0);
        if (recorder < 0 && errno == EINTR)
            continue;
        if (recorder < 0)
            return result;
        int ended = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RECORDER;
        for (size_t i = 0; i < tree->count; i++) {
            struct tree_member *member = &tree->members[i];
            if (member->recorder != recorder)
                continue;
            member->recorder = -1;
            if (i == 0)
                tree_is_over |= origin_is_running(tree->root);
            if (i == 0 || (result == EXIT_SUCCESS && member->is_attached))
                result = ended != EXIT_SUCCESS ? ended : result;
        }
    }
}

int attach_tree(const struct options *options, uint32_t pid)
{
    struct tree tree = {.options = options, .root = pid};
    if (!attach_tree_add_member(&tree, pid) ||
        getrandom(&tree.group, sizeof tree.group, 0) != (ssize_t)sizeof tree.group)
        return EXIT_RECORDER;
    attach_tree_find_members(&tree);
    for (size_t i = 1; i < tree.count; i++)
        tree.members[i].is_foreign = attach_tree_is_recorded(tree.members[i].pid);
    attach_tree_catch_signals();
    if (attach_tree_attach(&tree, &tree.members[0])) {
        size_t descendants = attach_tree_attach_descendants(&tree);
        options_report_ready(options);
        if (!options->is_quiet)
            message("attached to process %" PRIu32 " and %zu of its %zu descendant%s; ^C or "
                    "'ttdrecord detach %" PRIu32 "' ends it",
                    pid, attach_tree_count_attached(&tree), descendants,
                    descendants == 1 ? "" : "s", pid);
    }
    bool was_attached = tree.members[0].is_attached;
    int status = attach_tree_wait(&tree);
    if (was_attached && !options->is_quiet)
        message("the traces are '%s' and '%s.PID.NAME'; see 'ttdanalyze leaks --group %s'",
                options->output, options->output, options->output);
    free(tree.members);
    free(tree.processes);
    return status;
}
