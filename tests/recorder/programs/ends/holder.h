// SPDX-License-Identifier: MIT
// An object that holds a block until it is destroyed.
#ifndef HOLDER_H
#define HOLDER_H

#include <cstdio>
#include <cstdlib>

class holder
{
  public:
    explicit holder(const char *its_name) : name(its_name), block(std::malloc(40))
    {
    }
    ~holder()
    {
        std::free(block);
    }
    holder(const holder &) = delete;
    holder &operator=(const holder &) = delete;
    void print(const char *other = nullptr) const
    {
        std::printf("%s: %zu\n", other != nullptr ? other : name,
                    reinterpret_cast<std::size_t>(block));
    }

  private:
    const char *name;
    void *block;
};

extern holder of_library;

#endif
