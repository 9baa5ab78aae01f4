/* SPDX-License-Identifier: MIT */
#include "launched.h"

#include <sys/wait.h>

#include "process/origin.h"

void launched_reap(struct collector *collector)
{
    int status;
    while (!collector->launched_has_ended &&
           waitpid(collector->launched, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        collector->launched_stop = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (WIFSTOPPED(status) || WIFCONTINUED(status))
            continue;
        collector->launched_status = status;
        *collector->done = collector->launched_has_ended = true;
    }
}

static bool others_run(const struct collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++) {
        uint32_t pid = collector->processes.items[i]->pid;
        if (pid != (uint32_t)collector->launched && origin_is_running(pid))
            return true;
    }
    return false;
}

void launched_follow_stop(struct collector *collector)
{
    if (collector->launched_stop == 0 || (others_run(collector) && !collector->wants_stop()))
        return;
    for (size_t i = 0; i < collector->processes.count; i++)
        trace_flush(collector->processes.items[i]->trace);
    collector->stop(collector->launched_stop);
    collector->launched_stop = 0;
}
