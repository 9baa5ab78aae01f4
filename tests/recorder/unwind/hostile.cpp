/* SPDX-License-Identifier: MIT */
/* Exceptions: stacks that shrink by unwinding, and heap calls made by the unwinder. */
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/* In check_preload.c. */
extern "C" const int unwind_check_loaded __attribute__((weak));

namespace
{
uint32_t state = 1;
uint32_t next()
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

struct holder {
    std::vector<std::string> texts;
    ~holder()
    {
        texts.emplace_back("released while an exception is on its way, perhaps");
    }
};

[[gnu::noinline]] void descend(int depth)
{
    holder h;
    alignas(32) volatile char block[32];
    block[0] = static_cast<char>(depth);
    h.texts.emplace_back("a text that is too long for the inside of a string");
    if (depth == 0) {
        if (next() % 3 == 0)
            throw std::runtime_error(std::string(40, 'x'));
        return;
    }
    try {
        descend(depth - 1);
        if (next() % 4 == 0)
            throw static_cast<int>(next());
    } catch (int n) {
        auto p = std::make_unique<int>(n);
        if (next() % 2 == 0)
            throw;
        descend(depth / 2);
    }
    block[1] = block[0];
}
} // namespace

int main(int argc, char **argv)
{
    if (&unwind_check_loaded == nullptr)
        return 2; /* nothing would be tested */
    state = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1;
    for (int i = 0; i < 40; i++) {
        try {
            descend(static_cast<int>(next() % 9));
        } catch (...) {
            auto p = std::make_unique<std::string>(50, 'y');
        }
    }
}
