/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/*
 * A program whose stacks are hard to unwind, and harder to unwind from what the last stack was.
 * It is run under check_preload, built in several ways. Everything is driven by one seed.
 */

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KINDS    15

struct run {
    uint32_t seed;
    int budget;
    jmp_buf *back; /* where a longjmp may go */
};

typedef void action(struct run *r, int depth);

static action plain, with_alloca, with_vla, realigned, realigned_alloca, tail, recursing, jumping,
    many_registers, variadic_user, twin_a, twin_b, by_r13, by_far, by_pointer;

static action *const actions[KINDS] = {
    plain,  with_alloca,    with_vla,      realigned, realigned_alloca, tail,   recursing,  jumping,
    twin_a, many_registers, variadic_user, twin_b,    by_r13,           by_far, by_pointer,
};

/* In hostile_asm.S. */
void frame_r13(void (*fn)(void *), void *argument);
void frame_far(void (*fn)(void *), void *argument);
void frame_pointer_only(void (*fn)(void *), void *argument);
void frame_bp(void (*fn)(void *), void *argument, size_t size);
void shifted_bp(void (*fn)(void *), void *argument, size_t size);
void frame_odd(void (*fn)(void *), void *argument, size_t size);
void shifted_odd(void (*fn)(void *), void *argument, size_t size);
void frame_drap(void (*fn)(void *), void *argument, size_t size);
void shifted_drap(void (*fn)(void *), void *argument, size_t size);
void frame_moved(void (*fn)(void *), void *first, void *second);
void frame_r10(void);
void frame_plt(void);

/* In check_preload.c. */
extern const int unwind_check_loaded __attribute__((weak));

static void *volatile sink;

static uint32_t next(struct run *r)
{
    r->seed = r->seed * 1664525u + 1013904223u;
    return r->seed >> 8;
}

static NOINLINE void allocate(size_t n)
{
    void *p = malloc(n + 1);
    sink = p;
    free(p);
}

static NOINLINE void more(struct run *r, int depth)
{
    if (depth <= 0 || r->budget-- <= 0) {
        allocate(depth < 0 ? 1 : (size_t)depth);
        return;
    }
    actions[next(r) % KINDS](r, depth - 1);
    if (next(r) % 2 != 0)
        allocate(3);
}

static NOINLINE void plain(struct run *r, int depth)
{
    allocate(1);
    more(r, depth);
    allocate(2);
}

static NOINLINE void with_alloca(struct run *r, int depth)
{
    size_t n = 1 + next(r) % 300;
    char *p = alloca(n);
    memset(p, 1, n);
    allocate((size_t)p[n - 1]);
    more(r, depth);
    p = alloca(n);
    memset(p, 1, n);
    sink = p;
    more(r, depth);
}

static NOINLINE void with_vla(struct run *r, int depth)
{
    volatile size_t n = 1 + next(r) % 200;
    volatile char *p = __builtin_alloca_with_align(n, 256);
    p[0] = 1;
    allocate((size_t)p[0]);
    more(r, depth);
}

static NOINLINE void realigned(struct run *r, int depth)
{
    alignas(64) volatile char block[64];
    block[0] = (char)depth;
    allocate((uintptr_t)block % 64 + 5);
    more(r, depth);
    block[1] = block[0];
}

static NOINLINE void realigned_alloca(struct run *r, int depth)
{
    alignas(128) volatile char block[128];
    size_t n = 1 + next(r) % 100;
    volatile char *p = alloca(n);
    block[0] = (char)depth;
    p[0] = block[0];
    more(r, depth);
    allocate((size_t)p[0] + (uintptr_t)block % 128);
    if (next(r) % 2 != 0) {
        p = alloca(n);
        p[0] = 1;
        more(r, depth);
    }
}

static NOINLINE void tail(struct run *r, int depth)
{
    more(r, depth);
}

static NOINLINE void recurse(struct run *r, int n, int depth)
{
    allocate(1);
    if (n > 0)
        recurse(r, n - 1, depth);
    else
        more(r, depth);
    allocate(2);
}

static NOINLINE void recursing(struct run *r, int depth)
{
    recurse(r, (int)(next(r) % 9), depth);
}

static NOINLINE void jumping(struct run *r, int depth)
{
    jmp_buf here;
    jmp_buf *volatile outer = r->back;
    if (setjmp(here) == 0) {
        r->back = &here;
        more(r, depth);
        r->back = outer;
        if (outer && next(r) % 4 == 0)
            longjmp(*outer, 1);
        return;
    }
    r->back = outer;
    allocate(4);
}

/* Many callee-saved registers, rbp among them where it is not the frame pointer. */
static NOINLINE void many_registers(struct run *r, int depth)
{
    uint32_t a = next(r), b = next(r), c = next(r), d = next(r), e = next(r), f = next(r);
    allocate(a % 9);
    more(r, depth);
    allocate((a ^ b ^ c ^ d ^ e ^ f) % 9);
    more(r, depth - 1);
    allocate((a + b + c + d + e + f) % 9);
}

static NOINLINE void format(struct run *r, int depth, const char *text, ...)
{
    char line[64];
    __builtin_va_list ap;
    __builtin_va_start(ap, text);
    vsnprintf(line, sizeof(line), text, ap);
    __builtin_va_end(ap);
    allocate(strlen(line));
    more(r, depth);
}

static NOINLINE void variadic_user(struct run *r, int depth)
{
    format(r, depth, "%d %f %s", depth, 1.5, "x");
}

/* The same frame layout twice: the inner slots hold the same addresses, the outer ones do not. */
static NOINLINE void shared_inner(struct run *r, int depth)
{
    allocate(6);
    more(r, depth);
    allocate(7);
}

static NOINLINE void twin_a(struct run *r, int depth)
{
    shared_inner(r, depth);
    allocate(1);
}

static NOINLINE void twin_b(struct run *r, int depth)
{
    shared_inner(r, depth);
    allocate(1);
}

struct call {
    struct run *r;
    int depth;
};

static NOINLINE void called(void *argument)
{
    struct call *c = argument;
    allocate(1);
    more(c->r, c->depth);
    allocate(2);
}

static NOINLINE void by_r13(struct run *r, int depth)
{
    struct call c = {r, depth};
    frame_r13(called, &c);
    allocate(1);
}

static NOINLINE void by_far(struct run *r, int depth)
{
    struct call c = {r, depth};
    frame_far(called, &c);
    allocate(1);
}

static NOINLINE void by_pointer(struct run *r, int depth)
{
    struct call c = {r, depth};
    frame_pointer_only(called, &c);
    allocate(1);
}

static NOINLINE void allocates(void *argument)
{
    (void)argument;
    allocate(1);
    allocate(2);
}

/* Frames that look alike in all but one word; see hostile_asm.S. */
static NOINLINE void traps(void)
{
    static void (*const frames[])(void (*)(void *), void *, size_t) = {
        frame_bp, shifted_bp, frame_odd, shifted_odd, frame_drap, shifted_drap,
    };
    for (unsigned i = 0; i < 48; i++)
        frames[i / 8 % 3 * 2 + i % 2](allocates, NULL, 512);
    /* Again, but now they are what calls the allocator, and nothing else does in between. */
    void *blocks[48];
    for (unsigned i = 0; i < 48; i++)
        blocks[i] = malloc(1);
    for (unsigned i = 0; i < 48; i++)
        frames[i / 8 % 3 * 2 + i % 2](free, blocks[i], 512);
    frame_moved(free, malloc(1), malloc(2));
}

static NOINLINE void saves_rbp(void)
{
    allocate(1);
}

/* Its frame is wherever its caller's ends; that of what it calls is not. */
static NOINLINE void takes_up(uintptr_t to)
{
    char *p = alloca((uintptr_t)__builtin_frame_address(0) - to);
    sink = p;
    saves_rbp();
    p[0] = 1;
}

/*
 * Calls takes_up() twice, the second time farther in. All return addresses further in are the same,
 * in the same words, and so is the one of the first call, in a word that is stale by now: where
 * functions have frame pointers, only the saved rbp tells the stacks apart.
 */
static NOINLINE void moved_frame(void)
{
    uintptr_t to = ((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)15) - 4096;
    takes_up(to);
    char *p = alloca(256);
    sink = p;
    takes_up(to);
    p[0] = 1;
}

static void walk_about(uint32_t seed, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        struct run r = {.seed = seed + (uint32_t)i * 7919u, .budget = 60, .back = NULL};
        more(&r, (int)(next(&r) % 14));
    }
}

static void on_signal(int signal)
{
    struct run r = {.seed = (uint32_t)signal, .budget = 5, .back = NULL};
    allocate(1); /* raised synchronously, outside of malloc */
    more(&r, 4);
}

static NOINLINE void signalling(uint32_t seed)
{
    struct run r = {.seed = seed, .budget = 10, .back = NULL};
    raise(SIGUSR1);
    more(&r, 3);
    raise(SIGUSR2); /* on its own stack */
    more(&r, 2);
    __asm__ volatile("ud2"); /* an interrupted instruction, not a call */
    frame_r10();
    frame_plt();
    allocate(1);
}

static void on_illegal(int signal, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)info;
    on_signal(signal);
    u->uc_mcontext.gregs[REG_RIP] += 2;
}

static void signals(uint32_t seed, int rounds)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction a = {.sa_handler = on_signal};
    struct sigaction b = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    struct sigaction c = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &b, NULL);
    sigaction(SIGILL, &c, NULL);
    for (int i = 0; i < rounds; i++)
        signalling(seed + (uint32_t)i);
}

static ucontext_t coroutine, scheduler;

static void coroutine_main(void)
{
    for (uint32_t i = 0;; i++) {
        struct run r = {.seed = i, .budget = 12, .back = NULL};
        more(&r, 5);
        swapcontext(&coroutine, &scheduler);
        allocate(2);
    }
}

static void coroutines(uint32_t seed, int rounds)
{
    size_t size = 1 << 18;
    char *stack = malloc(size);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = size;
    makecontext(&coroutine, coroutine_main, 0);
    for (int i = 0; i < rounds; i++) {
        struct run r = {.seed = seed + (uint32_t)i, .budget = 12, .back = NULL};
        swapcontext(&scheduler, &coroutine);
        more(&r, 4);
    }
    free(stack);
}

static void *thread_main(void *argument)
{
    walk_about((uint32_t)(uintptr_t)argument, 25);
    return NULL;
}

static void threads(uint32_t seed)
{
    pthread_t t[3];
    for (uint32_t i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, thread_main, (void *)(uintptr_t)(seed + i));
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
}

/* A thread on a stack of ours, whose signal stack lies above it and goes away. */
#define HALF ((size_t)1 << 18)

static void *losing_signal_stack(void *argument)
{
    char *above = (char *)argument + HALF;
    stack_t alternate = {.ss_sp = above, .ss_size = HALF};
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&alternate, NULL);
    __asm__ volatile("int3"); /* this frame's registers are then kept up there, too */
    sigaltstack(&none, NULL);
    munmap(above, HALF);
    allocate(1);
    allocate(2);
    return NULL;
}

static void vanishing_stack(void)
{
    pthread_t t;
    pthread_attr_t attr;
    char *stack = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGTRAP, &a, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, HALF);
    pthread_create(&t, &attr, losing_signal_stack, stack);
    pthread_join(t, NULL);
    pthread_attr_destroy(&attr);
    munmap(stack, HALF);
}

/* Deeper than any stack that is reported, and back. */
static NOINLINE int deep(int n)
{
    volatile int here = n;
    if (n % 64 == 0)
        allocate(1);
    int result = n > 0 ? deep(n - 1) + here : 0;
    if (n % 64 == 0)
        allocate(2);
    return result;
}

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    if (!&unwind_check_loaded)
        return 2; /* nothing would be tested */
    traps();
    walk_about(seed, 40);
    moved_frame();
    signals(seed, 10);
    vanishing_stack();
    coroutines(seed, 20);
    threads(seed);
    return deep(5000) == 5000 * 5001 / 2 ? 0 : 1;
}
