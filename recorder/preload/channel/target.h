/* SPDX-License-Identifier: MIT */
/**
 * The process that the preload library records, and its part of the channel. Its threads are in
 * threads/thread.h, their nested calls in threads/levels.h.
 *
 * Everything here runs inside somebody else's program, at any moment, in any thread, also in
 * signal handlers and in the children of fork and vfork. So memory comes only from mmap, the fast
 * path takes no lock, errno is never changed, and nothing is torn down.
 */
#ifndef RECORDER_PRELOAD_CHANNEL_TARGET_H
#define RECORDER_PRELOAD_CHANNEL_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel_view.h"
#include "preload/system/sys.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))

/** Puts a hook among those whose frames stacks do not have: it only stands between its caller and
 * the function that this calls, and allocates nothing itself. */
#define HOOK_CODE __attribute__((section("hook_code")))

/** The part of the address space where a thread's stack may be read: [low, high). */
struct stack_bounds {
    uintptr_t low;
    uintptr_t high;
    bool grows; /* downwards, beyond low: the first thread's */
};

enum asking { ASKING_NOT, ASKING_NOW, ASKING_OVER };

/** Reads 0 in the child of a fork, by MADV_WIPEONFORK, and stays 1 in the child of a vfork. */
struct on_page {
    uint32_t on;
    /** The collector has refused this process: it is not to begin again. */
    uint32_t refused;
    /** Room for a record has been taken. */
    _Atomic uint32_t has_records;
    /** Whether a snapshot has been asked for at the end: one of enum asking. */
    _Atomic uint32_t asking;
    /** The process is about to die of a signal. */
    _Atomic uint32_t dies;
    /** The `sequence` of the process's slot, whose `mark` leads here. */
    uint64_t mark;
};

struct thread;

extern HIDDEN struct channel *target_channel;
extern struct channel_view target_view;
extern HIDDEN struct on_page *target_on;
/** Set when the system has no expedited membarrier: the collector then relies on our own fence. */
extern bool target_fences;

/* The channel, as this process sees it (view.c). */

/** Maps the header of the channel that the variable names. False if it is none. */
bool channel_attach(const char *variable);

/** Does so by a descriptor. `path` opens the same file, if this process can reach that. */
bool channel_attach_file(int file, const char *path);

/** Returns the path that opens the channel, or did where it was attached. */
const char *channel_place(void);

/** Returns a descriptor of the channel for the program that is executed now: the collector hands it
 * over to a process that cannot open the channel itself. -1 if there is none; otherwise the caller
 * closes it (lend.c). */
int channel_lend(void);

/** Whether a program that this process executes can attach: it opens the channel by its path. A
 * process that has become another user may still do so, but not once it has executed it. */
bool channel_is_reachable(void);

/** Returns the process that had the channel locked when it was attached, in this process's
 * namespace; 0 for none. */
uint32_t channel_owner(void);

/** Set when a window could not be mapped: waiting for an entry within it is useless. */
extern _Atomic bool channel_is_short;

/** Maps ahead, while that is allowed, the windows that more threads and children will need. */
void channel_map_ahead(void);

/* Process (process/process.c). */

/** Returns this process's slot, from 1; CHANNEL_NONE before it is attached. */
uint32_t process_index(void);

/** Whether this is the process that was attached, and not a child that shares its memory. */
bool process_is_own(void);

/** Returns the path of the library that the loader is to load into programs that are executed; NULL
 * if it is not known. */
const char *process_library(void);

/** Set once the program may be confined by seccomp: no system calls from there on
 * (process/confine.c). */
extern bool process_is_confined;

/** Confines the recorder. */
void process_confine(void);

/** Set if the process is, or may be, in another PID namespace than the collector. */
extern bool process_is_elsewhere;

/** Set in a copy of the process that only reports the blocks that the runtimes would release
 * (end/runtime.c). */
extern bool process_is_copy;

/** Set, beside process_is_copy, in a process that reports them itself because it has nothing else
 * left to do. */
extern bool process_asks_itself;

/** Makes the next call begin anew, as the first one in a fork's child does. */
void process_forget(void);

/** Shows the collector the state of the process: enum process_notes. */
void process_note(uint32_t note);

/** Called before and after an attempt to execute another program; not in a confined process. */
void process_executes(bool begins);

/** Notes, in a copy, that the runtimes have released all that they keep. */
void process_told_all(void);

/** The strings that make a new process image record, as NAME=VALUE; NULL when this one does not. */
const char *process_preload(void);
const char *process_channel(void);

/** Facts about the calling thread, from the C library (threads/control.c). */
struct stack_bounds stack_bounds_find(uintptr_t stack_pointer);

/** Sets, in the child of a fork, the stack that its only thread has from its parent. */
void stack_bounds_inherit(const struct stack_bounds *bounds);

/** Finds the program's arguments, before it may have changed where they are. */
void arguments_find(void);

/** Sets them in a process that had run before. */
void arguments_set(const char *text, size_t size);

/** Returns the arguments as they are now, each with a NUL behind it; NULL if they were not found.
 */
const char *arguments(size_t *size);

/** Returns the thread's id; 0 if that needs a system call and none may be made. */
uint32_t thread_id(void);

/* The collector and its memory (slot.c). */

/** Whether the collector has ended. */
bool collector_is_gone(void);

/** The last progress of the collector that was seen, and how long was waited since then, until the
 * last look. All zero at first. */
struct patience {
    uint32_t progress;
    uint64_t waited;
    uint64_t looked;
};

/** A collector without progress for so long has stalled. It may also just have lost its processor,
 * or wait for a busy disk, for a second or two. */
#define COLLECTOR_STALL_NS UINT64_C(5000000000)

/** Whether the collector has stalled: it was stopped, or the file that it writes to blocks. `now`
 * and `limit` may be of any unit. */
bool collector_has_stalled(struct patience *patience, uint64_t now, uint64_t limit);

/** Wakes the collector, for example so that it sees a process before that is gone. */
void collector_wake(void);

/** Notes that the custom heaps of the process changed, in a fragment that began with this change. A
 * fork copies the note: so the child knows its parent's changes. */
void slot_note_heaps(uint64_t sequence);

/** Keeps notes that hold for the children of a fork as well: their slots begin with them. */
void slot_keep_notes(uint32_t notes);

/**
 * Claims a slot for this process, `pid`; may wait for one. For a fork, `parent` is the slot of the
 * process that forked, at that sequence and step of its thread; else it is CHANNEL_NONE. Returns
 * CHANNEL_NONE if there is no slot.
 */
uint32_t slot_claim(uint32_t pid, uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps);

/** Waits until the collector has found the process of a slot, elsewhere: once it has ended, nobody
 * would know its id. */
void slot_await_seen(uint32_t index);

/**
 * Takes a chunk with room for `words`, in place of the chunk `full`, or as the first of its chain.
 * Waits for one while the collector makes progress. Returns CHANNEL_NONE if none came.
 */
uint32_t chunk_wait(uint32_t full, size_t words, bool *starving);

/* The process's log of modules (process/modules.c). */

/** Logs all modules that are loaded: at the start, and again in the child of a fork. */
void modules_begin(uint64_t sequence);
/** Gives up the parent's log, in a copy: it needs none. */
void modules_forget_log(void);
/** Releases the log if a hook of the thread held it when a longjmp left the hook. */
void modules_abandon(const struct thread *thread);
/** Logs the modules that a dlclose has unloaded. */
void modules_closed(void);

#endif
