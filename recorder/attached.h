/* SPDX-License-Identifier: MIT */
/**
 * The library that is attached to a running process: its image, between the library itself and the
 * recorder, its loader. The recorder maps it, relocates it and writes it through the process's
 * memory; neither the C library nor the loader of the process know of it. Functions of the process
 * are patched so that they jump to the library's hooks.
 *
 * Each call reaches its hook by a *gate* near the function; this hands the hook the function behind
 * it: the trampoline, as an argument more than the function has. So the same hook serves the
 * functions of a name in all modules.
 */
#ifndef RECORDER_ATTACHED_H
#define RECORDER_ATTACHED_H

#include <stdint.h>

#include "channel.h"

#define ATTACHED_SYMBOL "ttdrecord_attached"
#define ATTACHED_MAGIC  UINT64_C(0x3643545441445454) /* "TTDATTC6" */

/** In the padding of the identification of the image's ELF header, so that it is found in memory.
 * The entry point of that header is the offset of the struct attached. */
#define ATTACHED_MARK "TTDATT"
/** Begins the names of the library's own functions that take the place of functions of the C
 * library and the loader in a program that is linked statically: it need not have these. */
#define ATTACHED_STATIC  "static_"
#define ATTACHED_MARK_AT 9

enum {
    ATTACHED_NAME_SIZE = 40,
    ATTACHED_COMMAND = 1024,
    ATTACHED_PRELOAD = 4200,
    ATTACHED_PLACE = 96,
    ATTACHED_MODULES = 1024,
    ATTACHED_PATCHES = 512,
    ATTACHED_AREAS = 64,
    ATTACHED_INTERNAL = 1024,
    ATTACHED_ENTRY_SIZE = 5,
    ATTACHED_SIGNALS = 64,
};

/**
 * Memory of the live API: clients that the program holds, and code that their functions lead to. It
 * is made when the program first asks for the API, and stays when the library is removed; the
 * library of a later recording finds it. It begins with a page of code that ends its mapping, with
 * a mark of the layout at its begin; the first of the data behind it are the addresses that the
 * code goes on to, 0 for functions that do nothing.
 */
#define ATTACHED_LIVE_MARK UINT64_C(0x314556494c445454) /* "TTDLIVE1" */
enum { ATTACHED_LIVE_CODE = 4096, ATTACHED_LIVE_SLOTS = 32 };

/** A hook, by the name of the function that it stands for. */
struct attached_hook {
    _Alignas(64) char name[ATTACHED_NAME_SIZE];
    uint64_t address;
    uint32_t arguments; /* of the function, in registers: at most 5; or ATTACHED_IN_R11 */
    uint32_t place;     /* enum attached_place */
    uint64_t quick;     /* of the hook if not all blocks are recorded; 0: the same one */
};

/** Modules where the function is hooked. */
enum attached_place {
    ATTACHED_EVERYWHERE,
    ATTACHED_IN_ALLOCATOR, /* those that define functions of only one allocator */
    ATTACHED_IN_LIBC,
    ATTACHED_IN_LOADER, /* the C library or its loader */
};

/** The hook is assembly, and expects the function behind it in r11. */
enum { ATTACHED_IN_R11 = 100 };

/** The changes to undo, in the order of their making. */
struct attached_undo {
    uint64_t patch_count;
    struct attached_patch {
        uint64_t entry;
        uint64_t trampoline;
        uint8_t jump[8], original[8]; /* the first ATTACHED_ENTRY_SIZE bytes */
        uint64_t is_clean;            /* the page was as in its file */
        uint64_t finds_frames;        /* unwinders find the frames of hooks by it */
    } patches[ATTACHED_PATCHES];
    uint64_t area_count;
    struct attached_area {
        uint64_t begin, size;
    } areas[ATTACHED_AREAS];
};

/** A program that is linked statically: the only module of its process, without a loader. */
struct attached_program {
    uint64_t begin, end; /* 0 for all other programs */
    uint64_t bias;
    uint64_t frame_index; /* address of .eh_frame_hdr; 0 if it has none */
};

struct attached {
    uint64_t magic;
    uint64_t hooks, hooks_end; /* addresses of an array of struct attached_hook */
    uint64_t run;              /* address of the code that begins to record: see borrow_run() */
    uint64_t own_memory;       /* address of the first struct own_memory */
    struct borrowed_code borrowed;
    /** Set by the recorder. */
    uint64_t key;          /* see stale.h; another one for each attach */
    uint32_t recorder;     /* its process */
    uint32_t id_field;     /* likewise */
    int32_t file;          /* descriptor of the channel; the library closes it; -1 then */
    uint64_t begin, end;   /* of the image */
    uint64_t thread_block; /* offset of the thread-local data from the thread pointer */
    uint64_t thread_size;
    /** Return addresses of calls within allocators: see internal.h of the library. */
    uint64_t internal_begin, internal_end; /* they lie there */
    uint64_t internal_count;
    uint64_t internal[ATTACHED_INTERNAL]; /* sorted */
    uint32_t is_filtered; /* by seccomp: the library makes no system call once it has begun */
    uint32_t command_size;
    char command[ATTACHED_COMMAND]; /* arguments, each with a NUL behind it */
    /** NAME=VALUE, for programs that the process executes: LD_PRELOAD, and where the channel is. */
    char preload[ATTACHED_PRELOAD];
    char place[ATTACHED_PLACE];
    struct attached_program program;
    uint64_t auxiliary[3]; /* AT_PHDR, AT_PHNUM, AT_EXECFN */
    uint64_t module_count;
    uint64_t modules[ATTACHED_MODULES]; /* an address in each */
    struct attached_undo undo;
    /** Address of the memory of the live API; 0 for none. Set by the recorder, or later by the
     * library. */
    uint64_t live;
    /** Set by the library. */
    uint32_t over;    /* it has begun, or has failed to */
    uint32_t records; /* it has begun */
    uint64_t channel; /* address of the channel */
    /** Signals whose default action the library's handler may have taken the place of, a bit for
     * each; that action, as the system has it; the recorder restores it; and room for the present
     * one. */
    uint64_t signals;
    struct attached_action {
        uint64_t handler, flags, restorer, mask;
    } defaults[ATTACHED_SIGNALS + 1], present;
};

/** The thread-local data of the library begin with these. They lie in bytes of the thread's control
 * block that the C library does not use. */
struct attached_thread {
    uint64_t mark; /* ATTACHED_MAGIC: the bytes are the library's, of this or an earlier time */
    uint64_t cookie;
    uint64_t depth; /* number of hooks that the thread is in */
};

#endif
