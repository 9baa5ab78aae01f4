/* SPDX-License-Identifier: MIT */
// Leaks of C++: objects, arrays, containers, an exception's payload; iostreams and threads too.
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Widget {
    std::string name = std::string(100, 'w');
    std::vector<int> numbers = std::vector<int>(50);
};

static std::map<int, std::string> *kept;

static void leak_objects()
{
    for (int i = 0; i < 7; i++)
        new Widget;
    new Widget[3];
}

static void leak_in_thread()
{
    std::thread thread([] { new char[1234]; });
    thread.join();
}

static void throw_and_catch()
{
    try {
        throw std::runtime_error("a message that is too long for the small string optimisation");
    } catch (const std::exception &error) {
        std::cout << error.what() << '\n';
    }
}

int main()
{
    leak_objects();
    leak_in_thread();
    throw_and_catch();
    kept = new std::map<int, std::string>;
    for (int i = 0; i < 20; i++)
        (*kept)[i] = std::string(64, 'k');
    auto cycle = std::make_shared<std::vector<std::shared_ptr<void>>>();
    cycle->push_back(cycle);
}
