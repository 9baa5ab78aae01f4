/* SPDX-License-Identifier: MIT */
/* A library with data of its own: linked to the program, and loaded by it. */
#include "module.h"

static void *global;
static void *initialized = &global;
static __thread void *local;

static void keep(enum module_place place, void *value)
{
    switch (place) {
    case MODULE_GLOBAL:
        global = value;
        break;
    case MODULE_INITIALIZED:
        initialized = value;
        break;
    case MODULE_THREAD_LOCAL:
        local = value;
        break;
    }
    __asm__ volatile("" : : "r"(&global), "r"(&initialized), "r"(&local) : "memory");
}

const struct module_functions module_functions = {keep};
