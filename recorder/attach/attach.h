/* SPDX-License-Identifier: MIT */
/*
 * Attaches the recorder to a process that runs, and detaches it. The library is mapped from outside
 * and functions are patched, while all threads are stopped; nothing of the process's C library or
 * loader is called. Whatever happens to the recorder meanwhile, the process can run on.
 */
#ifndef RECORDER_ATTACH_ATTACH_H
#define RECORDER_ATTACH_ATTACH_H

#include "patch/patch.h"
#include "snapshot/stop/threads.h"
#include "snapshot/stop/copy.h"
#include "attach/image.h"
#include "attach/known_blocks.h"
#include "attach/modules.h"

/* A function that is to be patched. */
struct attach_function {
    struct attach_module *module;
    const struct attached_hook *hook; /* in the image's bytes */
    uint64_t entry, size;
    bool has_own_name; /* it is an allocator's, beside the C library's */
    struct patch patch;
};

enum { ATTACH_REASON_SIZE = 512 };

struct attachment {
    uint32_t pid;
    int memory; /* of the process, as a file */
    struct attach_modules modules;
    struct attach_image image;
    struct interrupted_calls interrupted;
    uint64_t internal[ATTACHED_INTERNAL]; /* return addresses of calls within allocators */
    size_t internal_count;
    struct attach_function *functions;
    size_t function_count;
    /* What is in the process. */
    uint64_t base;      /* of the image; 0 if it is not mapped */
    uint64_t size, own; /* of the image, and the offset of the struct attached in it */
    uint64_t thread_block, thread_size; /* see struct attached; 0 if there is none */
    uint32_t id_field;
    int file;    /* the channel's descriptor; -1 if it is closed */
    int channel; /* our own */
    struct attached_undo undo;
    bool is_elsewhere; /* in another PID namespace */
    bool is_filtered;  /* by seccomp: that is suspended while it is stopped */
    bool is_to_wait;   /* a thread is where nothing can begin at this moment */
    bool is_mapped;    /* all of the image */
    bool has_run;      /* the library, so that any thread may be in it */
    bool is_patched;
    bool was_cleaned; /* an image that another recorder has left was removed */
    bool is_left;     /* pages stay in the process, since a thread has not left the hooks */
    /* The blocks that it had, and why these may not be all; NULL if they are. */
    struct known_blocks known;
    const char *known_reason;
    struct copy copy;
    struct copy_history copies;
    /* NAME=VALUE, for programs that the process executes; empty for none. To be set before
     * attach_begin(). */
    char preload[ATTACHED_PRELOAD], place[ATTACHED_PLACE];
    uint64_t stop_time;             /* nanoseconds for which the process was stopped, in all */
    char command[ATTACHED_COMMAND]; /* arguments, each with a NUL behind it */
    size_t command_size;
    char reason[ATTACH_REASON_SIZE]; /* of a refusal */
};

/* Examines the process and plans all. Returns false with the reason if it cannot be attached to;
 * nothing was changed then. */
bool attach_plan(struct attachment *attachment, uint32_t pid, const char *library);

/* Only removes the remains of a killed recorder. Returns whether there was anything, and it is
 * gone; if not, `reason` says why, or is empty if there was nothing. */
bool attach_clean_left(uint32_t pid, const char *library, char reason[ATTACH_REASON_SIZE]);

/* Removes the library from a child that has forked from a process with it. Returns false if it
 * stays there, unused. */
bool attach_clean_child(uint32_t pid, const char *library);

/* Maps the library and makes the channel's file, which is `channel` then. Returns false likewise.
 */
bool attach_reserve(struct attachment *attachment);

/* Begins to record: the channel has been set up. Then finds the blocks that the process had, while
 * it goes on; `tick` is called every millisecond meanwhile. Returns false likewise. */
bool attach_begin(struct attachment *attachment, void (*tick)(void *context), void *context);

/* Takes the hooks away: no call enters them any more. */
void attach_unhook(struct attachment *attachment);

/* Removes the library once no thread is in the hooks. Returns false as long as one is: to be called
 * again soon. */
bool attach_remove(struct attachment *attachment);

/* Whether the library is not there any more: the process has executed another program, or ended. */
bool attach_is_gone(const struct attachment *attachment);

/* Whether the process has executed another program, which is not recorded. */
bool attach_has_executed(const struct attachment *attachment);

/* Removes the remains of a killed recorder. Returns false, with the reason, if that is impossible
 * now. */
bool attach_clean(struct attachment *attachment);

/* Takes the hooks away and removes the library, like attach_unhook() and attach_remove(), and waits
 * for threads that are in the hooks; not for ever. */
void attach_give_up(struct attachment *attachment);

void attachment_free(struct attachment *attachment);

#endif
