/* SPDX-License-Identifier: MIT */
/* Holds blocks by variables of every kind; the size of a block tells which. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *global_root;
static void *volatile own_roots[3];
static struct {
    long before;
    void *volatile inner;
} record_root;
__thread void *volatile thread_root;
static __thread void *volatile own_thread_roots[2];
static void *const *volatile relocated_root = &global_root;

static void *keep_in_function(void)
{
    static void *volatile kept;
    kept = malloc(1005);
    return kept;
}

int main(int count, char **arguments)
{
    void *(*keep)(size_t, size_t);
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    global_root = malloc(1001);
    own_roots[2] = malloc(1002);
    record_root.inner = malloc(1003);
    thread_root = malloc(1004);
    if (!keep_in_function())
        return 1;
    own_thread_roots[1] = malloc(1006);
    if (!library)
        return 1;
    *(void **)&keep = dlsym(library, "keep");
    keep(1007, 1008);
    return !*relocated_root;
}
