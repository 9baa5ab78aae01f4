/* SPDX-License-Identifier: MIT */
/*
 * Gets a descriptor of the channel where no path leads to it any more: see struct loan. The child
 * of a vfork may run this, in its parent's memory: all data is on the stack.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "preload/system/sys.h"
#include "preload/channel/target.h"

#define LEND_ONCE_NS 20000000
#define LEND_NS      UINT64_C(20000000000)

static struct loan *lend_claim(void)
{
    for (int i = 0; i < CHANNEL_LOANS; i++) {
        uint32_t expected = LOAN_FREE;
        struct loan *loan = &target_channel->loans[i];
        if (atomic_compare_exchange_strong(&loan->state, &expected, LOAN_CLAIMED))
            return loan;
    }
    return NULL;
}

/* Waits for the answer. Returns whether the descriptor has been sent. */
static bool lend_await(struct loan *loan)
{
    struct timespec once = {.tv_nsec = LEND_ONCE_NS};
    struct patience patience = {0};
    uint32_t state = LOAN_ASKED;
    for (uint64_t begin = sys_clock();;) {
        sys_call6(SYS_futex, (long)&loan->state, FUTEX_WAIT, LOAN_ASKED, (long)&once, 0, 0);
        state = atomic_load(&loan->state);
        if (state != LOAN_ASKED)
            break;
        uint64_t now = sys_clock();
        /* A child of a fork that has not attached may not know that it does not see the collector.
         */
        if ((now - begin >= LEND_NS || atomic_load(&target_channel->stopped) != 0 ||
             collector_has_stalled(&patience, now, COLLECTOR_STALL_NS)) &&
            atomic_compare_exchange_strong(&loan->state, &state, LOAN_FREE))
            return false;
    }
    atomic_store(&loan->state, LOAN_FREE);
    return state == LOAN_GIVEN;
}

static bool lend_ask(int32_t socket)
{
    struct loan *loan = lend_claim();
    volatile uint64_t value = sys_clock() << 1 | 1;
    if (loan == NULL)
        return false;
    loan->pid = (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
    loan->socket = socket;
    loan->address = (uintptr_t)&value;
    loan->value = value;
    atomic_store(&loan->state, LOAN_ASKED);
    collector_wake();
    return lend_await(loan);
}

/* Returns the descriptor that was sent. */
static int lend_receive(int32_t socket)
{
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    long size = sys_call3(SYS_recvmsg, socket, (long)&message, MSG_DONTWAIT);
    bool is_whole = size == 1 && message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
                    control.header.cmsg_level == SOL_SOCKET &&
                    control.header.cmsg_type == SCM_RIGHTS;
    return is_whole ? *(const int *)CMSG_DATA(&control.header) : -1;
}

int channel_lend(void)
{
    int32_t ends[2];
    int descriptor = -1;
    if (process_is_confined ||
        sys_call6(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, (long)ends, 0, 0) != 0)
        return -1;
    if (lend_ask(ends[1]))
        descriptor = lend_receive(ends[0]);
    sys_call3(SYS_close, ends[0], 0, 0);
    sys_call3(SYS_close, ends[1], 0, 0);
    return descriptor;
}
