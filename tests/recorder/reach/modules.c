/* SPDX-License-Identifier: MIT */
/* Pointers in the data of libraries: linked, loaded, unloaded. */
#include <dlfcn.h>
#include <stdio.h>

#include "case.h"
#include "module.h"

CASE(linked_global)
{
    module_functions.keep(MODULE_GLOBAL, block(40));
}

CASE(linked_initialized)
{
    module_functions.keep(MODULE_INITIALIZED, block(40));
}

CASE(linked_thread_local)
{
    module_functions.keep(MODULE_THREAD_LOCAL, block(40));
}

static const struct module_functions *load(void **handle)
{
    *handle = dlopen("libreach_loaded.so", RTLD_NOW | RTLD_LOCAL);
    if (!*handle) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    return dlsym(*handle, "module_functions");
}

static void load_and_keep(enum module_place place, size_t size)
{
    void *handle;

    load(&handle)->keep(place, size > 0 ? block(size) : NULL);
}

CASE(loaded_nothing)
{
    load_and_keep(MODULE_GLOBAL, 0);
}

CASE(loaded_global)
{
    load_and_keep(MODULE_GLOBAL, 40);
}

CASE(loaded_initialized)
{
    load_and_keep(MODULE_INITIALIZED, 40);
}

CASE(loaded_thread_local_nothing)
{
    load_and_keep(MODULE_THREAD_LOCAL, 0);
}

/* The storage itself is a block, which the thread's vector of storages points at. */
CASE(loaded_thread_local)
{
    load_and_keep(MODULE_THREAD_LOCAL, 40);
}

static void load_in_thread(void *context)
{
    load_and_keep(MODULE_THREAD_LOCAL, *(const size_t *)context);
}

CASE(loaded_thread_local_of_thread_nothing)
{
    size_t size = 0;

    run_thread(load_in_thread, &size);
}

CASE(loaded_thread_local_of_thread)
{
    size_t size = 40;

    run_thread(load_in_thread, &size);
}

CASE(unloaded_nothing)
{
    void *handle;

    load(&handle)->keep(MODULE_GLOBAL, NULL);
    dlclose(handle);
}

CASE(unloaded_global)
{
    void *handle;

    load(&handle)->keep(MODULE_GLOBAL, block(40));
    dlclose(handle);
}

CASE(unloaded_handle_kept)
{
    void *handle;

    load(&handle)->keep(MODULE_GLOBAL, block(40));
    kept[0] = block(24);
    dlclose(handle);
}

CASE(loaded_twice_closed_once)
{
    void *handle, *again;

    load(&handle)->keep(MODULE_GLOBAL, block(40));
    load(&again);
    dlclose(again);
}
