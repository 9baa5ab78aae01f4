/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_UNWIND_H
#define RECORDER_PRELOAD_UNWIND_UNWIND_H

/*
 * The stack unwinder of the preload library: the stack of return addresses at every heap call,
 * as a difference from the stack of the call before.
 *
 * Everything here is async-signal-safe: no allocation, no locks, no stdio, no thread-local
 * storage, and errno is never changed. Memory comes from raw mmap. The calls out are
 * _dl_find_object (glibc 2.35) and, in unwind_setup, getauxval; compilers may add memcpy and
 * memset. Link with -z now, so that none of them enters the lazy binder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl_find_object;

struct debug_frame;

/**
 * Returns the section .debug_frame of a loaded object, or NULL. The program's memory does not have
 * the section. Sets `*is_unsettled` if it may be found later. Called from within a capture, like
 * the announcer, for code that the object's segments say nothing of. It stays as it is until the
 * object is unloaded.
 */
typedef const struct debug_frame *unwind_frame_finder(const struct dl_find_object *object,
                                                      bool *is_unsettled);

#pragma GCC visibility push(hidden)

/** No stack is ever reported with more frames than this. */
#define UNWIND_MAX_FRAMES 4096u

/** A deeper stack is cut down to at least this many of its innermost frames; to fewer only if there
   is no memory. */
#define UNWIND_CUT_FRAMES (UNWIND_MAX_FRAMES / 2)

/** One per thread. Not to be entered twice: a signal handler that interrupts a capture must not
   start another one with the same unwinder (the caller's recursion guard sees to that). */
struct unwinder;

/** The start of a walk: the state of the caller of a hook just after the hook returns. */
struct unwind_regs {
    uintptr_t pc; /* the return address of the hook */
    uintptr_t sp; /* the stack pointer after the return (the hook's CFA) */
    uintptr_t bp; /* the caller's rbp */
};

/**
 * The stack, outermost frame first. frames[0 .. kept) are as they were at the last capture,
 * frames[kept .. kept + added) are new; older frames beyond `kept` are gone. The array belongs to
 * the unwinder and is overwritten by the next capture.
 *
 * Frames are return addresses, to be looked up at address - 1. For a frame that a signal
 * interrupted it is the interrupted address plus one, so that the same rule holds.
 */
struct unwind_delta {
    uint32_t kept;
    uint32_t added;
    const uintptr_t *frames;
    bool truncated; /* outer frames are missing: deeper than UNWIND_MAX_FRAMES */
};

/**
 * Prepares the rules that all threads share. Call it once before anything else. Both functions may
 * be NULL. `announcer` is called, from within a capture, when code of a loaded object is met for
 * the first time (by several threads at once, perhaps several times), before the capture that met
 * it returns. It must itself be async-signal-safe. Objects are distinguished by their link map: for
 * a program mapped in pieces, the bounds are a segment's.
 */
void unwind_setup(void (*announcer)(const struct dl_find_object *),
                  unwind_frame_finder *frame_finder);

/** Prepares them again in a fork's child, where no other thread uses them. They are kept: the
 * caller forgets the ones of modules that are gone. */
void unwind_setup_forked(void);

/**
 * Forgets all rules for the code in [start, end): it was unmapped or is about to be. Other threads
 * may be capturing meanwhile. Every unwinder's next capture is a whole stack.
 */
void unwind_forget(uintptr_t start, uintptr_t end);

/** Every capture is empty from now on. */
void unwind_stop(void);

/** The bytes of one unwinder, page aligned. For deep stacks it maps more. */
size_t unwinder_size(void);

/**
 * Initialises an unwinder: unwinder_size() bytes of zeroed memory, or the unwinder of a thread that
 * is gone. [low, high) is the stack of the thread that will use it: readable from the stack pointer
 * to `high` whenever the stack pointer is inside. `grows` is for the main thread, whose `low` is
 * only where the stack pointer was at some time: the unwinder lowers it as the stack grows.
 */
void unwinder_init(struct unwinder *unwinder, uintptr_t low, uintptr_t high, bool grows);

/** The next capture reports the whole stack: kept = 0. */
void unwinder_reset(struct unwinder *unwinder);

/** Likewise, after a capture that was interrupted for good: nothing that is remembered of the stack
   is trusted. */
void unwinder_abandon(struct unwinder *unwinder);

/** Captures the stack of the calling thread. Never fails; at worst the stack ends early. */
void unwinder_capture(struct unwinder *unwinder, const struct unwind_regs *regs,
                      struct unwind_delta *delta);

/**
 * Whether the stack that was captured last has a frame with this stack pointer, or may have one
 * where the walk did not get. `*inner` is the return address of the frame that it called, 0 if that
 * is not known.
 */
bool unwinder_finds(const struct unwinder *unwinder, uintptr_t sp, uintptr_t *inner);

/**
 * Whether the stack that was captured last has the frame of a signal handler within the frame with
 * this stack pointer.
 */
bool unwinder_is_in_handler(const struct unwinder *unwinder, uintptr_t sp);

/**
 * Fills `regs` in a hook; frame 0 is then the caller of the hook. Inlined, so it must stand in
 * the body of the exported function itself. The hook must not realign its stack (no local of more
 * than 16-byte alignment) and must not be a tail-called inner function.
 */
static inline __attribute__((always_inline)) void unwind_here(struct unwind_regs *regs)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    regs->pc = (uintptr_t)__builtin_return_address(0);
    regs->sp = (uintptr_t)(frame + 2);
    regs->bp = frame[0];
}

#pragma GCC visibility pop

/* Lists a stack with all that is known of its frames, slowly. An unwinder's memory of the last
 * capture stays as it is. */

#include "preload/unwind/unwind.h"
#include "dwarf/step.h"

#pragma GCC visibility push(hidden)

/**
 * Finds the innermost frame of the calling thread whose code is not skipped. `is_skipped` is asked
 * about addresses of code. Sets `regs` to the registers of that frame, as its callee returns them.
 * Returns false, with the registers of the outermost frame that was found, if all are skipped.
 */
bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs);

/** Room for `max` frames: where each goes on, and its CFA, 0 if that is not known. */
struct stack_list {
    uint32_t max;
    uint32_t outermost; /* below max */
    uint64_t *pcs, *cfas;
    /** How many frames there was no room for, and the entry that stands for them, whose CFA is that
       of the last one; 0 if there was room. */
    uint64_t left_out;
    uint32_t gap;
};

/**
 * Lists the frames from the one with `regs` on, innermost first. If there are more than there is
 * room for, the last `outermost` entries are the outermost frames, and the entry before them is the
 * gap. Returns the number of entries.
 */
uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs,
                       struct stack_list *list);

#pragma GCC visibility pop

#endif
