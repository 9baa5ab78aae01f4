/* SPDX-License-Identifier: MIT */
/* Built without .eh_frame, as a program and as a library: only .debug_frame leads to its callers.
 * Loses a block; with the path of a library, it loads that three times, which loses one each time.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int outer(int size);

static __attribute__((noinline)) char *make(int size)
{
    char *block = malloc((size_t)size);
    memset(block, 1, (size_t)size);
    return block;
}

/* A frame that rbp leads out of, and one that rsp does. */
static __attribute__((noinline)) int middle(int size)
{
    char *room = __builtin_alloca((size_t)size);
    memset(room, 0, (size_t)size);
    char *volatile block = make(size);
    int sum = block[0] + room[size / 2];
    block = NULL;
    return sum;
}

__attribute__((noinline)) int outer(int size)
{
    return middle(size) + 1;
}

int main(int argc, char **argv)
{
    int sum = outer(100);
    for (int i = 0; argc > 1 && i < 3; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*call)(int) = NULL;
        if (!library)
            return 2;
        *(void **)&call = dlsym(library, "outer");
        sum += call ? call(200) : 0;
        dlclose(library);
    }
    return sum == 0;
}
