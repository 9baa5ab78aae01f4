/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

void *allocate(void);

__attribute__((noinline)) static void *from_plugin_b(void)
{
    void *volatile block = malloc(222);
    return block;
}

void *allocate(void)
{
    void *volatile block = from_plugin_b();
    return block;
}
