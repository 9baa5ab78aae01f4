/* SPDX-License-Identifier: MIT */
/**
 * Attaches the recorder to a process that runs, and detaches it. The library is mapped from outside
 * and functions are patched, while all threads are stopped; nothing of the process's C library or
 * loader is called. Whatever happens to the recorder meanwhile, the process can run on.
 */
#ifndef RECORDER_ATTACH_ATTACH_H
#define RECORDER_ATTACH_ATTACH_H

#include <elf.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patch/patch.h"
#include "snapshot/stop/threads.h"
#include "snapshot/stop/copy.h"
#include "attach/known_blocks.h"
#include "attached.h"
#include "snapshot/layout/maps.h"

/*
 * A program that this process starts, held from its execution until it is recorded. One thread
 * traces it and does all work on it, so that it does not run in between. Nothing of the program is
 * changed: if this process dies, the program runs on.
 */

struct attach_hold {
    uint32_t pid;
    pthread_t thread;
    sem_t asked, done;
    void (*work)(void *context); /* NULL: let it go, and end */
    void *context;
    struct interrupted_calls *interrupted;
    struct threads threads; /* its only one, once it is stopped */
    bool is_traced;
    bool is_stopped;
};

/** Begins to trace a child that is about to execute a program. Returns false if that is not
 * permitted. */
bool attach_hold_begin(struct attach_hold *hold, uint32_t pid,
                       struct interrupted_calls *interrupted);

/** Waits until the child has executed the program, and stands before its first instruction. Returns
 * false if the child has ended. */
bool attach_hold_program(struct attach_hold *hold);

/** Lets the program run until its C library has set up the first thread; nothing is allocated
 * before. Returns NULL, or the reason why the program cannot be stopped there. */
const char *attach_hold_thread(struct attach_hold *hold);

/** Does some work in the thread that traces the program; `tick` (may be NULL) is called every
 * millisecond meanwhile. */
void attach_hold_do(struct attach_hold *hold, void (*work)(void *context), void *context,
                    void (*tick)(void *context), void *tick_context);

/** Lets the program go, and stops tracing it. */
void attach_hold_end(struct attach_hold *hold);

/* The modules of another process, and the symbols that their files export. */

/** A table of symbols of a module's file. */
struct attach_symbols {
    Elf64_Sym *items;
    size_t count;
    char *names; /* ends with a NUL */
    size_t names_size;
};

struct attach_module {
    const char *path; /* in the maps */
    uint64_t begin, end, bias;
    int file; /* -1 if it cannot be opened, or is not the mapped file */
    Elf64_Phdr *segments;
    size_t segment_count;
    struct attach_symbols exported, all; /* `items` is NULL before the first look */
};

struct attach_modules {
    struct maps maps;
    struct attach_module *items;
    size_t count;
};

/** Lists the modules of a process; `memory` is its memory as a file. Returns false if its mappings
 * cannot be read, or memory ran out. */
bool attach_modules_read(struct attach_modules *modules, uint32_t pid, uint32_t tid, int memory);
void attach_modules_free(struct attach_modules *modules);

/** Returns the module whose file has a name that begins so; NULL if there is none. */
struct attach_module *attach_modules_named(struct attach_modules *modules, const char *name);

/** Returns the module of the program itself: the first one mapped of its file; or NULL. */
struct attach_module *attach_modules_program(struct attach_modules *modules, uint32_t pid);

/** Returns the first segment of a type; NULL if there is none. */
const Elf64_Phdr *attach_module_segment(const struct attach_module *module, uint32_t type);

/** Finds a symbol that the module defines, exported or not. Returns its address, or 0. */
uint64_t attach_module_any_symbol(struct attach_module *module, const char *name);

/** Finds a symbol that the module defines and exports, but for a function that the loader is to
 * choose. Returns its address, or 0. */
uint64_t attach_module_symbol(struct attach_module *module, const char *name);

/** Returns the symbols that other modules see, or all that the file names. */
const struct attach_symbols *attach_module_symbols(struct attach_module *module, bool are_all);

/** Reads bytes of the module as they are in its file, at an address that was not relocated. */
bool attach_module_read(const struct attach_module *module, uint64_t address, void *bytes,
                        size_t size);

/** A function that is to be patched. */
struct attach_function {
    struct attach_module *module;
    const struct attached_hook *hook; /* in the image's bytes */
    uint64_t entry, size;
    bool has_own_name; /* it is an allocator's, beside the C library's */
    bool is_of_system; /* the C library's, or the loader's */
    struct patch patch;
};

enum { ATTACH_REASON_SIZE = 512 };

/* The image of the library that is attached: loaded from its file, and relocated for a process. */

struct attach_image {
    uint8_t *bytes;     /* as they are to be in the process */
    size_t size;        /* a multiple of the page size */
    size_t data;        /* offset of the part that is written to, likewise */
    uint64_t own;       /* offset of the struct attached */
    uint64_t call;      /* offset of the code for a system call: see struct borrowed_code */
    uint64_t copy;      /* offset of the code that makes a copy, likewise */
    uint64_t stack_end; /* offset, likewise */
    uint64_t run;       /* offset of the code that begins to record */
    const struct attached_hook *hooks; /* in `bytes` */
    size_t hook_count;
    uint64_t thread_size; /* of thread-local data */
};

/** Loads the file. Prints a message and returns false if it cannot be used. */
bool attach_image_load(struct attach_image *image, const char *path);
void attach_image_free(struct attach_image *image);

static inline struct attached *attach_image_own(const struct attach_image *image)
{
    return (struct attached *)(image->bytes + image->own);
}

/**
 * Relocates the image for the address `base`, with its thread-local data at an offset from the
 * thread pointer, and functions of the modules, or of the image and a program that is linked
 * statically (or NULL). Once only. Returns NULL, or the first name that none of them defines.
 */
const char *attach_image_relocate(struct attach_image *image, uint64_t base, int64_t thread_block,
                                  struct attach_modules *modules, struct attach_module *program);

/** Returns the name of the n-th symbol that must be found in the modules; NULL behind the last. If
 * `is_static`, only those that the image has nothing for. */
const char *attach_image_import(const struct attach_image *image, size_t number, bool is_static);

struct attachment {
    uint32_t pid;
    struct attach_hold *hold; /* of a program that is just starting; or NULL */
    int memory;               /* of the process, as a file */
    struct attach_modules modules;
    struct attach_module *program; /* NULL if it is not known */
    bool is_static;                /* the program is linked statically, with the GNU C library */
    struct attach_image image;
    struct interrupted_calls interrupted;
    uint64_t internal[ATTACHED_INTERNAL]; /* return addresses of calls within allocators */
    size_t internal_count;
    struct attach_function *functions;
    size_t function_count;
    /** Parts of the attached library in the process. */
    uint64_t base;      /* of the image; 0 if it is not mapped */
    uint64_t size, own; /* of the image, and the offset of the struct attached in it */
    uint64_t key;       /* of the struct attached */
    uint64_t thread_block, thread_size; /* see struct attached; 0 if there is none */
    uint32_t id_field;
    uint64_t live; /* see struct attached */
    int file;      /* the channel's descriptor; -1 if it is closed */
    int channel;   /* our own */
    /** Inode of the channel's file, by which its windows are found; 0 before the first try to
     * unmap them, which may unmap the window at the channel's address. */
    uint64_t channel_inode;
    struct attached_undo undo;
    bool is_elsewhere; /* in another PID namespace */
    /** Code of the allocators' functions, sorted: see attach_leave_calls(). */
    struct memory_span *bodies;
    size_t body_count, body_capacity;
    /** Threads in a call since before these were patched: it is not recorded, and may return at any
     * time. */
    uint32_t *in_call;
    size_t in_call_count, in_call_capacity;
    bool chooses;           /* not all blocks are recorded */
    bool has_unknown_calls; /* not all code of its allocator was looked through */
    bool
        has_hidden_calls; /* that, or it jumps where a register says: a call needs no frame there */
    bool is_filtered;     /* by seccomp: that is suspended while it is stopped */
    bool is_early;        /* its C library is not loaded yet */
    bool is_to_wait;      /* a thread is where nothing can begin at this moment */
    bool is_mapped;       /* all of the image */
    bool has_run;         /* the library, so that any thread may be in it */
    /** The number of the newest fragment, in the channel; NULL before it is open. And the largest
     * number of a call that took effect before the hooks were taken away; 0 before that. */
    _Atomic uint64_t *sequence;
    uint64_t last_sequence;
    bool is_patched;
    bool was_found;    /* an image that another recorder has left */
    uint32_t recorder; /* that recorder */
    bool was_cleaned;  /* it was removed */
    bool is_left;      /* pages stay in the process, since a thread has not left the hooks */
    /** Thread pointers of the process's threads when it was copied. */
    uint64_t *thread_pointers;
    size_t thread_count;
    /** The blocks that it had, and why these may not be all; NULL if they are. */
    struct known_blocks known;
    const char *known_reason;
    struct copy copy;
    struct copy_history copies;
    /** NAME=VALUE, for programs that the process executes; empty for none. To be set before
     * attach_begin(). */
    char preload[ATTACHED_PRELOAD], place[ATTACHED_PLACE];
    uint64_t stop_time;             /* nanoseconds that the process was stopped, in all */
    char command[ATTACHED_COMMAND]; /* arguments, each with a NUL behind it */
    size_t command_size;
    char reason[ATTACH_REASON_SIZE]; /* of a refusal */
};

/** Examines the process and plans all; `attachment` is zeros, but for the hold. Waits a second for
 * a program that is being executed or loaded. Returns false with the reason if it cannot be
 * attached to; nothing was changed then. */
bool attach_plan(struct attachment *attachment, uint32_t pid, const char *library);

/** Only removes the remains of a killed recorder. Returns whether there was anything, and it is
 * gone; if not, `reason` says why, or is empty if there was nothing. */
bool attach_clean_left(uint32_t pid, const char *library, char reason[ATTACH_REASON_SIZE]);

/** Removes the library from a child that has forked from a process with it. Returns false if it
 * stays there, unused. `sequence` and `last` are as in struct attachment. */
bool attach_clean_child(uint32_t pid, const char *library, _Atomic uint64_t *sequence,
                        uint64_t *last);

/** Whether the memory that was opened is no process's any more: the program has ended, or the
 * process has executed another one. */
bool attach_is_past(const struct attachment *attachment);

/** Forgets all but the hold, so that the process can be examined anew. */
void attach_forget(struct attachment *attachment);

/** Maps the library and makes the channel's file, `channel`. Returns false likewise.
 */
bool attach_reserve(struct attachment *attachment);

/** Begins to record: the channel has been set up. Then finds the blocks that the process had, while
 * it goes on; `tick` is called every millisecond meanwhile. Returns false likewise. */
bool attach_begin(struct attachment *attachment, void (*tick)(void *context), void *context);

/** Takes the hooks away: no call enters them any more. Those within go on, and may return blocks
 * whose releases are not recorded: so they are not recorded either, if they take effect behind
 * `last_sequence`. */
void attach_unhook(struct attachment *attachment);

/** Removes the library once no thread is in the hooks. Returns false as long as one is: to be
 * called again soon. */
bool attach_remove(struct attachment *attachment);

/** Whether the process has executed another program; that one is not recorded. */
bool attach_has_executed(const struct attachment *attachment);

/** Removes the remains of a killed recorder. Returns false, with the reason, if that is impossible
 * now. */
bool attach_clean(struct attachment *attachment);

/** Takes the hooks away and removes the library, like attach_unhook() and attach_remove(), and
 * waits for threads that are in the hooks; not for ever. */
void attach_give_up(struct attachment *attachment);

void attachment_free(struct attachment *attachment);

#endif
