// SPDX-License-Identifier: MIT
/* A library of objects.cpp with a class of its own. */
struct FromLibrary {
    virtual ~FromLibrary() = default;
    char filler[2792] = {};
};

extern "C" void *make();
extern "C" void *make()
{
    return new FromLibrary();
}
