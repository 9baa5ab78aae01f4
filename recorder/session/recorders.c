/* SPDX-License-Identifier: MIT */
#include "session/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arm/arm.h"
#include "subcommands.h"
#include "launch.h"
#include "messages.h"

enum {
    FIRST_OWN = 3, /* descriptors of a recorder, behind the standard ones */
    EXEC_LOOKS = 5000,
    EXEC_LOOK_NS = 1000 * 1000,
    EVENT_STOP = 128 /* PTRACE_EVENT_STOP; not all headers have it */
};

/* Returns a field of a thread's status in /proc; 0 if unknown. */
static uint32_t recorders_status_number(uint32_t tid, const char *field)
{
    char path[64], line[256];
    uint32_t number = 0;
    size_t size = strlen(field);
    snprintf(path, sizeof path, "/proc/%u/status", tid);
    FILE *file = fopen(path, "re");
    while (file && number == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, field, size) == 0)
            number = (uint32_t)strtoul(line + size, NULL, 10);
    if (file)
        fclose(file);
    return number;
}

/* Names a trace after its program; one of the same name is another process's, and is kept. */
static void recorders_name_file(const struct daemon *daemon, struct session_entry *entry,
                                const char *program)
{
    char name[64], path[4096 + 256];
    struct stat status;
    size_t size = 0;
    for (const char *from = program; *from != '\0' && size + 1 < sizeof name; from++)
        name[size++] = (char)(strchr("/ ", *from) || *from < ' ' ? '_' : *from);
    name[size] = '\0';
    for (unsigned i = 1; i < 10000; i++) {
        char again[16] = "";
        if (i > 1)
            snprintf(again, sizeof again, "-%u", i);
        snprintf(entry->file, sizeof entry->file, "%s.%u%s.bin", name, entry->pid, again);
        snprintf(path, sizeof path, "%s/%s", daemon->folder, entry->file);
        if (lstat(path, &status) != 0 && errno == ENOENT)
            return;
    }
}

/* In the recorder: has nothing of the daemon's but the descriptors `ready`, the first one then, and
 * `seized`, the second. A daemon that dies ends its recorders. */
static void become_recorder(pid_t daemon, int ready, int seized)
{
    sigset_t none;
    int files[] = {ready, seized};
    for (int i = 0; i < 2 && files[i] >= 0; i++) { /* clear of each other's places first */
        int moved = fcntl(files[i], F_DUPFD_CLOEXEC, FIRST_OWN + 2);
        if (moved < 0)
            _exit(EXIT_RECORDER);
        files[i] = moved;
    }
    for (int i = 0; i < 2 && files[i] >= 0; i++)
        if (dup2(files[i], FIRST_OWN + i) < 0)
            _exit(EXIT_RECORDER);
    close_range(FIRST_OWN + (seized >= 0 ? 2 : 1), ~0U, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != daemon)
        _exit(EXIT_RECORDER);
}

/* Forks a recorder. Returns as fork() does; in the recorder, `options` are its own. */
static pid_t fork_recorder(const struct daemon *daemon, struct daemon_record *record, int seized,
                           struct options *options, char *output, size_t size)
{
    int ends[2];
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        become_recorder(self, ends[1], seized);
        snprintf(output, size, "%s/%s", daemon->folder, record->entry.file);
        *options = daemon->options;
        options->output = output;
        options->is_quiet = true;
        options->recording.counts_sizes = true;
        options->ready = FIRST_OWN;
        return 0;
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -1;
    }
    record->ready = ends[0];
    record->entry.collector = (uint32_t)pid;
    return pid;
}

bool recorders_attach(struct daemon *daemon, struct daemon_record *record, uint32_t pid)
{
    char program[64] = "", output[4096 + 256], path[64];
    struct options options;
    *record = (struct daemon_record){.entry = {.pid = pid}};
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(program, sizeof program, file))
            program[strcspn(program, "\n")] = '\0';
        fclose(file);
    }
    recorders_name_file(daemon, &record->entry, program[0] != '\0' ? program : "process");
    pid_t recorder = fork_recorder(daemon, record, -1, &options, output, sizeof output);
    if (recorder == 0)
        _exit(attach_process(&options, pid));
    return recorder > 0;
}

/* Waits until a traced thread has executed its program. Returns the process id, or 0 if it does
 * not: the end of this process then lets go of it. */
static uint32_t recorders_catcher_await_exec(void)
{
    const struct timespec moment = {.tv_nsec = EXEC_LOOK_NS};
    for (int i = 0; i < EXEC_LOOKS; nanosleep(&moment, NULL), i++) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
        if (pid == 0)
            continue;
        if (pid < 0 || !WIFSTOPPED(status))
            return 0;
        int event = status >> 16, number = WSTOPSIG(status);
        if (event == PTRACE_EVENT_EXEC)
            return arm_is_at_start((uint32_t)pid) ? (uint32_t)pid : 0;
        if (event == EVENT_STOP && number != SIGTRAP)
            ptrace(PTRACE_LISTEN, pid, NULL, NULL);
        else
            ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(event == 0 ? number : 0));
    }
    return 0;
}

/* In the recorder: traces a thread, lets the daemon let it go, and records its process. */
static int recorders_catch_and_record(const struct options *options, uint32_t tid)
{
    void *trace = (void *)(intptr_t)PTRACE_O_TRACEEXEC;
    uint32_t tracer = recorders_status_number(tid, "TracerPid:");
    if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, trace) != 0) {
        message("process %u is not recorded: %s", tid,
                tracer != 0 ? "another one traces it" : strerror(errno));
        return EXIT_RECORDER;
    }
    if (write(FIRST_OWN + 1, "", 1) != 1)
        return EXIT_RECORDER;
    close(FIRST_OWN + 1);
    uint32_t pid = recorders_catcher_await_exec();
    signals_seen.done = true; /* those that end the recording count from now on */
    signals_catch(0);
    return pid != 0 ? armed_record(options, pid, false) : EXIT_CANNOT_RUN;
}

bool recorders_catch(struct daemon *daemon, struct daemon_record *record,
                     const struct names_event *event, int *seized)
{
    char program[4096], link[64], output[4096 + 256];
    struct options options;
    int ends[2];
    uint32_t pid = recorders_status_number(event->tid, "Tgid:");
    *record =
        (struct daemon_record){.entry = {.pid = pid != 0 ? pid : event->tid}, .thread = event->tid};
    snprintf(link, sizeof link, "/proc/self/fd/%d", event->file);
    ssize_t size = readlink(link, program, sizeof program - 1);
    program[size > 0 ? size : 0] = '\0';
    const char *name = strrchr(program, '/');
    recorders_name_file(daemon, &record->entry, name ? name + 1 : "process");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t recorder = fork_recorder(daemon, record, ends[1], &options, output, sizeof output);
    if (recorder == 0)
        _exit(recorders_catch_and_record(&options, event->tid));
    close(ends[1]);
    *seized = ends[0];
    if (recorder < 0)
        close(ends[0]);
    return recorder > 0;
}
