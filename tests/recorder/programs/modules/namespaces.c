/* SPDX-License-Identifier: MIT */
/* Opens a plugin in a namespace of its own, by a name that only the RUNPATH of this program finds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    void *plugin = dlmopen(LM_ID_NEWLM, count > 1 ? arguments[1] : "libdeepbound.so", RTLD_NOW);
    void *(*make)(size_t), (*lose)(void *);
    if (!plugin)
        return 1;
    *(void **)&make = dlsym(plugin, "make");
    *(void **)&lose = dlsym(plugin, "lose");
    lose(make(100));
    free(malloc(200));
    return 0;
}
