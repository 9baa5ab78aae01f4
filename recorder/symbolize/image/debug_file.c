/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* asprintf, strchrnul */
#include "symbolize/image/debug_file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/image/image_file.h"

enum { BUILD_ID_MAX = 64 };

/* The second half of libdwfl's own default; the first is for files beside the module's. */
#define SYSTEM_DIRECTORY "/usr/lib/debug"

char *debug_file_path;
static const char *added_path = "";

void symbolize_set_debug_path(const char *path)
{
    added_path = path;
    free(debug_file_path);
    if (asprintf(&debug_file_path, ":.debug:" SYSTEM_DIRECTORY ":%s", path) < 0)
        debug_file_path = NULL;
}

static int open_below(const char *directory, size_t size, const char *id, char **path)
{
    if (size == 0 ||
        asprintf(path, "%.*s/.build-id/%.2s/%s.debug", (int)size, directory, id, id + 2) < 0)
        return -1;
    int fd = image_file_open(*path);
    if (fd < 0)
        free(*path);
    return fd;
}

static int open_local(const char *id, char **path)
{
    int fd = open_below(SYSTEM_DIRECTORY, strlen(SYSTEM_DIRECTORY), id, path);
    for (const char *directories = added_path; fd < 0 && *directories != '\0';) {
        size_t size = (size_t)(strchrnul(directories, ':') - directories);
        fd = open_below(directories, size, id, path);
        directories += size + (directories[size] == ':');
    }
    return fd;
}

/* The functions of libdebuginfod that are used; see debuginfod_find_debuginfo(3). */
struct debuginfod {
    void *(*begin)(void);
    int (*find)(void *client, const unsigned char *id, int size, char **path);
    void (*end)(void *client);
};

static bool debuginfod_load(struct debuginfod *library)
{
    /* debuginfod.c returns NULL if the user has named no server. */
    void *loaded = dlopen("libdebuginfod.so.1", RTLD_LAZY);
    if (loaded == NULL)
        return false;
    *(void **)&library->begin = dlsym(loaded, "debuginfod_begin");
    *(void **)&library->find = dlsym(loaded, "debuginfod_find_debuginfo");
    *(void **)&library->end = dlsym(loaded, "debuginfod_end");
    return library->begin != NULL && library->find != NULL && library->end != NULL;
}

static int download(const struct symbolize_module *module, char **path)
{
    struct debuginfod library;
    void *client = debuginfod_load(&library) ? library.begin() : NULL;
    if (client == NULL)
        return -1;
    int fd = library.find(client, module->build_id, (int)module->build_id_size, path);
    library.end(client);
    return fd < 0 ? -1 : fd;
}

int debug_file_open(const struct symbolize_module *module, char **path)
{
    char id[2 * BUILD_ID_MAX + 1];
    if (module->build_id_size < 2 || module->build_id_size > BUILD_ID_MAX)
        return -1;
    for (size_t i = 0; i < module->build_id_size; i++)
        snprintf(id + 2 * i, 3, "%02x", module->build_id[i]);
    int fd = open_local(id, path);
    return fd >= 0 ? fd : download(module, path);
}
