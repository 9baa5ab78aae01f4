// SPDX-License-Identifier: MIT
#include "shapes.h"

#include <cstdio>
#include <stdexcept>

struct First {
    virtual ~First() = default;
    long own = 1;
};

struct Second {
    virtual ~Second() = default;
    virtual int answer()
    {
        return 42;
    }
};

struct Both : First, Second {
    int answer() override
    {
        return 43;
    }
};

struct Virtual : virtual First {
    long more = 2;
};

template <typename T> struct Box : First {
    T value{};
};

namespace
{
struct Hidden : First {
    long value = 3;
};
} // namespace

extern "C" struct shape shape(unsigned number)
{
    struct Local : Second {
    };
    switch (number) {
    case 0:
        return {"5First", new First};
    case 1:
        return {"4Both", new Both};
    case 2:
        return {"7Virtual", new Virtual};
    case 3:
        return {"3BoxIS_IPFvlEEE", static_cast<void *>(new Box<Box<void (*)(long)>>)};
    case 4:
        return {"N12_GLOBAL__N_16HiddenE", new Hidden};
    case 5:
        return {"Z5shapeE5Local", new Local};
    default:
        return {"St13runtime_error", new std::runtime_error("late")};
    }
}

extern "C" void *second_part()
{
    return static_cast<Second *>(new Both);
}
