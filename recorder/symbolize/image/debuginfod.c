/* SPDX-License-Identifier: MIT */
/*
 * The reader of debug information loads the library for debuginfod servers, and two dozen that this
 * needs, for each file without separate debug information, to find out that the user has named no
 * server. That takes longer than to read most files. So its call comes here first.
 * Only the program links this file: tests and fuzz targets keep their dlopen().
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *dlopen_function(const char *, int);

void *dlopen(const char *file, int mode)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    dlopen_function *next;
    if (file && strncmp(file, "libdebuginfod", strlen("libdebuginfod")) == 0 &&
        (!servers || *servers == '\0'))
        return NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return next(file, mode);
}
