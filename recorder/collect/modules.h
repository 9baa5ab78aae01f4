/* SPDX-License-Identifier: MIT */
/* The modules of a process, and where in them the addresses of its stacks are. */
#ifndef TTD_COLLECT_MODULES_H
#define TTD_COLLECT_MODULES_H

#include "stacks.h"

struct module {
    char *path;
    uint8_t build_id[TTD_BUILD_ID_MAX];
    uint32_t build_id_size;
    uint64_t bias, begin, end;
    bool is_loaded;
};

/* An address that occurs in stacks. */
struct frame {
    ttd_id module;   /* TTD_NONE if it is in none; the offset is the address then */
    bool is_settled; /* its names are in the trace, or it has none */
    uint64_t offset;
};

struct modules {
    struct module *items; /* by id in the trace - 1; they stay when they are unloaded */
    size_t count, capacity;
    size_t hint; /* index of the module that was found last */
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct stacks addresses; /* as stacks without a caller; ids are those of frames, from 1 */
};

/* False when there is no memory. */
bool modules_init(struct modules *modules);
void modules_free(struct modules *modules);

/* Adds a module that was loaded; its path is copied. False when there is no memory. */
bool modules_add(struct modules *modules, const struct module *module);

/* The index of the loaded module that begins there; SIZE_MAX if there is none. */
size_t modules_at(const struct modules *modules, uint64_t begin);

/* The module is gone: other code will be at its addresses. */
void modules_unload(struct modules *modules, size_t index);

/* Forgets where addresses are: the process image is gone. */
void modules_forget(struct modules *modules);

/* Where an address is; NULL when there is no memory. Valid until the next call. */
const struct frame *modules_frame(struct modules *modules, uint64_t pc);

#endif
