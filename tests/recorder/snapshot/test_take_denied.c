/* SPDX-License-Identifier: MIT */
/* The reason that is given when a snapshot fails after a thread's memory could not be read at
 * first. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "child.h"
#include "snapshot/take.h"

static unsigned denials;

/* The C library's, for which the system does not permit the first calls. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                         const struct iovec *from, unsigned long from_count, unsigned long flags)
{
    if (denials == 0)
        return syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
    denials--;
    errno = EPERM;
    return -1;
}

static void *wait_for_all(void *unused)
{
    pause();
    return unused;
}

static void start_thread(volatile struct child_shared *shared)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_all, NULL);
    child_wait(shared);
}

static bool give_up(void *unused, struct snapshot_subject *subject)
{
    (void)unused;
    *subject = (struct snapshot_subject){.pages = NULL};
    return false;
}

static void tick(void *unused)
{
    (void)unused;
}

static enum take_result result_after(unsigned count)
{
    struct child child = child_start(start_thread);
    struct snapshot_request request = {.tid = (uint32_t)child.pid};
    struct snapshot_order order = {.pid = (uint32_t)child.pid,
                                   .child = (uint32_t)child.pid,
                                   .request = &request,
                                   .time_limit = SNAPSHOT_TIME_LIMIT,
                                   .calls = {.settle = give_up, .tick = tick, .follow = tick}};
    struct interrupted_calls interrupted = {0};
    struct copy_history copies = {0};
    struct take_stalls stalls = {0};
    struct ttd_snapshot snapshot = {.number = 1};
    order.interrupted = &interrupted;
    order.copies = &copies;
    order.stalls = &stalls;
    denials = count;
    enum take_result result = snapshot_take(&order, &snapshot);
    interrupted_calls_free(&interrupted);
    cr_assert(child_end(&child) == 0);
    return result;
}

Test(take, another_thread_is_permitted, .timeout = 60)
{
    cr_assert(result_after(1) == TAKE_FAILED);
}

Test(take, no_thread_is_permitted, .timeout = 60)
{
    cr_assert(result_after(10) == TAKE_DENIED);
}
