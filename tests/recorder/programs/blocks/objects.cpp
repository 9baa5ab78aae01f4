// SPDX-License-Identifier: MIT
/* Makes objects of classes of every kind, and keeps them; the size of each tells which. */
#include <dlfcn.h>
#include <memory>
#include <string>
#include <vector>

template <std::size_t size> struct Filled {
    virtual ~Filled() = default;
    char filler[size - sizeof(void *)];
};

struct Simple {
    virtual ~Simple() = default;
    char filler[2000] = {};
};

struct Other {
    virtual ~Other() = default;
    virtual int answer()
    {
        return 1;
    }
};

struct Multiple : Simple, Other {
    int answer() override
    {
        return 2;
    }
    char more[100] = {};
};

struct Virtual : virtual Simple {
    char more[200] = {};
};

namespace
{
struct Hidden : Simple {
    char more[300] = {};
};
} // namespace

struct Data { /* no class with a table */
    const char *text;
    char filler[2992];
};

std::vector<void *> kept;

template <typename T> static void keep()
{
    kept.push_back(new T());
}

int main(int, char **arguments)
{
    keep<Simple>();
    keep<Multiple>();
    keep<Virtual>();
    keep<Hidden>();
    keep<Filled<2500>>();
    static_cast<Data *>((keep<Data>(), kept.back()))->text = "text in read-only memory";
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (library == nullptr)
        return 1;
    using maker = void *();
    kept.push_back(reinterpret_cast<maker *>(dlsym(library, "make"))());
    return 0;
}
