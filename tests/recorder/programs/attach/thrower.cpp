/* SPDX-License-Identifier: MIT */
/*
 * Throws exceptions through functions that allocate, from operators new that fail too, and in two
 * threads. Prints how many blocks of its own size it has got and released.
 */
#include <cstdio>
#include <new>
#include <stdexcept>
#include <thread>

namespace
{

constexpr std::size_t own_size = 1000, too_much = std::size_t{1} << 62;

struct block {
    char *bytes = new char[own_size];
    block()
    {
        *const_cast<volatile char *>(bytes) = 1;
    } /* else compilers leave it out */
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    ~block()
    {
        delete[] bytes;
    }
};

void fall(int depth)
{
    block own;
    if (depth == 0)
        throw std::runtime_error("the bottom");
    fall(depth - 1);
}

void work(int rounds, int *caught)
{
    for (int i = 0; i < rounds; i++) {
        try {
            fall(3);
        } catch (const std::runtime_error &) {
            *caught += 1;
        }
        try {
            block own;
            char *volatile none = new char[too_much];
            delete[] none;
        } catch (const std::bad_alloc &) {
            *caught += 1;
        }
    }
}

} // namespace

int main()
{
    constexpr int rounds = 20;
    int first = 0, second = 0;
    std::thread other(work, rounds, &second);
    work(rounds, &first);
    other.join();
    std::printf("%d %d\n", first + second, 2 * rounds * 5);
    return 0;
}
