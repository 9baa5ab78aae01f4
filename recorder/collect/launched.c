/* SPDX-License-Identifier: MIT */
#include "collect/launched.h"

#include <sys/wait.h>

#include "collect/process/origin.h"

uint32_t launched_child(const struct collector *collector)
{
    return collector->is_attached ? 0 : (uint32_t)collector->launched;
}

/* A process that was attached to is not waited for by this one. */
static void look_for_end(struct collector *collector)
{
    const struct process *process =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    bool has_ended = process
                         ? process->is_gone
                         : origin_is_over((uint32_t)collector->launched, collector->launched_start);
    if (has_ended && !collector->launched_has_ended)
        *collector->done = collector->launched_has_ended = true;
}

void launched_reap(struct collector *collector)
{
    int status;
    if (collector->is_attached) {
        look_for_end(collector);
        return;
    }
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
