/* SPDX-License-Identifier: MIT */
// While it is being loaded, and the loader's lock is held, another thread allocates and fails to.
#include <cstdint>
#include <new>
#include <thread>

static void allocate()
{
    volatile std::size_t huge = SIZE_MAX / 2;
    operator delete(operator new(100));
    operator delete[](operator new[](100, std::nothrow));
    if (operator new(huge, std::nothrow) != nullptr)
        throw 1;
}

struct Loading {
    Loading()
    {
        std::thread thread(allocate);
        thread.join();
    }
};

static Loading loading;
