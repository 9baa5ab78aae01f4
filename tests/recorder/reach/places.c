/* SPDX-License-Identifier: MIT */
/* The places of pointers: thread-local storage, the allocator's own memory, the kernel, registers.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"

static __thread void *local;

CASE(thread_local_storage)
{
    local = block(40);
    lose(&local);
}

CASE(thread_local_interior)
{
    local = (char *)block(40) + 8;
    lose(&local);
}

static pthread_key_t key(int number)
{
    pthread_key_t result = 0;

    for (int i = 0; i < number; i++)
        if (pthread_key_create(&result, NULL) != 0)
            abort();
    return result;
}

CASE(thread_specific)
{
    pthread_setspecific(key(1), block(40));
}

CASE(thread_specific_many)
{
    pthread_setspecific(key(200), block(40));
}

/* Keys after the 32nd are in a block of the C library's, which this case has without a pointer. */
CASE(thread_specific_many_nothing)
{
    static char data[40];

    pthread_setspecific(key(200), data);
}

/* Grows a block into what the allocator has granted beyond its size. */
CASE(usable_size)
{
    char *memory = block(48);

    kept[0] = memory;
    if (malloc_usable_size(memory) >= 56)
        put(memory, 48, block(40));
}

/* The last word begins within the size. */
CASE(usable_size_of_part)
{
    char *memory = block(20);

    kept[0] = memory;
    if (malloc_usable_size(memory) >= 24)
        put(memory, 16, block(40));
}

CASE(usable_size_lost)
{
    char *memory = block(48);

    if (malloc_usable_size(memory) >= 56)
        put(memory, 48, block(40));
    lose(memory);
}

CASE(program_break)
{
    uintptr_t middle = (uintptr_t)sbrk(1 << 20) + (512 << 10);

    put((void *)(middle / 16 * 16), 0, block(40));
}

/* Its memory lies between blocks of the C library's. */
CASE(program_break_between)
{
    void *memory;

    lose(block(8000));
    memory = sbrk(64);
    for (int i = 0; i < 40; i++)
        lose(block(10000));
    put(memory, 0, block(40));
}

/* Its memory has held a block of the C library's, which had pointed at the same one. */
CASE(program_break_given_back)
{
    void *target = block(40);
    size_t size = 100 << 10;
    void **holder = block(size);

    for (size_t i = 0; i < size / sizeof *holder; i++)
        holder[i] = target;
    free(holder);
    malloc_trim(0);
    holder = sbrk(16 << 10);
    memset(holder, 0, 16 << 10);
    holder[1000] = target;
}

enum { LOST = 500, FIRST = 2000 /* more than the allocator uses itself of what was released */ };

/* Loses blocks whose addresses are in a block that is released. */
static void lose_many(void)
{
    void **holder = block((FIRST + LOST) * sizeof *holder);

    for (int i = 0; i < LOST; i++)
        holder[FIRST + i] = block(1000);
    lose(block(24));
    free(holder);
}

/* The allocator cannot move the program break, and maps memory instead. */
static void block_program_break(void)
{
    uintptr_t end = ((uintptr_t)sbrk(0) + 4095) / 4096 * 4096;

    if (mmap((void *)end, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0) != (void *)end)
        abort();
}

CASE(program_break_blocked)
{
    lose(block(24));
    block_program_break();
    for (int i = 0; i < 40; i++) /* fills what the allocator has already */
        lose(block(10000));
    lose_many();
}

/* There, blocks are no roots, but hold what they hold. */
CASE(program_break_blocked_held)
{
    void **holder;

    block_program_break();
    for (int i = 0; i < 10; i++)
        lose(block(100000));
    holder = block(40);
    *holder = block(48);
    kept[0] = holder;
    for (int i = 0; i < 30; i++)
        lose(block(100000));
}

static void lose_in_thread(void *unused)
{
    (void)unused;
    lose_many();
}

CASE(arena_of_thread)
{
    run_thread(lose_in_thread, NULL);
}

/* Its memory has held blocks of the C library's, all of them released before the target is there,
 * and the library has memory behind it again. */
CASE(program_break_taken_over)
{
    enum { SIZE = 256 << 10, BLOCKS = 40 };
    void *holder = block(100 << 10);

    memset(holder, 1, 100 << 10);
    free(holder);
    malloc_trim(0);
    holder = sbrk(SIZE);
    memset(holder, 0, SIZE);
    put(holder, 64 << 10, block(40));
    for (int i = 0; i < BLOCKS; i++)
        lose(block(10000));
}

/* A block that is released has pointed at an earlier one at the same address. */
CASE(relic_of_earlier_block)
{
    enum { SIZE = 2000 };
    void *first = block(40);
    void **holder = block(SIZE);

    lose(block(24)); /* behind the holder: its memory stays apart */
    for (size_t i = 0; i < SIZE / sizeof *holder; i++)
        holder[i] = first;
    free(holder);
    free(first);
    lose(block(40));
}

/* The allocator has free memory in few of its lists, and none of the sizes of the last ones. */
CASE(program_break_behind_free_memory)
{
    enum { FREED = 8 /* a thread keeps 7 of a size for itself */ };
    static void *freed[FREED];

    for (int i = 0; i < FREED; i++) {
        freed[i] = block(40);
        lose(block(40));
    }
    for (int i = 0; i < FREED; i++)
        free(freed[i]);
    memset(freed, 0, sizeof freed);
    /* Has what was freed sorted into the lists, and ends where the heap ends. */
    free(block(131000));
    put(sbrk(4096), 0, block(56));
}

/* Returns the next larger size that the allocator has a list of free memory for. */
static size_t next_size(size_t size)
{
    if (size < 1000)
        return size + 16;
    return size + (size < 3072 ? 64 : size < 10752 ? 512 : size < 43000 ? 4096 : 32768);
}

/* The ends of these lists are addresses in the last bytes of the blocks before. */
CASE(lists_of_free_memory)
{
    enum { FREED = 8 /* a thread keeps 7 of a size for itself */ };
    static void *freed[1000];
    size_t count = 0;

    for (size_t size = 24; size < 120000; size = next_size(size)) {
        for (int i = 1; i < FREED; i++)
            freed[count++] = block(size);
        lose(block(24));
        freed[count++] = block(size);
    }
    lose(block(24));
    for (size_t i = 0; i < count; i++)
        free(freed[i]);
    memset(freed, 0, sizeof freed);
    free(block(120000)); /* has what was freed sorted into the lists */
}

/* Only the kernel knows. */
CASE(events_of_kernel)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = block(40)};
    int descriptors[2];

    if (pipe(descriptors) != 0 ||
        epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, descriptors[0], &event) != 0)
        abort();
}

/* The system alone has the pointer. */
static void NOINLINE set_signal_stack(size_t size)
{
    stack_t stack = {.ss_sp = block(size), .ss_size = size};

    if (sigaltstack(&stack, NULL) != 0)
        abort();
    stack.ss_sp = NULL;
    lose(&stack);
}

CASE(signal_stack)
{
    set_signal_stack(16384);
}

CASE(signal_stack_replaced)
{
    set_signal_stack(16384);
    set_signal_stack(32768);
}

CASE(signal_stack_disabled)
{
    const stack_t none = {.ss_flags = SS_DISABLE};

    set_signal_stack(16384);
    sigaltstack(&none, NULL);
}

static void NOINLINE hide_nothing(void)
{
    hidden = ~(uintptr_t)0;
}

CASE(register_callee_saved)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%r12\n\tnot %%r12\n\tand $-16, %%rsp\n\txor %%edi, %%edi\n\t"
                     "call _exit@PLT"
                     :
                     : "m"(hidden)
                     : "r12", "memory");
}

CASE(register_callee_saved_exit)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%r13\n\tnot %%r13\n\tand $-16, %%rsp\n\txor %%edi, %%edi\n\t"
                     "call exit@PLT"
                     :
                     : "m"(hidden)
                     : "r13", "memory");
}

/* In the rest of these, a thread waits in the kernel with the block in one place only. */
static volatile int is_placed;

#define PAUSE "movl $1, %1\n\t1: mov $34, %%eax\n\tsyscall\n\tjmp 1b"

#define THREAD(name, hide, place)                                                                  \
    static void *NOINLINE name##_thread(void *argument)                                            \
    {                                                                                              \
        hide();                                                                                    \
        clear_stack();                                                                             \
        __asm__ volatile("mov %0, %%rbx\n\tnot %%rbx\n\t" place "\n\t" PAUSE                       \
                         :                                                                         \
                         : "m"(hidden), "m"(is_placed)                                             \
                         : "rax", "rbx", "rcx", "r11", "memory");                                  \
        return argument;                                                                           \
    }                                                                                              \
    CASE(name)                                                                                     \
    {                                                                                              \
        pthread_t thread;                                                                          \
                                                                                                   \
        pthread_create(&thread, NULL, name##_thread, NULL);                                        \
        while (!is_placed)                                                                         \
            usleep(1000);                                                                          \
    }

THREAD(thread_register, hide_block, "")
THREAD(thread_top_of_stack, hide_block, "push %%rbx\n\txor %%ebx, %%ebx")
THREAD(thread_red_zone, hide_block, "mov %%rbx, -64(%%rsp)\n\txor %%ebx, %%ebx")
THREAD(thread_below_stack, hide_block, "mov %%rbx, -2048(%%rsp)\n\txor %%ebx, %%ebx")
THREAD(thread_nothing, hide_nothing, "")
THREAD(thread_nowhere, hide_block, "xor %%ebx, %%ebx")
