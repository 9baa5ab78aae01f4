/* SPDX-License-Identifier: MIT */
#include "inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "arrays.h"

static int *descriptors;
static size_t count, capacity;

static void inherited_add(int descriptor)
{
    void *grown = array_grow(descriptors, count, &capacity, sizeof *descriptors);
    if (grown == NULL)
        return;
    descriptors = grown;
    descriptors[count++] = descriptor;
}

void inherited_note(void)
{
    DIR *files = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (files != NULL && (entry = readdir(files)) != NULL) {
        int descriptor = atoi(entry->d_name);
        if (descriptor > STDERR_FILENO && descriptor != dirfd(files))
            inherited_add(descriptor);
    }
    if (files != NULL)
        closedir(files);
}

void inherited_close(void)
{
    while (count > 0)
        close(descriptors[--count]);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
}
