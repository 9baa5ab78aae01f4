/* SPDX-License-Identifier: MIT */
/*
 * Functions of the C library and the loader for a process whose program is linked statically: it
 * has some of them at most, and its own may be something else. The recorder takes them by their
 * names (ATTACHED_STATIC).
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "preload/attached/attached_parts.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"

/* The program's variable; every C library of a static program has it. */
extern char **const program_environment __asm__("__environ");

/* Begins a function that takes the place of the one with this name. */
#define STAND_IN(type, name, parameters)                                                           \
    EXPORT type static_##name parameters;                                                          \
    EXPORT type static_##name parameters

static struct link_map static_map = {.l_name = (char[]){""}};

/* The program is the only module. */
STAND_IN(int, _dl_find_object, (void *address, struct dl_find_object *object))
{
    const struct attached_program *program = &attached.program;
    if ((uintptr_t)address - program->begin >= program->end - program->begin)
        return -1;
    static_map.l_addr = program->bias;
    *object = (struct dl_find_object){.dlfo_map_start = (void *)program->begin,
                                      .dlfo_map_end = (void *)program->end,
                                      .dlfo_link_map = &static_map,
                                      .dlfo_eh_frame = (void *)program->frame_index};
    return 0;
}

STAND_IN(unsigned long, getauxval, (unsigned long type))
{
    switch (type) {
    case AT_PHDR:
        return attached.auxiliary[0];
    case AT_PHNUM:
        return attached.auxiliary[1];
    case AT_EXECFN:
        return attached.auxiliary[2];
    default:
        return 0;
    }
}

STAND_IN(char *, getenv, (const char *name))
{
    size_t size = strlen(name);
    for (char **variable = program_environment; variable && *variable; variable++)
        if (strncmp(*variable, name, size) == 0 && (*variable)[size] == '=')
            return *variable + size + 1;
    return NULL;
}

STAND_IN(int, access, (const char *path, int mode))
{
    return sys_call6(SYS_faccessat, AT_FDCWD, (long)path, mode, 0, 0, 0) == 0 ? 0 : -1;
}

STAND_IN(unsigned long, pthread_self, (void))
{
    unsigned long self;
    __asm__("movq %%fs:16, %0" : "=r"(self));
    return self;
}

STAND_IN(int, sigdelset, (sigset_t * set, int number))
{
    set->__val[(number - 1) / 64] &= ~(1UL << ((number - 1) % 64));
    return 0;
}

/* Its address alone is looked at: the C library is no module here. */
STAND_IN(const char *, gnu_get_libc_version, (void))
{
    return "";
}

/* Leaves the context as it is: where the program's coroutines return to stays unknown. */
STAND_IN(void, makecontext, (ucontext_t * context, void (*function)(void), int count, ...))
{
    (void)context, (void)function, (void)count;
}
