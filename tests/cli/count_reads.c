/* SPDX-License-Identifier: MIT */
/*
 * Loaded into ttdanalyze: counts the reads of COUNT_SIZE bytes at the offset COUNT_AT, and writes
 * their number to the file COUNT_TO when the program ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef intptr_t read_function(int file, void *data, size_t size, int64_t offset);

/* Not those of unistd.h, which are one and the same where offsets have 64 bits. */
read_function pread;
read_function pread64;

static atomic_ulong reads;

static intptr_t count(const char *name, int file, void *data, size_t size, int64_t offset)
{
    const char *wanted_offset = getenv("COUNT_AT");
    const char *wanted_size = getenv("COUNT_SIZE");
    if (wanted_offset && wanted_size && offset == atoll(wanted_offset) &&
        size == (size_t)atoll(wanted_size))
        atomic_fetch_add(&reads, 1);
    void *symbol = dlsym(RTLD_NEXT, name);
    read_function *next;
    memcpy(&next, &symbol, sizeof next);
    return next(file, data, size, offset);
}

intptr_t pread(int file, void *data, size_t size, int64_t offset)
{
    return count("pread", file, data, size, offset);
}

intptr_t pread64(int file, void *data, size_t size, int64_t offset)
{
    return count("pread64", file, data, size, offset);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("COUNT_TO");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%lu\n", atomic_load(&reads));
        fclose(file);
    }
}
