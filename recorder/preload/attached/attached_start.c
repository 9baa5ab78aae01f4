/* SPDX-License-Identifier: MIT */
/* Begins to record a process that runs, as the recorder has ordered. */
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
