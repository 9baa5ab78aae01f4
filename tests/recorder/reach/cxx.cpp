/* SPDX-License-Identifier: MIT */
/* Pointers as C++ makes them: cookies, several bases, strings, containers, smart pointers. */
#include <any>
#include <deque>
#include <exception>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "case.h"

namespace
{

/* Keeps an object, and is never destroyed. */
template <typename Type, int number = 0> Type &root()
{
    alignas(Type) static char memory[sizeof(Type)];
    static Type *object = new (memory) Type;

    return *object;
}

struct Item {
    Item() = default;
    ~Item()
    {
        data = 0;
    }
    uint64_t data = 0, more = 0;
};

CASE(nothing)
{
}

CASE(object_lost)
{
    lose(new Item);
}

CASE(object_kept)
{
    kept[0] = new Item;
}

CASE(array_kept)
{
    kept[0] = new uint64_t[10]();
}

/* The count of the items stands before the first one, to which the pointer points. */
CASE(array_with_cookie_kept)
{
    kept[0] = new Item[10];
}

CASE(array_with_cookie_lost)
{
    lose(new Item[10]);
}

CASE(array_with_cookie_second_item)
{
    kept[0] = new Item[10] + 1;
}

CASE(array_with_cookie_of_none)
{
    volatile size_t count = 0;

    kept[0] = new Item[count];
}

struct Shape {
    virtual ~Shape() = default;
    uint64_t area = 0;
};
struct Named {
    virtual ~Named() = default;
    virtual void name()
    {
    }
    uint64_t length = 0;
};
struct Plain {
    uint64_t plain = 0;
};
struct Both : Shape, Named {
    void name() override
    {
    }
    uint64_t both = 0;
};
struct WithPlain : Shape, Plain {
};
struct Left : virtual Shape {
    uint64_t left = 0;
};
struct Right : virtual Shape {
    uint64_t right = 0;
};
struct Diamond : Left, Right {
};

CASE(polymorphic_kept)
{
    kept[0] = static_cast<Shape *>(new Both);
}

CASE(second_base)
{
    kept[0] = static_cast<Named *>(new Both);
}

CASE(second_base_lost)
{
    kept[0] = static_cast<Named *>(new Both);
    kept[0] = nullptr;
}

/* The second base has no vtable, and nothing tells that its address is the object's. */
CASE(second_base_plain)
{
    kept[0] = static_cast<Plain *>(new WithPlain);
}

CASE(virtual_base)
{
    kept[0] = static_cast<Shape *>(new Diamond);
}

CASE(virtual_base_right)
{
    kept[0] = static_cast<Right *>(new Diamond);
}

CASE(virtual_base_lost)
{
    put(block(64), 8, static_cast<Shape *>(new Diamond));
}

CASE(second_bases_in_vector)
{
    for (int i = 0; i < 20; i++)
        root<std::vector<Named *>>().push_back(new Both);
}

CASE(string_short)
{
    root<std::string>() = "short";
}

CASE(string_long)
{
    root<std::string>() = std::string(50, 'x');
}

CASE(string_short_lost)
{
    lose(new std::string("short"));
}

CASE(string_long_lost)
{
    lose(new std::string(50, 'x'));
}

CASE(string_short_interior)
{
    kept[0] = const_cast<char *>((new std::string("short"))->data());
}

CASE(vector_kept)
{
    root<std::vector<int>>().assign(100, 7);
}

CASE(vector_lost)
{
    lose(new std::vector<int>(100, 7));
}

CASE(vector_end_only)
{
    auto *vector = new std::vector<int>(100, 7);

    lose(vector);
    kept[0] = vector->data() + 100;
}

CASE(vector_of_strings_lost)
{
    lose(new std::vector<std::string>(10, std::string(50, 'x')));
}

CASE(unique_kept)
{
    root<std::unique_ptr<Item>>() = std::make_unique<Item>();
}

CASE(unique_released)
{
    lose(std::make_unique<Item>().release());
}

CASE(unique_destroyed)
{
    std::make_unique<Item>();
}

struct Shared {
    std::shared_ptr<Shared> next;
    std::weak_ptr<Shared> back;
    uint64_t data = 0;
};

CASE(shared_kept)
{
    root<std::shared_ptr<Shared>>().reset(new Shared);
}

/* The object and its counts are one block, and the pointer to the counts is its start. */
CASE(shared_together_kept)
{
    root<std::shared_ptr<Shared>>() = std::make_shared<Shared>();
}

CASE(shared_cycle)
{
    std::shared_ptr<Shared> first(new Shared), second(new Shared);

    first->next = second;
    second->next = first;
}

CASE(shared_cycle_together)
{
    auto first = std::make_shared<Shared>(), second = std::make_shared<Shared>();

    first->next = second;
    second->next = first;
}

CASE(shared_no_cycle)
{
    auto first = std::make_shared<Shared>(), second = std::make_shared<Shared>();

    first->next = second;
    second->back = first;
}

/* The object is destroyed, but its memory stays for the counts. */
CASE(weak_kept)
{
    root<std::weak_ptr<Shared>>() = std::make_shared<Shared>();
}

CASE(weak_cycle)
{
    auto object = std::make_shared<Shared>();

    object->back = object;
}

CASE(function_kept)
{
    Item one, two;

    root<std::function<uint64_t()>>() = [one, two] { return one.data + two.data; };
}

CASE(function_lost)
{
    Item one, two;

    lose(new std::function<uint64_t()>([one, two] { return one.data + two.data; }));
}

CASE(function_keeps_block)
{
    void *memory = block(40);

    root<std::function<void *()>>() = [memory] { return memory; };
}

template <typename Map> void fill(Map &map)
{
    for (int i = 0; i < 100; i++)
        map[i] = i;
}

CASE(map_kept)
{
    fill(root<std::map<int, int>>());
}

CASE(map_lost)
{
    fill(*new std::map<int, int>);
}

CASE(hash_map_kept)
{
    fill(root<std::unordered_map<int, int>>());
}

CASE(hash_map_lost)
{
    fill(*new std::unordered_map<int, int>);
}

CASE(set_of_strings_kept)
{
    for (int i = 0; i < 10; i++)
        root<std::set<std::string>>().emplace(40 + i, 'x');
}

CASE(list_kept)
{
    root<std::list<int>>().assign(100, 7);
}

CASE(list_lost)
{
    lose(new std::list<int>(100, 7));
}

CASE(forward_list_kept)
{
    root<std::forward_list<int>>().assign(100, 7);
}

CASE(deque_kept)
{
    root<std::deque<int>>() = std::deque<int>(1000, 7);
}

CASE(deque_lost)
{
    lose(new std::deque<int>(1000, 7));
}

CASE(any_kept)
{
    root<std::any>() = std::string(50, 'x');
}

CASE(local_static)
{
    static std::string *object = new std::string(50, 'x');

    __asm__ volatile("" : : "r"(&object) : "memory");
}

CASE(static_destroyed)
{
    static std::string text(50, 'x');

    text[0] = 'y';
}

CASE(thread_local_destroyed)
{
    thread_local std::string text;

    text.assign(50, 'x');
}

struct alignas(64) Aligned {
    char data[128];
};

CASE(overaligned)
{
    kept[0] = new Aligned();
    lose(new Aligned());
}

CASE(not_thrown)
{
    kept[0] = new (std::nothrow) Item;
    lose(new (std::nothrow) Item);
}

CASE(placed_in_block)
{
    auto *memory = static_cast<char *>(block(4096));

    new (memory + 64) std::string(50, 'x');
    kept[0] = memory;
}

/* Each chunk of the resource ends with the link to the next one: only interior pointers. */
CASE(monotonic_resource)
{
    auto &resource = root<std::pmr::monotonic_buffer_resource>();

    put(resource.allocate(500), 0, block(40));
}

CASE(exception_kept)
{
    try {
        throw std::runtime_error(std::string(50, 'x'));
    } catch (...) {
        root<std::exception_ptr>() = std::current_exception();
    }
}

CASE(exception_caught)
{
    try {
        throw std::runtime_error(std::string(50, 'x'));
    } catch (...) {
    }
}

/* The runtime holds what is being handled. */
CASE(exit_while_catching)
{
    try {
        throw std::runtime_error(std::string(50, 'x'));
    } catch (...) {
        exit(0);
    }
}

CASE(exit_with_locals)
{
    std::vector<std::string> texts(10, std::string(50, 'x'));

    __asm__ volatile("" : : "r"(&texts) : "memory");
    exit(0);
}

struct Counted {
    static void *operator new(size_t size)
    {
        auto *memory = static_cast<uint64_t *>(block(size + 16));

        memory[0] = 0xbeef;
        return memory + 2;
    }
    static void operator delete(void *memory)
    {
        free(static_cast<uint64_t *>(memory) - 2);
    }
    uint64_t data[5] = {};
};

CASE(own_operator_new)
{
    kept[0] = new Counted;
    delete new Counted;
}

} // namespace
