/* SPDX-License-Identifier: MIT */
/*
 * A process that is attached to may have any file mapped as a module: its segments and its tables
 * of symbols are read within their bounds, and no name reaches beyond its table. An input is a
 * file, which this process maps.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../capture.h"
#include "../target.h"
#include "attach/attach.h"

static void check_symbols(struct attach_module *module, bool are_all)
{
    const struct attach_symbols *symbols = attach_module_symbols(module, are_all);
    size_t within = 0;
    for (size_t i = 0; i < symbols->count; i++)
        if (symbols->items[i].st_name < symbols->names_size)
            within += strlen(symbols->names + symbols->items[i].st_name) <= symbols->names_size;
        else
            within++;
    target_require(within == symbols->count, "names end in their table");
    target_require(symbols == attach_module_symbols(module, are_all), "a table is read once");
}

static void check_module(struct attach_module *module)
{
    unsigned char bytes[32];
    target_require(module->end > module->begin, "a module has a size");
    check_symbols(module, false);
    check_symbols(module, true);
    attach_module_symbol(module, "malloc");
    for (uint64_t address = module->begin; address < module->begin + 4096; address += 1000)
        attach_module_read(module, address, bytes, sizeof bytes);
    attach_module_read(module, module->end - 1, bytes, sizeof bytes);
    attach_module_read(module, UINT64_MAX, bytes, sizeof bytes);
}

static void check_mapped(const void *mapping)
{
    struct attach_modules modules;
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    uint32_t pid = (uint32_t)getpid();
    target_require(memory >= 0 && attach_modules_read(&modules, pid, pid, memory), "mappings");
    for (size_t i = 0; i < modules.count; i++)
        if (modules.items[i].begin == (uintptr_t)mapping)
            check_module(&modules.items[i]);
    attach_modules_free(&modules);
    close(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[128];
    if (!*path)
        snprintf(path, sizeof path, "%s/module", capture_directory());
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    target_require(file >= 0 && write(file, data, size) == (ssize_t)size, "a file");
    void *mapping = size != 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (mapping != MAP_FAILED) {
        check_mapped(mapping);
        munmap(mapping, size);
    }
    unlink(path);
    return 0;
}
