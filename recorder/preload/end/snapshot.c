/* SPDX-License-Identifier: MIT */
/* Asks the collector for a snapshot of this process, and waits until it is taken. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <sys/prctl.h>

#include <ttdtrace/definitions.h>
#include <ttdtrace/snapshot.h>

#include "preload/end/exit_end.h"
#include "preload/end/fatal_signal.h"
#include "preload/system/sys.h"
#include "preload/unwind/unwind.h"
#include "preload/system/own_memory.h"

/* A thread looks around so often at first, and less often later: thousands may wait at once, and
 * take the processors from the collector otherwise. */
#define WAIT_ONCE_NS 20000000
#define WAIT_LONG_NS 160000000
/* The collector limits the time that it takes for each of those that wait; they are given up once
 * it has answered none of them for so long, or after so long in all. */
#define WAIT_ANSWER_NS UINT64_C(20000000000)
#define WAIT_NS        UINT64_C(60000000000)
/* A signal that asks for the end of a process that ends anyway says nothing new for so long:
 * timeout(1) signals the program and its group, and ttdrecord passes it on; a pool asks its
 * workers to exit, and then signals them. */
#define WISH_NS UINT64_C(1000000000)
/* Time between two looks that counts as waiting, at most: a thread that was stopped meanwhile has
 * not waited. */
#define LOOK_MAX_NS UINT64_C(1000000000)

/* WAIT_NS and COLLECTOR_STALL_NS in looks, about, where no system call may be made. */
#define SPINS_ALL     (UINT64_C(1) << 31)
#define SPINS_STALLED (UINT64_C(1) << 27)

/* Bytes below the stack pointer that a function may use. */
enum { RED_ZONE = 128 };

/* Returns the address that functions started by makecontext() return to: that function has no
 * name. */
static uintptr_t snapshot_find_coroutine_start(void)
{
    static ucontext_t context;
    static uintptr_t stack[64];
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof stack;
    makecontext(&context, (void (*)(void))snapshot_find_coroutine_start, 0);
    uintptr_t address = (uintptr_t)context.uc_mcontext.gregs[REG_RSP];
    bool is_within = address >= (uintptr_t)stack && address < (uintptr_t)stack + sizeof stack;
    return is_within ? *(const uintptr_t *)address : 0;
}

static const void *snapshot_module_of(uintptr_t address)
{
    struct dl_find_object object;
    return _dl_find_object((void *)address, &object) == 0 ? object.dlfo_map_start : NULL;
}

/* Whether the code is of the C library, of the loader or of this library. */
static bool snapshot_is_of_system(uintptr_t address)
{
    const void *module = snapshot_module_of(address);
    return module && (module == snapshot_module_of((uintptr_t)gnu_get_libc_version) ||
                      module == snapshot_module_of((uintptr_t)_dl_find_object) ||
                      module == snapshot_module_of((uintptr_t)snapshot_ask));
}

static uint32_t snapshot_list_frames(struct unwinder *unwinder, const struct step_regs *regs,
                                     struct snapshot_request *request)
{
    struct stack_list list = {.max = SNAPSHOT_FRAMES,
                              .outermost = SNAPSHOT_FRAMES_OUTERMOST,
                              .pcs = request->frame_pcs,
                              .cfas = request->frame_cfas};
    uint32_t count = unwinder_list(unwinder, regs, &list);
    if (list.left_out != 0)
        request->frame_pcs[list.gap] = TTD_FRAMES_LEFT_OUT(list.left_out);
    return count;
}

/* Says where the thread's stack counts from, and gives its registers there. */
static void snapshot_describe_thread(struct unwinder *unwinder, struct snapshot_request *request)
{
    struct step_regs regs;
    bool is_found = unwinder_find(unwinder, snapshot_is_of_system, &regs);
    request->tid = process_is_confined ? thread_id() : (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
    __asm__("mov %%fs:0, %0" : "=r"(request->thread_pointer));
    request->coroutine_start = snapshot_find_coroutine_start();
    request->stack_pointer = regs.reg[CFI_RSP];
    request->registers_valid = is_found ? regs.known : 0;
    for (int i = 0; i < SNAPSHOT_REGISTERS; i++)
        request->registers[i] = (request->registers_valid >> i & 1) != 0 ? regs.reg[i] : 0;
    request->frame_count = is_found ? snapshot_list_frames(unwinder, &regs, request) : 0;
}

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/* Whether a signal waits that somebody ends the program by. */
static bool snapshot_is_unwanted(uint64_t mask)
{
    uint64_t pending = 0;
    sys_call3(SYS_rt_sigpending, (long)&pending, sizeof pending, 0);
    pending &= ~mask;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sys_sigaction action = {0};
        if ((pending >> (ends[i] - 1) & 1) == 0)
            continue;
        sys_call6(SYS_rt_sigaction, ends[i], 0, (long)&action, sizeof action.mask, 0, 0);
        if (action.handler != SIG_IGN) /* kept all the same while it is blocked */
            return true;
    }
    return false;
}

/* Takes away the signals that somebody ends the program by: it dies of another one. */
static void snapshot_take_wishes(uint64_t mask)
{
    static const struct timespec at_once;
    uint64_t set = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        set |= UINT64_C(1) << (ends[i] - 1);
    set &= ~mask;
    while (sys_call6(SYS_rt_sigtimedwait, (long)&set, 0, (long)&at_once, sizeof set, 0, 0) > 0)
        ;
}

/* How long was waited; `unanswered`: since the collector was last seen to have answered anybody. */
struct wait {
    uint64_t looked;
    uint64_t all, unanswered;
    uint32_t answers;
    struct patience patience;
};

static bool snapshot_is_late(struct wait *wait, uint64_t now)
{
    uint32_t answers = atomic_load_explicit(&target_channel->answers, memory_order_relaxed);
    uint64_t passed = wait->looked != 0 ? now - wait->looked : 0;
    passed = passed < LOOK_MAX_NS ? passed : LOOK_MAX_NS;
    wait->all += passed;
    wait->unanswered = answers == wait->answers ? wait->unanswered + passed : 0;
    wait->answers = answers;
    wait->looked = now;
    return wait->all >= WAIT_NS || wait->unanswered >= WAIT_ANSWER_NS ||
           collector_has_stalled(&wait->patience, now, COLLECTOR_STALL_NS);
}

/* Waits for an answer. Returns it, or SNAPSHOT_NONE if the request was withdrawn. */
static uint32_t snapshot_await(struct snapshot_request *request, uint64_t mask)
{
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    struct wait wait = {0};
    uint32_t state;
    while ((state = atomic_load(&request->state)) == SNAPSHOT_ASKED) {
        sys_call6(SYS_futex, (long)&request->state, FUTEX_WAIT, SNAPSHOT_ASKED, (long)&once, 0, 0);
        if (atomic_load(&request->state) != SNAPSHOT_ASKED)
            continue;
        once.tv_nsec = once.tv_nsec < WAIT_LONG_NS ? once.tv_nsec * 2 : WAIT_LONG_NS;
        bool has_waited = snapshot_is_late(&wait, sys_clock());
        if (request->signal != 0 && wait.all < WISH_NS)
            snapshot_take_wishes(mask);
        bool is_unwanted = wait.all >= WISH_NS && snapshot_is_unwanted(mask);
        if (!has_waited && !collector_is_gone() && !is_unwanted)
            continue;
        if (!atomic_compare_exchange_strong(&request->state, &state, SNAPSHOT_NONE))
            continue;
        if (has_waited)
            process_note(NOTE_SNAPSHOT_LATE);
        return SNAPSHOT_NONE;
    }
    return state;
}

/* Waits as snapshot_await() does, without a system call. */
static uint32_t snapshot_await_confined(struct snapshot_request *request)
{
    struct patience patience = {0};
    uint32_t state;
    for (uint64_t spin = 1; (state = atomic_load(&request->state)) == SNAPSHOT_ASKED; spin++) {
        bool is_late = spin > SPINS_ALL || collector_has_stalled(&patience, spin, SPINS_STALLED);
        if ((is_late || target_on->on == 0 || atomic_load(&target_channel->stopped) != 0) &&
            atomic_compare_exchange_strong(&request->state, &state, SNAPSHOT_NONE))
            return SNAPSHOT_NONE;
        __builtin_ia32_pause();
    }
    return state;
}

static uint32_t snapshot_ask_once(struct snapshot_request *request, uint64_t mask)
{
    atomic_store_explicit(&request->state, SNAPSHOT_ASKED, memory_order_release);
    collector_wake();
    return process_is_confined ? snapshot_await_confined(request) : snapshot_await(request, mask);
}

static void snapshot_ask_collector(struct snapshot_request *request, uint64_t mask)
{
    request->has_permitted = 0;
    if (snapshot_ask_once(request, mask) != SNAPSHOT_DENIED || process_is_confined)
        return;
    /* Yama permits it to ancestors only, and the process may be the child of an ended one. */
    bool is_permitted = sys_call3(SYS_prctl, PR_SET_PTRACER, target_channel->collector_pid, 0) == 0;
    request->has_permitted = 1;
    snapshot_ask_once(request, mask);
    if (is_permitted)
        sys_call3(SYS_prctl, PR_SET_PTRACER, 0, 0);
}

/* The collector sees the memory of an emulator, not its guest's. */
static bool snapshot_is_guest(void)
{
    return channel_process(&target_view, process_index())->flags & PROCESS_GUEST;
}

void snapshot_ask(struct thread *thread, uint64_t mask)
{
    struct snapshot_request *request = channel_request(&target_view, process_index());
    uint32_t contents = target_channel->exit_contents;
    uint32_t state = ASKING_NOT;
    struct unwinder *unwinder = thread_unwinder(thread);
    if (contents == 0 || snapshot_is_guest() || !unwinder ||
        !atomic_compare_exchange_strong(&target_on->asking, &state, ASKING_NOW))
        return;
    request->reason = TTD_SNAPSHOT_EXIT;
    request->contents = contents;
    request->signal = 0;
    snapshot_describe_thread(unwinder, request);
    snapshot_ask_collector(request, mask);
    atomic_store(&target_on->asking, ASKING_OVER);
}

/* Begins to ask. If another thread does, waits until it has been answered, so that the process does
 * not die meanwhile, and returns false. A process that has asked at its end asks again only if it
 * fails after that. */
static bool snapshot_begin_to_ask(bool is_fault)
{
    struct timespec once = {.tv_nsec = WAIT_ONCE_NS};
    uint32_t state = atomic_load(&target_on->asking);
    while (state == ASKING_NOT || (is_fault && state == ASKING_OVER))
        if (atomic_compare_exchange_weak(&target_on->asking, &state, ASKING_NOW))
            return true;
    for (uint64_t i = 0;
         atomic_load(&target_on->asking) == ASKING_NOW && i < WAIT_NS / WAIT_ONCE_NS; i++)
        sys_call6(SYS_futex, (long)&target_on->asking, FUTEX_WAIT, ASKING_NOW, (long)&once, 0, 0);
    return false;
}

/* Sets the registers that were interrupted, by their DWARF numbers. */
static void snapshot_take_registers(const ucontext_t *context, struct step_regs *regs)
{
    static const uint8_t places[CFI_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                             REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                             REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < CFI_REGS; i++)
        regs->reg[i] = (uintptr_t)context->uc_mcontext.gregs[places[i]];
    regs->known = (1u << CFI_REGS) - 1;
}

/* After a jump to an address that holds no code, steps to the caller: the processor has just pushed
 * where it goes on. Returns false if the thread failed in another way, or if there is no such
 * address, as after a return to a bad one. */
static bool snapshot_leave_bad_jump(const siginfo_t *info, struct step_regs *regs)
{
    uintptr_t sp = regs->reg[CFI_RSP], caller;
    bool is_fault = info->si_code > 0 && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS);
    if (!is_fault || (uintptr_t)info->si_addr != regs->reg[CFI_RA] || sp % sizeof caller != 0 ||
        !unwind_page_readable(sp))
        return false;
    memcpy(&caller, (const void *)sp, sizeof caller);
    if (!snapshot_module_of(caller - 1))
        return false;
    regs->reg[CFI_RA] = caller;
    regs->reg[CFI_RSP] = sp + sizeof caller;
    return true;
}

/* One unwinder for signals: more only while several threads need one at once. */
static _Atomic(struct unwinder *) spare_unwinder;

bool snapshot_is_called_by(const ucontext_t *context, uintptr_t begin, uintptr_t end)
{
    enum { FRAMES = 8 };
    uint64_t pcs[FRAMES], cfas[FRAMES];
    struct stack_list list = {.max = FRAMES, .outermost = 1, .pcs = pcs, .cfas = cfas};
    struct step_regs regs;
    struct unwinder *unwinder = atomic_exchange(&spare_unwinder, NULL);
    if (!unwinder)
        unwinder = unwind_pages_used(unwinder_size());
    if (!unwinder)
        return false;
    unwinder_init(unwinder, 0, 0, false);
    snapshot_take_registers(context, &regs);
    regs.reg[CFI_RA]++; /* as in stacks: see unwind.h */
    uint32_t count = unwinder_list(unwinder, &regs, &list);
    atomic_store(&spare_unwinder, unwinder);
    for (uint32_t i = 1; i + 1 < count; i++)
        if (pcs[i] > begin && pcs[i] <= end)
            return true;
    return false;
}

void snapshot_tell_signal(int number, const siginfo_t *info, const ucontext_t *context)
{
    struct snapshot_request *request = channel_request(&target_view, process_index());
    uint64_t mask;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    /* The thread's own may be in use. */
    struct unwinder *unwinder = snapshot_is_guest() ? NULL : unwind_pages_used(unwinder_size());
    bool is_fault = fatal_is_fault(number);
    if (!unwinder || !snapshot_begin_to_ask(is_fault))
        return;
    unwinder_init(unwinder, 0, 0, false);
    struct step_regs regs;
    snapshot_take_registers(context, &regs);
    request->reason = TTD_SNAPSHOT_SIGNAL;
    request->contents = target_channel->exit_contents;
    request->signal = (uint32_t)number;
    request->code = info->si_code;
    request->fault_address = is_fault && info->si_code > 0 ? (uintptr_t)info->si_addr : 0;
    request->tid = (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
    __asm__("mov %%fs:0, %0" : "=r"(request->thread_pointer));
    request->coroutine_start = snapshot_find_coroutine_start();
    request->stack_pointer = regs.reg[CFI_RSP] - RED_ZONE;
    request->registers_valid = regs.known;
    for (int i = 0; i < SNAPSHOT_REGISTERS; i++)
        request->registers[i] = regs.reg[i];
    if (!snapshot_leave_bad_jump(info, &regs))
        regs.reg[CFI_RA]++; /* as in stacks: see unwind.h */
    request->frame_count = snapshot_list_frames(unwinder, &regs, request);
    snapshot_ask_collector(request, mask);
    atomic_store(&target_on->asking, ASKING_OVER);
}
