/* SPDX-License-Identifier: MIT */
// Calls every allocation function once, in a known order, and leaks nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <new>

#include "../attach/until_told.h"

// Not in this C library, but in the recorder.
extern "C" {
void free_sized(void *base, size_t size) __attribute__((weak));
void free_aligned_sized(void *base, size_t alignment, size_t size) __attribute__((weak));
void cfree(void *base) __attribute__((weak));
}

static void c_functions()
{
    free(malloc(101));
    free(calloc(3, 34));
    free(realloc(realloc(nullptr, 103), 10400));
    free(reallocarray(nullptr, 5, 21));
    free(memalign(64, 106));
    void *block = nullptr;
    if (posix_memalign(&block, 128, 107) != 0)
        abort();
    free(block);
    free(aligned_alloc(32, 128));
    free(valloc(109));
    free(pvalloc(110));
    block = malloc(111);
    if (free_sized)
        free_sized(block, 111);
    block = aligned_alloc(16, 112);
    if (free_aligned_sized)
        free_aligned_sized(block, 16, 112);
    block = malloc(113);
    if (cfree)
        cfree(block);
}

static void failures()
{
    volatile size_t huge = SIZE_MAX / 2;
    void *block = malloc(120);
    if (malloc(huge) != nullptr || calloc(huge, 4) != nullptr || realloc(block, huge) != nullptr)
        abort();
    if (posix_memalign(&block, 3, 121) == 0)
        abort();
    block = realloc(block, 0);
    try {
        free(operator new(huge));
    } catch (const std::bad_alloc &) {
    }
}

static void operators()
{
    constexpr std::align_val_t alignment{64};
    operator delete(operator new(201));
    operator delete(operator new(202, std::nothrow), std::nothrow);
    operator delete(operator new(203, alignment), alignment);
    operator delete(operator new(204, alignment, std::nothrow), alignment, std::nothrow);
    operator delete(operator new(205), static_cast<size_t>(205));
    operator delete(operator new(206, alignment), 206, alignment);
    operator delete[](operator new[](301));
    operator delete[](operator new[](302, std::nothrow), std::nothrow);
    operator delete[](operator new[](303, alignment), alignment);
    operator delete[](operator new[](304, alignment, std::nothrow), alignment, std::nothrow);
    operator delete[](operator new[](305), static_cast<size_t>(305));
    operator delete[](operator new[](306, alignment), 306, alignment);
}

int main()
{
    wait_until_told();
    c_functions();
    failures();
    operators();
}
