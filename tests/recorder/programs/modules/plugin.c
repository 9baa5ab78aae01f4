/* SPDX-License-Identifier: MIT */
/* Loads libraries, calls into them, unloads them, and loads others where they were. */
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    void *leaked = NULL;
    for (int round = 0; round < 20; round++)
        for (int i = 1; i < count; i++) {
            void *library = dlopen(arguments[i], RTLD_NOW);
            if (!library)
                return 2;
            void *(*allocate)(void);
            *(void **)&allocate = dlsym(library, "allocate");
            leaked = allocate();
            dlclose(library);
        }
    return leaked ? 0 : 1;
}
