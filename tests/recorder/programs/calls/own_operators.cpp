/* SPDX-License-Identifier: MIT */
// Has some operators of its own; the C++ runtime's others call these. Each block is behind a
// header, so that the calls of malloc() and free() are events of their own.
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>

#include "../attach/until_told.h"

#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wsized-deallocation"

struct alignas(64) wide {
    char bytes[64];
};

static void *behind(void *block, size_t header)
{
    if (!block)
        throw std::bad_alloc();
    return static_cast<char *>(block) + header;
}

static void release(void *block, size_t header)
{
    if (block)
        free(static_cast<char *>(block) - header);
}

void *operator new(size_t size)
{
    return behind(malloc(size + 16), 16);
}

void *operator new(size_t size, std::align_val_t alignment)
{
    return behind(memalign(static_cast<size_t>(alignment), size + 64), 64);
}

void operator delete(void *block) noexcept
{
    release(block, 16);
}

void operator delete(void *block, std::align_val_t) noexcept
{
    release(block, 64);
}

// No pair of calls is left out by the compiler.
template <class T> static T *held(T *block)
{
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

static __attribute__((noinline)) void use_all()
{
    delete[] held(new char[1001]);
    operator delete[](held(new (std::nothrow) char[1002]), std::nothrow);
    operator delete(held(new (std::nothrow) char), std::nothrow);
    operator delete[](held(new char[1003]), size_t(1003));
    operator delete(held(new char), size_t(1));
    delete[] held(new wide[1]);
    operator delete[](held(new (std::nothrow) wide[1]), std::align_val_t(64), std::nothrow);
    operator delete(held(new (std::nothrow) wide), std::align_val_t(64), std::nothrow);
    operator delete[](held(new wide[1]), size_t(64), std::align_val_t(64));
}

int main()
{
    wait_until_told();
    use_all();
    if (FILE *pipe = popen("true", "r"))
        pclose(pipe);
    return 0;
}
