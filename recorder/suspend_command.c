/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm/arm.h"
#include "launch.h"
#include "messages.h"

bool suspend_is_command(int argc, char **argv)
{
    return argc >= 2 && strcmp(argv[1], "suspend") == 0;
}

/* In a process that is no child of the program's: traces it until it has executed the program. */
static _Noreturn void stop_at_exec(pid_t program, int ready)
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
static int suspend_at_exec(void)
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
            stop_at_exec(program, ready[1]);
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
    int refused = launch_find(argv[first], path);
    if (refused != 0)
        return refused;
    int reason = suspend_at_exec();
    if (reason != 0) {
        message("cannot suspend '%s': the system does not permit to trace it: %s", path,
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
