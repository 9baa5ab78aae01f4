/* SPDX-License-Identifier: MIT */
/*
 * The process's part of the channel: claims its slot, takes chunks, and waits for them: by
 * sleeping, or, where the program may be confined by seccomp, by spinning. A wait ends without a
 * chunk once the collector has stalled.
 */
#include <fcntl.h>

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "channel_pool.h"
#include "preload/channel/target.h"
#include "preload/system/borrowed.h"
#include "preload/system/own_memory.h"
#include "preload/system/sys.h"

#define SLOT_WAIT_ONCE_NS 20000000
#define SLOT_WAIT_NS      UINT64_C(5000000000)

void collector_wake(void)
{
    atomic_fetch_add(&target_channel->attention, 1);
    if (!process_is_confined)
        sys_call3(SYS_futex, (long)&target_channel->attention, FUTEX_WAKE, 1);
}

/* The code of the hooks: see HOOK_CODE. */
extern const char first_hook_code[] __asm__("__start_hook_code")
    __attribute__((visibility("hidden")));
extern const char last_hook_code[] __asm__("__stop_hook_code")
    __attribute__((visibility("hidden")));

/* Fills in the facts that the system no longer has when the process is gone. */
static void slot_describe(struct process_slot *slot)
{
    slot->command_size = slot->directory_size = 0;
    if (process_is_confined || process_is_copy)
        return;
    size_t length = 0;
    const char *command = arguments(&length);
    if (command) {
        slot->command_size = (uint32_t)(length < COMMAND_SIZE ? length : COMMAND_SIZE);
        memcpy(slot->command, command, slot->command_size);
    }
    long size = sys_call3(SYS_getcwd, (long)slot->directory, sizeof slot->directory, 0);
    slot->directory_size = size > 0 ? (uint32_t)size - 1 : 0;
}

static bool try_slot(uint32_t index)
{
    uint32_t expected = SLOT_FREE;
    return atomic_compare_exchange_strong(&channel_process(&target_view, index)->state, &expected,
                                          SLOT_CLAIMED);
}

static uint32_t take_slot(void)
{
    for (;;) {
        uint32_t index = channel_take(&target_view, &target_channel->free_processes,
                                      CHANNEL_PROCESSES, channel_process_link);
        if (index == CHANNEL_NONE || try_slot(index))
            return index;
    }
}

/*
 * Takes a slot, and waits for one if need be: where processes come and go by the hundred, the
 * collector frees slots a moment later. Does not wait if another process has just waited in vain,
 * or in a confined process.
 */
static uint32_t wait_for_slot(void)
{
    struct channel *channel = target_channel;
    struct timespec once = {.tv_nsec = SLOT_WAIT_ONCE_NS};
    uint32_t index = take_slot();
    if (index != CHANNEL_NONE || process_is_confined || atomic_load(&channel->is_full))
        return index;
    atomic_fetch_add(&channel->slot_waiters, 1);
    for (uint64_t end = sys_clock() + SLOT_WAIT_NS;;) {
        uint32_t freed = atomic_load(&channel->slots_freed);
        atomic_store(&channel_is_short, false);
        index = take_slot();
        if (index != CHANNEL_NONE || atomic_load(&channel_is_short) || collector_is_gone() ||
            sys_clock() >= end)
            break;
        collector_wake();
        sys_call6(SYS_futex, (long)&channel->slots_freed, FUTEX_WAIT, freed, (long)&once, 0, 0);
    }
    atomic_fetch_sub(&channel->slot_waiters, 1);
    if (index == CHANNEL_NONE)
        atomic_store(&channel->is_full, 1);
    return index;
}

/* The slot of a copy follows from its parent's: see channel_copy(). */
static uint32_t slot_for_copy(uint32_t process)
{
    return try_slot(channel_copy(process)) ? channel_copy(process) : CHANNEL_NONE;
}

static uint32_t slot_parent_pid(uint32_t parent)
{
    if (!process_is_confined && !process_asks_itself)
        return (uint32_t)sys_call3(SYS_getppid, 0, 0, 0);
    return parent != CHANNEL_NONE ? channel_process(&target_view, parent)->pid : 0;
}

/* Returns the slot that a process with this id has claimed before, if that is still known; else
   CHANNEL_NONE. */
static uint32_t slot_note_claim(uint32_t pid, uint32_t index)
{
    uint64_t claim = (uint64_t)pid << 32 | index;
    uint64_t before = atomic_exchange(&target_channel->claims[pid % CHANNEL_CLAIMS], claim);
    return before >> 32 == pid && before != claim ? (uint32_t)before : CHANNEL_NONE;
}

/*
 * Whether the image that has claimed the slot is in this process still. If so, it is an emulator
 * and runs this one; else this one was executed in its place. The collector may look only when the
 * process is gone and has neither image. The memory is read as the system has it: an emulator may
 * give the program other addresses.
 */
static bool slot_is_beside(uint32_t index)
{
    uint64_t word = 0;
    if (index == CHANNEL_NONE || index > CHANNEL_SLOTS) /* another process may write anything */
        return false;
    const struct process_slot *slot = channel_process(&target_view, index);
    if (!slot)
        return false;
    long file =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return false;
    long size = sys_call6(SYS_pread64, file, (long)&word, sizeof word, (long)slot->mark, 0, 0);
    sys_call3(SYS_close, file, 0, 0);
    return size == sizeof word && word == slot->sequence;
}

/* Returns the flags of the process's origin for its slot. A confined process is a fork. */
static uint32_t slot_origin_flags(uint32_t parent, uint32_t before)
{
    uint32_t elsewhere = process_is_elsewhere ? PROCESS_ELSEWHERE : 0;
    if (parent != CHANNEL_NONE)
        return PROCESS_FORKED | elsewhere;
    return (slot_is_beside(before) ? PROCESS_GUEST : 0) | elsewhere;
}

/* Sequences of this process; in a fork's child they are the parent's until it has its own slot. */
static uint64_t image_sequence;
static _Atomic uint64_t heaps_sequence;

void slot_note_heaps(uint64_t sequence)
{
    uint64_t newest = atomic_load(&heaps_sequence);
    while (sequence > newest && !atomic_compare_exchange_weak(&heaps_sequence, &newest, sequence))
        ;
}

static _Atomic uint32_t kept_notes;

void slot_keep_notes(uint32_t notes)
{
    atomic_fetch_or(&kept_notes, notes);
}

void slot_await_seen(uint32_t index)
{
    struct timespec once = {.tv_nsec = SLOT_WAIT_ONCE_NS};
    struct process_slot *slot = channel_process(&target_view, index);
    struct patience patience = {0};
    while (atomic_load(&slot->seen_pid) == 0 && atomic_load(&slot->state) == SLOT_READY &&
           !collector_is_gone() &&
           !collector_has_stalled(&patience, sys_clock(), COLLECTOR_STALL_NS))
        sys_call6(SYS_futex, (long)&slot->seen_pid, FUTEX_WAIT, 0, (long)&once, 0, 0);
}

uint32_t slot_claim(uint32_t pid, uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps)
{
    uint32_t index = process_is_copy ? slot_for_copy(parent) : wait_for_slot();
    if (index == CHANNEL_NONE)
        return index;
    struct process_slot *slot = channel_process(&target_view, index);
    slot->pid = pid;
    atomic_store(&slot->seen_pid, 0);
    slot->parent_pid = slot_parent_pid(parent);
    slot->parent = parent;
    slot->flags = slot_origin_flags(parent, slot_note_claim(pid, index));
    slot->parent_sequence = parent_sequence;
    slot->parent_steps = parent_steps;
    slot->parent_image = parent != CHANNEL_NONE ? image_sequence : 0;
    slot->heaps_sequence = parent != CHANNEL_NONE ? atomic_load(&heaps_sequence) : 0;
    slot->sequence = image_sequence = atomic_fetch_add(&target_channel->sequence, 1) + 1;
    slot->clock = atomic_load_explicit(&target_channel->clock, memory_order_relaxed);
    atomic_store(&slot->notes, process_is_copy ? 0 : atomic_load(&kept_notes));
    atomic_store(&slot->log, CHANNEL_NONE);
    atomic_store(&slot->lost, 0);
    if (!process_is_copy) {
        struct snapshot_request *request = channel_request(&target_view, index);
        request->own_memory = (uintptr_t)&own_memory;
        borrowed_publish(&request->borrowed);
        atomic_store(&request->state, SNAPSHOT_NONE);
    }
    target_on->mark = slot->sequence;
    slot->mark = (uintptr_t)&target_on->mark;
    slot->hooks_begin = (uintptr_t)first_hook_code;
    slot->hooks_end = (uintptr_t)last_hook_code;
    slot_describe(slot);
    atomic_store_explicit(&slot->state, SLOT_READY, memory_order_release);
    return index;
}

/*
 * Gets a descriptor of the channel where no path leads to it any more: see struct loan. The child
 * of a vfork may run this, in its parent's memory: all data is on the stack.
 */

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
    if (!loan)
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

enum {
    WAIT_ONCE_NS = 20 * 1000 * 1000,
    WAIT_TIMES = 3000,   /* a minute of a collector that works but frees no chunk */
    SPINS_MAX = 1 << 27, /* about as long as COLLECTOR_STALL_NS */
};

bool collector_is_gone(void)
{
    return atomic_load(&target_channel->stopped) != 0 ||
           (!process_is_elsewhere &&
            sys_call3(SYS_kill, target_channel->collector_pid, 0, 0) == -ESRCH);
}

/* Takes a free chunk in place of a full one; that then counts for the backlog. Small chunks do not
 * count: each chain has at most one. */
static uint32_t channel_exchange_chunk(uint32_t full, size_t words)
{
    struct channel *channel = target_channel;
    bool is_small = full == CHANNEL_NONE && words <= channel_chunk_words(1);
    bool counts = full != CHANNEL_NONE && !channel_chunk_is_small(full);
    if (counts && atomic_fetch_add(&channel->backlog, 1) >= CHANNEL_BACKLOG) {
        atomic_fetch_sub(&channel->backlog, 1);
        return CHANNEL_NONE;
    }
    uint32_t index = channel_take_chunk(&target_view, channel, is_small);
    if (index != CHANNEL_NONE)
        channel_chunk(&target_view, index)->counts = 0;
    if (counts && index != CHANNEL_NONE)
        channel_chunk(&target_view, full)->counts = 1;
    else if (counts)
        atomic_fetch_sub(&channel->backlog, 1);
    return index;
}

/* Whether the collector takes no more records of this process; it then stops recording. */
static bool channel_is_chunk_unwanted(void)
{
    const struct process_slot *slot = channel_process(&target_view, process_index());
    bool refused = atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_REFUSED;
    if (!refused && !atomic_load(&target_channel->stopped))
        return false;
    target_on->refused = refused;
    target_on->on = 0;
    return true;
}

bool collector_has_stalled(struct patience *patience, uint64_t now, uint64_t limit)
{
    uint32_t progress = atomic_load_explicit(&target_channel->heartbeat, memory_order_relaxed) +
                        atomic_load_explicit(&target_channel->freed, memory_order_relaxed);
    uint64_t passed = now - patience->looked;
    if (progress != patience->progress || patience->looked == 0)
        *patience = (struct patience){.progress = progress};
    else /* whoever did not look for long may have been stopped together with the collector */
        patience->waited += passed < limit / 4 ? passed : limit / 4;
    patience->looked = now;
    return patience->waited > limit;
}

/* Waits for a chunk without a system call, as long as the collector frees some. */
static uint32_t channel_spin_for_chunk(uint32_t full, size_t words)
{
    const struct channel *channel = target_channel;
    for (int i = 0; i < WAIT_TIMES; i++) {
        uint32_t freed = atomic_load(&channel->freed);
        uint32_t index = channel_exchange_chunk(full, words);
        if (index != CHANNEL_NONE)
            return index;
        struct patience patience = {0};
        for (uint64_t spin = 1; atomic_load(&channel->freed) == freed; spin++) {
            if (collector_has_stalled(&patience, spin, SPINS_MAX) || channel_is_chunk_unwanted())
                return CHANNEL_NONE;
            __builtin_ia32_pause();
        }
    }
    return CHANNEL_NONE;
}

static uint32_t channel_sleep_for_chunk(uint32_t full, size_t words)
{
    struct channel *channel = target_channel;
    uint32_t index = CHANNEL_NONE;
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    struct patience patience = {0};
    atomic_fetch_add(&channel->waiters, 1);
    for (int i = 0; i < WAIT_TIMES; i++) {
        uint32_t freed = atomic_load(&channel->freed);
        atomic_store(&channel_is_short, false);
        index = channel_exchange_chunk(full, words);
        if (index != CHANNEL_NONE || atomic_load(&channel_is_short))
            break;
        if (collector_is_gone())
            atomic_store(&channel->stopped, 1);
        if (channel_is_chunk_unwanted() ||
            collector_has_stalled(&patience, sys_clock(), COLLECTOR_STALL_NS))
            break;
        collector_wake();
        sys_call6(SYS_futex, (long)&channel->freed, FUTEX_WAIT, freed, (long)&once, 0, 0);
    }
    atomic_fetch_sub(&channel->waiters, 1);
    return index;
}

uint32_t chunk_wait(uint32_t full, size_t words, bool *starving)
{
    if (channel_is_chunk_unwanted())
        return CHANNEL_NONE;
    uint32_t index = channel_exchange_chunk(full, words);
    if (index == CHANNEL_NONE && !*starving)
        index = process_is_confined ? channel_spin_for_chunk(full, words)
                                    : channel_sleep_for_chunk(full, words);
    *starving = index == CHANNEL_NONE;
    return index;
}
