// SPDX-License-Identifier: MIT
#include "holder.h"

holder of_library("static of the library");

// The destructor of the module itself runs last.
static void *by_module;
__attribute__((constructor)) static void begin()
{
    by_module = std::malloc(60);
    std::printf("module: %zu\n", reinterpret_cast<std::size_t>(by_module));
}
__attribute__((destructor)) static void end()
{
    std::free(by_module);
}
