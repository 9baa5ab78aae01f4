/* SPDX-License-Identifier: MIT */
/* Opens a plugin that finds the C library's functions before any other, and exchanges blocks with
   it; leaks one of 111 bytes that the plugin has allocated. Looks malloc up in the C library, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    int mode = count > 2 && arguments[2][0] == 'l' ? RTLD_LAZY : RTLD_NOW;
    void *plugin = dlopen(arguments[1], mode | RTLD_DEEPBIND);
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *(*make)(size_t), (*lose)(void *), *(*first)(void), *(*plain)(size_t);
    if (!plugin || !library)
        return 1;
    *(void **)&make = dlsym(plugin, "make");
    *(void **)&lose = dlsym(plugin, "lose");
    *(void **)&first = dlsym(plugin, "first");
    *(void **)&plain = dlsym(library, "malloc");
    free(first());
    for (int i = 0; i < 1000; i++) {
        free(make(100));
        lose(malloc(100));
        lose(make(100));
        free(plain(100));
    }
    return !make(111);
}
