/* SPDX-License-Identifier: MIT */
/* Calls within calls of the allocator, and calls of it that are left in another way than by their
   end. What each scenario leaks has a size of its own; all else is released. */
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <string>

static void *volatile kept;

__attribute__((noinline)) static void *make(size_t size)
{
    volatile char room[200];
    room[0] = 1;
    void *block = malloc(size + room[0] - 1);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static void *make_deep(size_t size, int depth)
{
    volatile char room[64];
    room[depth % 64] = 0;
    return depth == 0 ? make(size) : make_deep(size + room[depth % 64], depth - 1);
}

static const size_t too_much = (size_t)-1 / 4;

/* From a deeper frame than that which operator new was left from. */
static int after_bad_alloc()
{
    void *a = nullptr, *b = nullptr, *c = nullptr;
    try {
        kept = operator new(too_much);
    } catch (std::bad_alloc &) {
        a = make(100), b = make_deep(200, 20), c = make(300);
        std::string text(1000, 'x');
        kept = &text[0];
        kept = make(4001);
    }
    free(a), free(b), free(c);
    delete new (std::nothrow) int;
    kept = operator new[](too_much, std::nothrow);
    for (int i = 0; i < 100; i++)
        kept = make_deep(4002, 30);
    return 0;
}

static void *reserve;

static void spend_reserve()
{
    kept = make(4003);
    std::string text(2000, 'y');
    if (text.size() != 2000 || reserve == nullptr)
        throw std::bad_alloc();
    free(reserve);
    reserve = nullptr;
}

static int in_new_handler()
{
    reserve = malloc(500);
    std::set_new_handler(spend_reserve);
    try {
        kept = operator new(too_much);
    } catch (std::bad_alloc &) {
    }
    std::set_new_handler(nullptr);
    free(make_deep(600, 10));
    return 0;
}

static sigjmp_buf back;

static void jump_from_handler()
{
    siglongjmp(back, 2);
}

static int after_longjmp()
{
    std::set_new_handler(jump_from_handler);
    if (sigsetjmp(back, 1) == 0)
        kept = operator new(too_much);
    for (int i = 0; i < 100; i++)
        kept = make_deep(4004, 99 - i);
    return 0;
}

static void *cancelled(void *)
{
    kept = operator new(too_much);
    return nullptr;
}

static void exit_thread()
{
    kept = make(4006);
    pthread_exit(nullptr);
}

static pthread_key_t key;

static void at_end(void *block)
{
    free(block);
    kept = make_deep(4006, 40);
}

static void *leaving(void *)
{
    pthread_setspecific(key, make(300));
    return cancelled(nullptr);
}

static int thread_exits()
{
    pthread_t thread;
    std::set_new_handler(exit_thread);
    pthread_key_create(&key, at_end);
    pthread_create(&thread, nullptr, leaving, nullptr);
    pthread_join(thread, nullptr);
    return 0;
}

static void be_cancelled()
{
    kept = make(4007);
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

static int thread_cancelled()
{
    pthread_t thread;
    std::set_new_handler(be_cancelled);
    pthread_key_create(&key, at_end);
    pthread_create(&thread, nullptr, leaving, nullptr);
    pthread_join(thread, nullptr);
    return 0;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)();
    } scenarios[] = {{"bad_alloc", after_bad_alloc},
                     {"new_handler", in_new_handler},
                     {"longjmp", after_longjmp},
                     {"exit", thread_exits},
                     {"cancel", thread_cancelled}};
    for (const auto &scenario : scenarios)
        if (count > 1 && strcmp(arguments[1], scenario.name) == 0)
            return scenario.run();
    return 2;
}
