/* SPDX-License-Identifier: MIT */
/* The places of pointers: thread-local storage, registers, mappings, buffers, coroutines. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

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

CASE(mapping)
{
    put(map(1 << 20), 512 << 10, block(40));
}

CASE(mapping_interior)
{
    put(map(1 << 20), 512 << 10, (char *)block(40) + 16);
}

CASE(mapping_unaligned)
{
    put(map(1 << 20), (512 << 10) + 3, block(40));
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

CASE(mapping_shared)
{
    void *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    put(memory, 4096, block(40));
}

CASE(mapping_of_file)
{
    char name[] = "/tmp/reach.XXXXXX";
    int file = mkstemp(name);
    void *memory;

    if (file < 0 || unlink(name) != 0 || ftruncate(file, 8192) != 0)
        abort();
    memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    put(memory, 4096, block(40));
}

CASE(mapping_unmapped)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    munmap(memory, 1 << 20);
}

CASE(mapping_discarded)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    madvise(memory, 1 << 20, MADV_DONTNEED);
}

CASE(mapping_read_only)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    mprotect(memory, 1 << 20, PROT_READ);
}

CASE(mapping_without_access)
{
    void *memory = map(1 << 20);

    put(memory, 512 << 10, block(40));
    mprotect(memory, 1 << 20, PROT_NONE);
}

/* Shared memory, which the program has no other mapping of. */
static void *map_shared(int file, int flags, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

CASE(shared_read_only)
{
    void *memory = map_shared(-1, MAP_ANONYMOUS, 8192);

    put(memory, 4096, block(40));
    mprotect(memory, 8192, PROT_READ);
}

CASE(shared_without_access)
{
    void *memory = map_shared(-1, MAP_ANONYMOUS, 8192);

    put(memory, 4096, block(40));
    mprotect(memory, 8192, PROT_NONE);
}

/* Where there are no huge pages, others do. */
CASE(shared_huge)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    put(memory != MAP_FAILED ? memory : map_shared(-1, MAP_ANONYMOUS, HUGE_PAGE), 4096, block(40));
}

CASE(private_huge)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    put(memory != MAP_FAILED ? memory : map(HUGE_PAGE), 4096, block(40));
}

/* Makes a file without a name. */
static int file_in(const char *directory)
{
    char name[64];
    int file;

    snprintf(name, sizeof name, "%s/reach.XXXXXX", directory);
    file = mkstemp(name);
    if (file < 0 || unlink(name) != 0 || ftruncate(file, 8192) != 0)
        abort();
    return file;
}

/* Writes the address of a block into a file by a mapping that is gone then. */
static void put_by_mapping(int file)
{
    void *memory = map_shared(file, 0, 8192);

    put(memory, 4096, block(40));
    munmap(memory, 8192);
}

static void *view(int file, int protection, int flags)
{
    void *memory = mmap(NULL, 8192, protection, flags, file, 0);

    if (memory == MAP_FAILED)
        abort();
    close(file);
    return memory;
}

CASE(view_shared_read_only)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_SHARED);
}

CASE(view_shared_without_access)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_NONE, MAP_SHARED);
}

CASE(view_private_read_only)
{
    int file = file_in("/tmp");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_PRIVATE);
}

CASE(view_of_shared_memory)
{
    int file = file_in("/dev/shm");

    put_by_mapping(file);
    view(file, PROT_READ, MAP_SHARED);
}

CASE(view_of_memory_file)
{
    int file = memfd_create("reach", 0);

    if (file < 0 || ftruncate(file, 8192) != 0)
        abort();
    put_by_mapping(file);
    view(file, PROT_READ, MAP_PRIVATE);
}

/* A file that was not written since the process began: of it, nothing needs to be searched. */
CASE(view_of_old_file)
{
    view(open("/proc/self/exe", O_RDONLY), PROT_READ, MAP_SHARED);
    lose(block(40));
}

/* Private memory, whatever its name. */
CASE(device_of_zeros)
{
    put(view(open("/dev/zero", O_RDWR), PROT_READ | PROT_WRITE, MAP_PRIVATE), 4096, block(40));
}

static struct page {
    void *pointer;
} __attribute__((aligned(4096))) protected = {&protected};

CASE(data_protected)
{
    protected.pointer = block(40);
    mprotect(&protected, sizeof protected, PROT_READ);
}

CASE(mapping_large_untouched)
{
    char *memory = mmap(NULL, 4UL << 30, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    put(memory, 3UL << 30, block(40));
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

static uintptr_t hidden;

static void NOINLINE hide_block(void)
{
    hidden = ~(uintptr_t)block(40);
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

static jmp_buf buffer;

CASE(setjmp_plain)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%r14\n\tnot %%r14\n\tmov %%rsp, %%rbx\n\tand $-16, %%rsp\n\t"
                     "lea %1, %%rdi\n\tcall _setjmp@PLT\n\tmov %%rbx, %%rsp\n\txor %%r14d, %%r14d"
                     :
                     : "m"(hidden), "m"(buffer)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r14",
                       "memory");
}

/* The C library mangles the base pointer that it saves, so nobody finds it there. */
CASE(setjmp_mangled)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%rax\n\tnot %%rax\n\tmov %%rsp, %%rbx\n\tmov %%rbp, %%r14\n\t"
                     "lea %1, %%rdi\n\tand $-16, %%rsp\n\tmov %%rax, %%rbp\n\txor %%eax, %%eax\n\t"
                     "call _setjmp@PLT\n\tmov %%r14, %%rbp\n\tmov %%rbx, %%rsp"
                     :
                     : "m"(hidden), "m"(buffer)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r14",
                       "memory");
}

static ucontext_t outside, inside;

static void *NOINLINE hidden_block(void)
{
    hide_block();
    clear_stack();
    return (void *)~hidden;
}

static void coroutine(void)
{
    void *volatile held = hidden_block();

    swapcontext(&inside, &outside);
    kept[0] = held;
}

static void start_coroutine(void *stack, size_t size)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = size;
    inside.uc_link = NULL;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

CASE(coroutine_suspended)
{
    start_coroutine(map(256 << 10), 256 << 10);
    memset(&inside, 0, sizeof inside);
}

CASE(coroutine_on_block)
{
    void *stack = block(240 << 10);

    start_coroutine(stack, 240 << 10);
    memset(&inside, 0, sizeof inside);
    kept[0] = stack;
}

static void coroutine_exit(void)
{
    memset(&outside, 0, sizeof outside);
    exit(0);
}

/* The stack of main is suspended, and holds the block. */
CASE(coroutine_exits)
{
    void *volatile held;

    getcontext(&inside);
    inside.uc_stack.ss_sp = map(256 << 10);
    inside.uc_stack.ss_size = 256 << 10;
    makecontext(&inside, coroutine_exit, 0);
    held = hidden_block();
    swapcontext(&outside, &inside);
    kept[0] = held;
}

static void handler(int number)
{
    (void)number;
    _exit(0);
}

static void NOINLINE raise_deep(void)
{
    void *volatile held = hidden_block();

    raise(SIGUSR1);
    kept[0] = held;
}

/* The frame that holds the block lies below the stack that the handler runs on. */
CASE(handler_on_local_array)
{
    char memory[64 << 10];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise_deep();
}

static void NOINLINE switch_deep(void)
{
    void *volatile held = hidden_block();

    swapcontext(&outside, &inside);
    kept[0] = held;
}

/* Likewise. */
CASE(coroutine_on_local_array)
{
    char memory[64 << 10];

    getcontext(&inside);
    inside.uc_stack.ss_sp = memory;
    inside.uc_stack.ss_size = sizeof memory;
    makecontext(&inside, coroutine_exit, 0);
    switch_deep();
}

/* The handler runs on a stack of its own while main's holds the block. */
CASE(handler_on_own_stack)
{
    stack_t stack = {.ss_sp = map(64 << 10), .ss_size = 64 << 10};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    void *volatile held;

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    held = hidden_block();
    raise(SIGUSR1);
    kept[0] = held;
}
