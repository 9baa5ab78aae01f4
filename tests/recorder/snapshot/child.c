/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

struct child child_start(child_function *function)
{
    struct child child;
    child.shared =
        mmap(NULL, sizeof *child.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(child.shared != MAP_FAILED);
    child.pid = fork();
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        function(child.shared);
        _exit(0);
    }
    cr_assert(child.pid > 0);
    while (!child.shared->is_ready)
        pause_a_moment();
    return child;
}

void child_wait(volatile struct child_shared *shared)
{
    pause_a_moment(); /* what the function takes in memory, it takes before it is looked at */
    shared->is_ready = 1;
    while (!shared->may_go)
        pause_a_moment();
}

int child_end(struct child *child)
{
    int status = -1;
    child->shared->may_go = 1;
    cr_assert(waitpid(child->pid, &status, 0) == child->pid);
    return status;
}
