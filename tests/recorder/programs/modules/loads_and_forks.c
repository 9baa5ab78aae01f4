/* SPDX-License-Identifier: MIT */
/*
 * Forks children while another thread loads and unloads a library whose function allocates. A child
 * calls a function of a second library, which was loaded before, and has not called anything yet.
 * loads_and_forks LIBRARY SECOND_LIBRARY FORKS. Has many mappings, so that reading the list of them
 * takes most of the time of a load.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAPPINGS = 2000, PAGE = 4096 };

static atomic_bool is_over;

struct library {
    void *handle;
    void *(*allocate)(void);
};

static struct library load(const char *path)
{
    struct library library = {.handle = dlopen(path, RTLD_NOW)};
    if (library.handle)
        *(void **)&library.allocate = dlsym(library.handle, "allocate");
    if (!library.allocate)
        _exit(2);
    return library;
}

static void *load_again_and_again(void *path)
{
    while (!atomic_load(&is_over)) {
        struct library library = load(path);
        free(library.allocate());
        dlclose(library.handle);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count != 4)
        return 2;
    char *memory = mmap(NULL, 2 * MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < MAPPINGS; i++)
        mprotect(memory + 2 * i * PAGE, PAGE, PROT_NONE);
    struct library second = load(arguments[2]);
    pthread_create(&thread, NULL, load_again_and_again, arguments[1]);
    for (int i = 0; i < atoi(arguments[3]); i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            free(second.allocate());
            _exit(7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 3;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            fprintf(stderr, "child %d has ended with status %#x\n", i, (unsigned)status);
            return 4;
        }
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}
