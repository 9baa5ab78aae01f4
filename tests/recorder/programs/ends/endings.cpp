// SPDX-License-Identifier: MIT
// Releases blocks in all that runs at the end of a process; keeps one. Prints each block. The
// argument names what ends the process, with status 7.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

#include "holder.h"

namespace
{

holder of_program("static of the program");
thread_local holder of_thread("thread-local");
void *by_handler[3];

void at_exit_first()
{
    std::free(by_handler[0]);
}
void at_exit_last()
{
    std::free(by_handler[1]);
}
void at_quick_exit()
{
    std::free(by_handler[2]);
}

void *take(const char *name)
{
    void *block = std::malloc(50);
    std::printf("%s: %zu\n", name, reinterpret_cast<std::size_t>(block));
    return block;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    take("kept");
    by_handler[0] = take("handler");
    std::atexit(at_exit_first);
    by_handler[1] = take("last handler");
    std::atexit(at_exit_last);
    by_handler[2] = take("quick handler");
    std::at_quick_exit(at_quick_exit);
    of_program.print();
    of_thread.print();
    of_library.print();
    std::fflush(stdout);
    if (std::strcmp(argv[1], "exit") == 0)
        std::exit(7);
    if (std::strcmp(argv[1], "quick_exit") == 0)
        std::quick_exit(7);
    if (std::strcmp(argv[1], "thread") == 0)
        std::thread([] {
            of_thread.print("other thread");
            std::fflush(stdout);
            std::exit(7);
        }).join();
    return 7;
}
