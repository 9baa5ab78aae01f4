/* SPDX-License-Identifier: MIT */
/* Stand-ins for functions that this library does without. */
#include <dlfcn.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "preload/attached/attached_parts.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/threads/internal.h"

/*
 * Functions of the loader, which knows nothing of this library, and whose locks may be held by a
 * thread that is stopped. _dl_find_object() itself waits for nobody.
 */

extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

int loader_find_object(void *address, struct dl_find_object *object) __asm__("_dl_find_object");
int attached_iterate(int (*function)(struct dl_phdr_info *, size_t, void *), void *context);

static struct link_map own_map = {.l_name = (char[]){"[ttdrecord]"}};

static void *stand_in_own_frame_index(void)
{
    const ElfW(Phdr) *segment =
        (const ElfW(Phdr) *)((const char *)&own_header + own_header.e_phoff);
    for (unsigned i = 0; i < own_header.e_phnum; i++)
        if (segment[i].p_type == PT_GNU_EH_FRAME)
            return (void *)(attached.begin + segment[i].p_vaddr);
    return NULL;
}

int attached_find_object(void *address, struct dl_find_object *object)
{
    if ((uintptr_t)address - attached.begin >= attached.end - attached.begin)
        return loader_find_object(address, object);
    own_map.l_addr = attached.begin;
    *object = (struct dl_find_object){.dlfo_map_start = (void *)attached.begin,
                                      .dlfo_map_end = (void *)attached.end,
                                      .dlfo_link_map = &own_map,
                                      .dlfo_eh_frame = stand_in_own_frame_index()};
    return 0;
}

int attached_iterate(int (*function)(struct dl_phdr_info *, size_t, void *), void *context)
{
    for (uint64_t i = 0; i < attached.module_count; i++) {
        const ElfW(Phdr) segment = {.p_type = PT_LOAD, .p_vaddr = attached.modules[i]};
        struct dl_phdr_info info = {.dlpi_name = "", .dlpi_phdr = &segment, .dlpi_phnum = 1};
        int result = function(&info, sizeof info, context);
        if (result != 0)
            return result;
    }
    return 0;
}

/* Parts that a library attached to a running process does not have. */

/* A signal stack would have to be taken away from a thread that runs. */
void signal_stack_give(void **memory)
{
    (void)memory;
}

/* The recorder looks for functions of allocators itself. */
void entries_look_at(uintptr_t address)
{
    (void)address;
}

/*
 * The functions of the C library on memory and strings that this library uses. The C library has
 * several of each; its loader chooses among them; here are plain ones.
 */

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

void *memmove(void *to, const void *from, size_t size)
{
    char *target = to;
    const char *source = from;
    if (target <= source || target >= source + size)
        return memcpy(to, from, size);
    while (size-- > 0)
        target[size] = source[size];
    return to;
}

void *memset(void *bytes, int value, size_t size)
{
    void *result = bytes;
    __asm__ volatile("rep stosb" : "+D"(bytes), "+c"(size) : "a"(value) : "memory");
    return result;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *a = left, *b = right;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] - b[i];
    return 0;
}

void *memchr(const void *bytes, int value, size_t size)
{
    const unsigned char *text = bytes;
    for (size_t i = 0; i < size; i++)
        if (text[i] == (unsigned char)value)
            return (void *)(size_t)&text[i];
    return NULL;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

size_t strnlen(const char *text, size_t limit)
{
    size_t size = 0;
    while (size < limit && text[size] != '\0')
        size++;
    return size;
}

int strncmp(const char *left, const char *right, size_t limit)
{
    for (; limit > 0; limit--, left++, right++)
        if (*left != *right || *left == '\0')
            return (unsigned char)*left - (unsigned char)*right;
    return 0;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, (size_t)-1);
}

char *strchr(const char *text, int c)
{
    for (;; text++) {
        if (*text == (char)c)
            return (char *)(size_t)text;
        if (*text == '\0')
            return NULL;
    }
}

char *strrchr(const char *text, int c)
{
    const char *last = NULL;
    for (;; text++) {
        if (*text == (char)c)
            last = text;
        if (*text == '\0')
            return (char *)(size_t)last;
    }
}

size_t strcspn(const char *text, const char *stops)
{
    size_t size = 0;
    while (text[size] != '\0' && !strchr(stops, text[size]))
        size++;
    return size;
}

size_t strspn(const char *text, const char *accepted)
{
    size_t size = 0;
    while (text[size] != '\0' && strchr(accepted, text[size]))
        size++;
    return size;
}

char *strstr(const char *text, const char *sought)
{
    size_t size = strlen(sought);
    for (; strncmp(text, sought, size) != 0; text++)
        if (*text == '\0')
            return NULL;
    return (char *)(size_t)text;
}

char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    return memcpy(to, from, strlen(from) + 1);
}

/*
 * Functions of the C library and the loader for a process whose program is linked statically: it
 * has some of them at most, and its own may be something else. The recorder takes them by their
 * names (ATTACHED_STATIC).
 */

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
