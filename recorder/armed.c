/* SPDX-License-Identifier: MIT */
/* Records a process from its first instruction on; and `ttdrecord suspend`, which makes one that
 * waits there. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "subcommands.h"
#include "arm/arm.h"
#include "collect/collector.h"
#include "launch.h"
#include "messages.h"

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
    launch_join_arguments(command, size > 0 ? (size_t)size : 0);
}

/* Whether the program can be recorded: like launch_find(). */
static int armed_check_executable(uint32_t pid)
{
    char link[64], path[LAUNCH_PATH_MAX];
    snprintf(link, sizeof link, "/proc/%u/exe", pid);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return launch_check(link, path);
}

/* Opens the channel and the trace, and arms the process; lets go of it in any case. */
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
    int status = armed_check_executable(pid);
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

bool suspend_is_command(int argc, char **argv)
{
    return argc >= 2 && strcmp(argv[1], "suspend") == 0;
}

/* In a process that is no child of the program's: traces it until it has executed the program. */
static _Noreturn void armed_stop_at_exec(pid_t program, int ready)
{
    void *options = (void *)(intptr_t)PTRACE_O_TRACEEXEC;
    int reason = ptrace(PTRACE_SEIZE, program, NULL, options) == 0 ? 0 : errno;
    int status;
    if (write(ready, &reason, sizeof reason) != sizeof reason || reason != 0)
        _exit(1);
    close(ready);
    while (waitpid(program, &status, __WALL) == program && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_EXEC) {
            kill(program, SIGSTOP); /* comes before the program's first instruction */
            arm_release((uint32_t)program, true);
            break;
        }
        ptrace(PTRACE_CONT, program, NULL, (void *)(intptr_t)(event == 0 ? signal : 0));
    }
    _exit(0);
}

/* Has a process stop this one at its next exec. Returns 0 or an errno value. */
static int armed_suspend_at_exec(void)
{
    int ready[2], go[2], reason = 0;
    pid_t program = getpid(), tracer = -1;
    if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0)
        return errno;
    pid_t middle = fork();
    if (middle < 0)
        return errno;
    if (middle == 0) {
        tracer = fork();
        if (tracer == 0) {
            char byte;
            close(go[1]);
            if (read(go[0], &byte, 1) != 1)
                _exit(1);
            armed_stop_at_exec(program, ready[1]);
        }
        _exit(write(ready[1], &tracer, sizeof tracer) == sizeof tracer ? 0 : 1);
    }
    close(ready[1]);
    while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
        ;
    if (read(ready[0], &tracer, sizeof tracer) != sizeof tracer || tracer < 0)
        return EAGAIN;
    prctl(PR_SET_PTRACER, tracer); /* where Yama lets only ancestors trace */
    if (write(go[1], "", 1) != 1 || read(ready[0], &reason, sizeof reason) != sizeof reason)
        return EPERM;
    return reason;
}

int suspend_command(int argc, char **argv)
{
    char path[LAUNCH_PATH_MAX];
    int first = argc >= 3 && strcmp(argv[2], "--") == 0 ? 3 : 2;
    if (first >= argc || (first == 2 && argv[2][0] == '-')) {
        message("'suspend' needs a program and its arguments, and has no options");
        return EXIT_RECORDER;
    }
    if (!launch_is_possible())
        return EXIT_RECORDER;
    int refused = launch_find(argv[first], path, NULL);
    if (refused != 0)
        return refused;
    int reason = armed_suspend_at_exec();
    if (reason != 0) {
        message("cannot suspend '%s': the system does not permit tracing it: %s", path,
                strerror(reason));
        return EXIT_RECORDER;
    }
    message("process %d is suspended before its first instruction: 'ttdrecord attach %d' records "
            "it, then 'ttdrecord resume %d' lets it go on",
            (int)getpid(), (int)getpid(), (int)getpid());
    execv(path, argv + first);
    message("cannot run '%s': %s", path, strerror(errno));
    return EXIT_CANNOT_RUN;
}

/* Reads the begin of a process's arguments, which end with zeros. */
static void armed_suspend_read_arguments(uint32_t pid, char arguments[COMMAND_MAX])
{
    char path[64];
    memset(arguments, 0, COMMAND_MAX);
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    if (read(file, arguments, COMMAND_MAX - 2) < 0)
        arguments[0] = '\0';
    close(file);
}

/* Whether two processes run the same program. */
static bool armed_suspend_is_same(uint32_t pid, uint32_t other)
{
    char path[64];
    struct stat program, others;
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    if (stat(path, &program) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%u/exe", other);
    return stat(path, &others) == 0 && program.st_dev == others.st_dev &&
           program.st_ino == others.st_ino;
}

/* Whether a process is `ttdrecord suspend`: the program before it is executed, or its starter.
 * While it is being executed it has no arguments yet. */
static bool armed_suspend_is_by(uint32_t pid)
{
    char arguments[COMMAND_MAX];
    armed_suspend_read_arguments(pid, arguments);
    bool is_command =
        arguments[0] == '\0' || strcmp(arguments + strlen(arguments) + 1, "suspend") == 0;
    return is_command && armed_suspend_is_same(pid, (uint32_t)getpid());
}

/* Whether a process is a copy of our parent, a shell, and likewise its child: it has not executed
 * the program yet that it is to run. */
static bool armed_suspend_is_shell(uint32_t pid, uint32_t parent)
{
    char arguments[COMMAND_MAX], shell[COMMAND_MAX];
    armed_suspend_read_arguments(pid, arguments);
    armed_suspend_read_arguments((uint32_t)getppid(), shell);
    return parent == (uint32_t)getppid() && memcmp(arguments, shell, COMMAND_MAX) == 0 &&
           armed_suspend_is_same(pid, parent);
}

/* Returns a number from the status of a process; 0 for none. */
static uint64_t armed_suspend_number(uint32_t pid, const char *field, int base)
{
    char path[64], line[256];
    uint64_t number = 0;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            number = strtoull(line + strlen(field), NULL, base);
    if (file)
        fclose(file);
    return number;
}

/* Whether a process is about to be suspended: it or its tracer is `ttdrecord suspend`, or it has
 * not acted on the signal yet that stops it. */
static bool armed_suspend_is_coming(uint32_t pid, bool may_be_shell)
{
    uint32_t tracer = (uint32_t)armed_suspend_number(pid, "TracerPid:", 10);
    uint64_t pending = armed_suspend_number(pid, "ShdPnd:", 16);
    return armed_suspend_is_by(pid) || (tracer != 0 && armed_suspend_is_by(tracer)) ||
           (pending >> (SIGSTOP - 1) & 1) != 0 ||
           (may_be_shell &&
            armed_suspend_is_shell(pid, (uint32_t)armed_suspend_number(pid, "PPid:", 10)));
}

void suspend_await(uint32_t pid)
{
    /* A shell that is meant itself is not waited for long. Between the readings of one look the
     * process may go on to its next state, so that a single look proves nothing. */
    enum { LOOKS = 10000, SHELL_LOOKS = 1000, LOOKS_ALIKE = 2 };
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0, alike = 0; i < LOOKS && alike < LOOKS_ALIKE; i++) {
        alike = armed_suspend_is_coming(pid, i < SHELL_LOOKS) ? 0 : alike + 1;
        if (alike < LOOKS_ALIKE)
            nanosleep(&moment, NULL);
    }
}

bool suspend_resume(const char *text)
{
    char *end;
    unsigned long pid = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (pid == 0 || pid > INT32_MAX || *end != '\0' || arm_seize((uint32_t)pid) != ARM_READY)
        return false;
    arm_release((uint32_t)pid, true);
    if (kill((pid_t)pid, SIGCONT) != 0)
        return false;
    message("process %lu goes on, from its first instruction", pid);
    return true;
}
