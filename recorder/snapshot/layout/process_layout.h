/* SPDX-License-Identifier: MIT */
/**
 * The layout of a process's memory: the regions that are searched for references. The mappings are
 * cut, in turn, by the parts of modules, the recorder, threads and allocators in them.
 */
#ifndef RECORDER_SNAPSHOT_LAYOUT_PROCESS_LAYOUT_H
#define RECORDER_SNAPSHOT_LAYOUT_PROCESS_LAYOUT_H

#include <elf.h>
#include <string.h>

#include "snapshot/heap_pages.h"
#include "snapshot/layout/glibc.h"
#include "snapshot/layout/maps.h"
#include "snapshot/process_memory.h"

struct snapshot_module {
    ttd_id id; /* in the trace */
    const char *path;
    uint64_t bias, begin, end;
    uint64_t device, inode, changed; /* of its file; inode 0 if it may be another one by now */
};

/** The collector's knowledge of a process. */
struct snapshot_subject {
    const struct snapshot_module *modules; /* those that are loaded */
    size_t module_count;
    const struct heap_pages *pages;
    bool asks_usable_sizes; /* the program may use blocks beyond their sizes */
    uint64_t channel_inode; /* of the file of the channel, whose name is CHANNEL_NAME */
    uint64_t own_memory;    /* address in the process of the first struct own_memory, or 0 */
    bool moves_break;       /* the program itself moves the program break */
    bool has_other_malloc;  /* functions of others give blocks that count as malloc()'s */
    uint64_t fault_address; /* its mapping is a region in any case, to be named; 0 for none */
};

#define OWN_LIBRARY "libttdpreload.so"

/** A living thread of the process. */
struct layout_thread {
    uint32_t tid;
    bool is_known;        /* it was stopped, and the rest is set */
    uint64_t stack_begin; /* where the part of the stack that is in use begins */
    /** It may run on memory within its own stack, such as a signal stack or the stack of a
       coroutine in a local variable: frames may be anywhere. */
    bool is_within_frame;
    uint64_t thread_pointer;
};

/** Names of regions of modules; compared by address. */
extern const char layout_data_name[], layout_bss_name[];

struct layout {
    struct maps maps;         /* has the names of the regions */
    struct regions regions;   /* by address, without those that are skipped */
    struct glibc_arena arena; /* the main one of the C library's allocator, in this module */
    ttd_id arena_module;      /* TTD_NONE if there is none */
    bool is_whole;            /* no memory is missing */
    bool has_kernel_queue;    /* the kernel may hold pointers that are nowhere else */
};

/**
 * Finds the regions of a process with these threads, sorted by tid. Returns false if that is not
 * permitted, or memory ran out. The process's memory is not trusted: it yields regions that are
 * wrong, at worst.
 */
bool layout_find(struct layout *layout, uint32_t pid, const struct memory *memory,
                 const struct snapshot_subject *subject, const struct layout_thread *threads,
                 size_t thread_count);
void layout_free(struct layout *layout);

/* The segments of a module, by its program headers in the memory of a process. */

enum { MODULE_SEGMENTS = 64 };

/** Reads the segments of a module where it is loaded. Returns how many there are. */
static inline size_t module_segments(const struct memory *memory,
                                     const struct snapshot_module *module,
                                     Elf64_Phdr segments[MODULE_SEGMENTS])
{
    Elf64_Ehdr header;
    if (!memory_read(memory, module->begin, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phnum > MODULE_SEGMENTS ||
        header.e_phentsize != sizeof *segments || header.e_phoff >= module->end - module->begin ||
        !memory_read(memory, module->begin + header.e_phoff, segments,
                     header.e_phnum * sizeof *segments))
        return 0;
    return header.e_phnum;
}

#endif
