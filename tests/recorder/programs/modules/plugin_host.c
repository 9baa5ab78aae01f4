/* SPDX-License-Identifier: MIT */
/* A program without C++ loads a plugin whose constructor waits for a thread that uses it. */
#include <dlfcn.h>
#include <stddef.h>

int main(int count, char **arguments)
{
    return count > 1 && dlopen(arguments[1], RTLD_NOW) ? 0 : 2;
}
