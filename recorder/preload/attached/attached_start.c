/* SPDX-License-Identifier: MIT */
/*
 * Begins to record a process that runs, as the recorder has ordered, and handles the signals that
 * end it. A hook of sigaction() does not show the handler, though all functions of the C library
 * that set an action call it. It is put there and taken away by system calls.
 */
#include "preload/attached/attached_parts.h"

#include <fcntl.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>

#include "preload/channel/target.h"
#include "preload/end/fatal_signal.h"
#include "preload/process/process_begin.h"
#include "preload/system/borrowed.h"
#include "preload/system/own_memory.h"
#include "preload/system/sys.h"
#include "preload/threads/stale_stack.h"

extern const unsigned char attached_run[];
extern const struct attached_hook first_hook __asm__("__start_patched_hooks")
    __attribute__((visibility("hidden")));
extern const struct attached_hook last_hook __asm__("__stop_patched_hooks")
    __attribute__((visibility("hidden")));

uint64_t stale_key;
uint32_t stale_id_field;

/* Signals that the thread had blocked. */
static unsigned long mask_before;

/* The floating-point registers of the thread; code of the C library may change them. */
__attribute__((used)) static alignas(64) unsigned char attached_floats[512];

/*
 * Runs attached_start() in a thread that was stopped anywhere. The stack has a struct
 * borrowed_frame: the thread returns to where it was by it even if the recorder has died.
 */
__asm__(".pushsection .text.borrowed, \"ax\", @progbits\n"
        "attached_run:\n"
        "    cld\n"
        "    pushq %rbx\n"
        "    movq %rsp, %rbx\n"
        "    andq $-16, %rsp\n"
        "    fxsave64 attached_floats(%rip)\n"
        "    call attached_start\n"
        "    fxrstor64 attached_floats(%rip)\n"
        "    call attached_wait\n"
        "    movq %rbx, %rsp\n"
        "    popq %rbx\n"
        "    movl $39, %eax\n" /* SYS_getpid */
        "    jmp borrowed_call\n"
        ".popsection\n");
_Static_assert(SYS_getpid == 39, "as in attached_run above");

struct attached attached = {
    .magic = ATTACHED_MAGIC,
    .hooks = (uintptr_t)&first_hook,
    .hooks_end = (uintptr_t)&last_hook,
    .run = (uintptr_t)attached_run,
    .own_memory = (uintptr_t)&own_memory,
    .borrowed = BORROWED_CODE,
};

bool process_attach(void)
{
    const char *place = strchr(attached.place, '=');
    bool is_mapped = channel_attach_file(attached.file, place ? place + 1 : "");
    sys_call3(SYS_close, attached.file, 0, 0);
    attached.file = -1;
    attached.channel = (uintptr_t)target_channel;
    if (!is_mapped || !process_map_on_page())
        return false;
    own_memory_add(attached.begin, attached.end - attached.begin);
    arguments_set(attached.command, attached.command_size);
    /* Earlier calls of the program are not known. */
    process_note(NOTE_USABLE_SIZES | NOTE_STARTED);
    return process_begin(CHANNEL_NONE, 0, 0);
}

/* All signals are blocked: a handler would run on this stack, and call hooks. */
void attached_start(void)
{
    unsigned long all = ~0UL;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask_before, sizeof all, 0, 0);
    stale_key = attached.key;
    stale_id_field = attached.id_field;
    attached.records = process_records();
    if (attached.records != 0)
        attached_live_begin();
    if (attached.is_filtered != 0) {
        thread_id(); /* finds where the C library has it */
        process_confine();
    } else if (attached.records != 0) {
        fatal_watch();
    }
}

/* Says that it is over: from here on the recorder may take the thread away at any moment, and sets
 * its plain registers only. No code of the C library may run here. */
void attached_wait(void)
{
    struct timespec second = {.tv_sec = 1};
    __atomic_store_n(&attached.over, BORROWED_RUN_OVER, __ATOMIC_RELEASE);
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask_before, 0, sizeof mask_before, 0, 0);
    /* A call that the system would have to know how to go on with, as it has to with the one that
     * the thread may have been stopped in, would take the place of that. This one is none. */
    sys_call6(SYS_ppoll, 0, 0, (long)&second, 0, 0, 0);
}

/* Programs that are executed load the other library. */
const char *process_library(void)
{
    return attached.preload[0] != '\0' ? strchr(attached.preload, '=') + 1 : NULL;
}

const char *process_preload(void)
{
    return attached.preload[0] != '\0' ? attached.preload : NULL;
}

const char *process_channel(void)
{
    return attached.place[0] != '\0' ? attached.place : NULL;
}

enum { RESTORER = 0x04000000 /* SA_RESTORER: the C library does not declare it */ };

/* Where the recorder's handler returns to. */
void attached_return(void) __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".type attached_return, @function\n"
        "attached_return:\n"
        "    movq $15, %rax\n"
        "    syscall\n"
        ".size attached_return, .-attached_return\n"
        ".popsection\n");
_Static_assert(SYS_rt_sigreturn == 15, "as in attached_return above");

static struct sys_sigaction attached_to_system(const struct sigaction *action)
{
    struct sys_sigaction system = {.handler = action->sa_handler,
                                   .flags = (unsigned)action->sa_flags,
                                   .restorer = action->sa_restorer};
    memcpy(&system.mask, &action->sa_mask, sizeof system.mask);
    if (fatal_is_own(action)) {
        system.flags |= RESTORER;
        system.restorer = attached_return;
    }
    return system;
}

static struct sigaction attached_of_system(const struct sys_sigaction *system)
{
    struct sigaction action = {.sa_handler = system->handler,
                               .sa_flags = (int)system->flags,
                               .sa_restorer = system->restorer};
    memcpy(&action.sa_mask, &system->mask, sizeof system->mask);
    return action;
}

/* Sets and gets an action without the C library. */
static int attached_set_action(int number, const struct sigaction *now, struct sigaction *before)
{
    struct sys_sigaction set = {0}, was = {0};
    if (now)
        set = attached_to_system(now);
    long result = sys_call6(SYS_rt_sigaction, number, now ? (long)&set : 0, (long)&was,
                            sizeof set.mask, 0, 0);
    if (result == 0 && before)
        *before = attached_of_system(&was);
    return (int)result;
}

sigaction_function *fatal_real_sigaction(void)
{
    return attached_set_action;
}

void fatal_take_place(int number)
{
    struct sigaction action;
    if (!fatal_is_watched(number) || attached_set_action(number, fatal_action, &action) != 0)
        return;
    if (action.sa_handler != SIG_DFL) { /* the program has one, or another thread has set it */
        if (!fatal_is_own(&action))
            attached_set_action(number, &action, NULL);
        return;
    }
    struct sys_sigaction system = attached_to_system(&action);
    memcpy(&attached.defaults[number], &system, sizeof system);
}
_Static_assert(sizeof(struct sys_sigaction) == sizeof(struct attached_action), "as the system's");

/* The child of a vfork has actions of its own, but shares its memory. */
PATCHED_IN(ATTACHED_IN_LIBC, int, sigaction, 3,
           (int number, const struct sigaction *action, struct sigaction *before,
            int (*real_sigaction)(int, const struct sigaction *, struct sigaction *)))
{
    struct sigaction own_before;
    if (!fatal_is_watched(number) || (action && fatal_is_own(action)))
        return real_sigaction(number, action, before);
    bool becomes_default = action && action->sa_handler == SIG_DFL;
    bool is_own = process_is_own();
    attached_depth += is_own;
    int result = real_sigaction(number, action, &own_before);
    if (result == 0 && fatal_is_own(&own_before)) {
        struct sys_sigaction system;
        memcpy(&system, &attached.defaults[number], sizeof system);
        own_before = attached_of_system(&system);
    }
    if (result == 0 && becomes_default && is_own)
        fatal_take_place(number);
    attached_depth -= is_own;
    if (result == 0 && before)
        *before = own_before;
    return result;
}
