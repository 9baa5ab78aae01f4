// SPDX-License-Identifier: MIT
// Does all that an attached recorder has to bear at once, for ever: threads that allocate, begin
// and end; children; a library that is loaded and unloaded; handlers of signals on stacks of their
// own; exceptions; jumps out of calls; coroutines. Contents of blocks are compared with what was
// written; a difference ends the program by fail().
//
// stress COUNTS LIBRARY: the number of the blocks of 20,000 to 20,999 bytes that were allocated so
// far stands in the file COUNTS, the first 8 bytes; rounds of each kind of work stand behind it.
// The library has a function allocate().
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { COUNTED_SIZE = 20000, COUNTED_SIZES = 1000, STACK = 1 << 16, KINDS = 8, PAUSE_US = 200 };

struct counts {
    std::atomic<std::uint64_t> blocks, rounds[KINDS];
};

static struct counts *counts;
static const char *library;

// Ends the program where it finds something wrong.
[[noreturn]] static void fail(int line)
{
    std::fprintf(stderr, "stress: line %d: %s\n", line, std::strerror(errno));
    std::abort();
}

// A block whose bytes say whose it is.
struct filled {
    unsigned char *bytes;
    std::size_t size;
    unsigned char value;

    void check() const
    {
        for (std::size_t i = 0; i < size; i++)
            if (bytes[i] != value)
                fail(__LINE__);
    }
};

struct random_numbers {
    std::uint32_t state;

    std::uint32_t below(std::uint32_t limit)
    {
        state = state * 1664525 + 1013904223;
        return (state >> 8) % limit;
    }
};

static struct filled fill(void *bytes, std::size_t size, random_numbers *random)
{
    unsigned char value = static_cast<unsigned char>(random->below(256));
    if (!bytes)
        fail(__LINE__);
    std::memset(bytes, value, size);
    return {static_cast<unsigned char *>(bytes), size, value};
}

static struct filled allocate(random_numbers *random)
{
    std::size_t size = random->below(300) + 1;
    void *bytes = nullptr;
    switch (random->below(5)) {
    case 0:
        bytes = std::malloc(size = COUNTED_SIZE + random->below(COUNTED_SIZES));
        counts->blocks++;
        break;
    case 1:
        bytes = std::calloc(size, 3);
        for (std::size_t i = 0; i < 3 * size; i++)
            if (static_cast<unsigned char *>(bytes)[i] != 0)
                fail(__LINE__);
        break;
    case 2:
        if (posix_memalign(&bytes, 64, size) != 0 ||
            reinterpret_cast<std::uintptr_t>(bytes) % 64 != 0)
            fail(__LINE__);
        break;
    default:
        bytes = std::malloc(size);
    }
    return fill(bytes, size, random);
}

static void resize(struct filled *block, random_numbers *random)
{
    std::size_t size = random->below(600) + 1, kept = size < block->size ? size : block->size;
    block->bytes = static_cast<unsigned char *>(std::realloc(block->bytes, size));
    if (!block->bytes)
        fail(__LINE__);
    for (std::size_t i = 0; i < kept; i++)
        if (block->bytes[i] != block->value)
            fail(__LINE__);
    *block = fill(block->bytes, size, random);
}

// Allocates, reallocates and frees for a while, and leaves nothing.
static void churn(random_numbers *random)
{
    struct filled blocks[16] = {};
    for (int i = 0; i < 200; i++) {
        struct filled *block = &blocks[random->below(16)];
        block->check();
        if (block->bytes && random->below(4) == 0) {
            resize(block, random);
            continue;
        }
        std::free(block->bytes);
        *block = allocate(random);
    }
    for (struct filled &block : blocks) {
        block.check();
        std::free(block.bytes);
    }
}

static void *churn_once(void *seed)
{
    random_numbers random = {static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(seed))};
    churn(&random);
    return nullptr;
}

static void run_threads(random_numbers *random)
{
    pthread_t threads[4];
    for (pthread_t &thread : threads)
        if (pthread_create(&thread, nullptr, churn_once,
                           reinterpret_cast<void *>(std::uintptr_t{random->below(1 << 20)})) != 0)
            fail(__LINE__);
    for (pthread_t &thread : threads)
        pthread_join(thread, nullptr);
}

// The child's blocks are not counted: it has a recording of its own.
static void run_child(random_numbers *random)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        static struct counts own;
        counts = &own;
        churn(random);
        _exit(7);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 7)
        fail(__LINE__);
}

static void load_library(random_numbers *random)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *(*allocate)() =
        handle ? reinterpret_cast<void *(*)()>(dlsym(handle, "allocate")) : nullptr;
    if (!allocate)
        fail(__LINE__);
    std::free(allocate());
    churn(random);
    dlclose(handle);
}

// The handler allocates, although it must not: never in the thread that it would interrupt within
// an allocator, since the signal is only let in where that thread waits.
static void handle(int)
{
    int error = errno;
    struct filled block;
    random_numbers random = {static_cast<std::uint32_t>(error) + 17};
    block = allocate(&random);
    block.check();
    std::free(block.bytes);
    errno = error;
}

static void take_signals(random_numbers *random)
{
    void *memory = std::malloc(STACK);
    stack_t stack = {}, before;
    stack.ss_sp = memory;
    stack.ss_size = STACK;
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!memory || sigaltstack(&stack, &before) != 0)
        fail(__LINE__);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    for (int i = 0; i < 50; i++) {
        pthread_kill(pthread_self(), SIGUSR1);
        churn_once(reinterpret_cast<void *>(std::uintptr_t{random->below(1 << 20)}));
        sigsuspend(&old); // the handler runs here
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    sigaltstack(&before, nullptr);
    std::free(memory);
}

struct refuses {
    std::string text = std::string(100, 'r');
    refuses(int depth)
    {
        if (depth == 0)
            throw std::runtime_error(text);
    }
};

static void *volatile too_much;

static void throw_out(random_numbers *random, int depth)
{
    std::vector<std::string> texts(3, std::string(random->below(200) + 20, 't'));
    if (depth > 0)
        return throw_out(random, depth - 1);
    delete new refuses(0);
}

static void throw_exceptions(random_numbers *random)
{
    int caught = 0;
    for (int i = 0; i < 50; i++) {
        try {
            throw_out(random, 5);
        } catch (const std::runtime_error &error) {
            caught += std::strlen(error.what()) == 100;
        }
        try {
            too_much = ::operator new(PTRDIFF_MAX);
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
    if (caught != 100)
        fail(__LINE__);
}

// Returns whether it has not jumped, which it always does.
static bool jump_out(std::jmp_buf back, random_numbers *random, int depth)
{
    if (depth > 0)
        return !jump_out(back, random, depth - 1);
    churn(random);
    if (counts)
        std::longjmp(back, 5);
    return true;
}

static void make_jumps(random_numbers *random)
{
    for (int volatile i = 0; i < 20; i = i + 1) {
        std::jmp_buf back;
        switch (setjmp(back)) {
        case 0:
            jump_out(back, random, 9);
            fail(__LINE__);
        case 5:
            break;
        default:
            fail(__LINE__);
        }
    }
}

struct coroutine {
    ucontext_t own, caller;
    random_numbers random;
    int rounds;
};

static void run_coroutine(unsigned low, unsigned high)
{
    struct coroutine *self =
        reinterpret_cast<struct coroutine *>(std::uintptr_t{high} << 32 | std::uintptr_t{low});
    for (;;) {
        churn(&self->random);
        self->rounds++;
        swapcontext(&self->own, &self->caller);
    }
}

static void run_coroutines(random_numbers *random)
{
    struct coroutine *all = static_cast<struct coroutine *>(std::calloc(4, sizeof *all));
    void *stacks[4];
    for (int i = 0; i < 4; i++) {
        std::uintptr_t address = reinterpret_cast<std::uintptr_t>(&all[i]);
        all[i].random.state = random->below(1 << 20);
        getcontext(&all[i].own);
        all[i].own.uc_stack.ss_sp = stacks[i] = std::malloc(STACK);
        all[i].own.uc_stack.ss_size = STACK;
        makecontext(&all[i].own, reinterpret_cast<void (*)()>(run_coroutine), 2,
                    static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
    }
    for (int i = 0; i < 40; i++)
        swapcontext(&all[i % 4].caller, &all[i % 4].own);
    for (int i = 0; i < 4; i++) {
        if (all[i].rounds != 10)
            fail(__LINE__);
        std::free(stacks[i]);
    }
    std::free(all);
}

static void (*const kinds[KINDS])(random_numbers *random) = {
    churn,        run_threads,      run_child,  load_library,
    take_signals, throw_exceptions, make_jumps, run_coroutines,
};

static void *work(void *kind)
{
    std::uintptr_t i = reinterpret_cast<std::uintptr_t>(kind);
    random_numbers random = {static_cast<std::uint32_t>(i) + 1};
    for (;; usleep(PAUSE_US)) {
        kinds[i](&random);
        counts->rounds[i]++;
    }
    return nullptr;
}

int main(int argc, char **argv)
{
    int file = argc == 3 ? open(argv[1], O_RDWR) : -1;
    void *memory = mmap(nullptr, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct sigaction action = {};
    if (memory == MAP_FAILED)
        return 2;
    counts = static_cast<struct counts *>(memory);
    library = argv[2];
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    prctl(0x59616d61 /* any process may trace this one */, -1, 0, 0, 0);
    for (std::uintptr_t i = 1; i < KINDS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(i)) != 0)
            return 2;
    }
    std::puts("ready");
    std::fflush(stdout);
    work(nullptr);
}
