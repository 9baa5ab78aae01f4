/* SPDX-License-Identifier: MIT */
/** Shared by the parts of attaching; private to attach/. */
#ifndef RECORDER_ATTACH_PARTS_H
#define RECORDER_ATTACH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "snapshot/stop/borrow.h"
#include "attach/attach.h"
#include "snapshot/stacks/follower.h"

enum { ATTACH_PAGE = 4096 };

/** Refuses a process with attachment.is_early. */
#define ATTACH_EARLY "its C library is not loaded yet; try again"

/** Says why nothing came of it, unless that was said already. Returns false. */
__attribute__((format(printf, 2, 3))) bool attach_refuse(struct attachment *attachment,
                                                         const char *format, ...);

/** Lists the functions of the process that are to be patched, by module, and the calls that
 * allocators make of their own. */
bool attach_find_functions(struct attachment *attachment);

/** Whether unwinders find the frames of hooks by a function. It stays patched until no thread is in
 * a hook: exceptions still pass the frames there, and would end the program. */
static inline bool attach_finds_frames(const struct attach_function *function)
{
    return strcmp(function->hook->name, "_dl_find_object") == 0;
}

/** Finds the code of the allocators' functions. Returns false, with the reason, if it cannot. */
bool attach_find_bodies(struct attachment *attachment);

/** Lets threads go on that are in a call of an allocator's function, until none is, for 20
 * milliseconds at most: `in_call` has those that still are. Sets `is_to_wait` if a handler of a
 * signal returns into bytes that are to be replaced. Returns false, with the reason, if
 * threads could not be stopped again. */
bool attach_leave_calls(struct attachment *attachment, struct threads *threads);

/** Runs `work` in a thread of its own while all threads of the process are stopped. Returns its
 * status; false, with the reason, if they cannot be stopped. */
bool attach_stopped(struct attachment *attachment,
                    bool (*work)(struct attachment *attachment, struct threads *threads));

/** Does so while a few threads of the process are stopped, and others run. */
bool attach_stopped_some(struct attachment *attachment,
                         bool (*work)(struct attachment *attachment, struct threads *threads));

/** Stops all threads as well, and then runs `after` in the same thread, once the process has been
 * let go; `tick` is called every millisecond meanwhile. */
bool attach_stopped_then(struct attachment *attachment,
                         bool (*work)(struct attachment *attachment, struct threads *threads),
                         void (*after)(struct attachment *attachment), void (*tick)(void *context),
                         void *context);

/** Returns the library's code for calls. */
struct borrowed_code attach_own_code(const struct attachment *attachment);

/** Size of a gate: see attach_begin(). */
enum { ATTACH_GATE_SIZE = 128 };

/** Notes in the process how all is undone. */
bool attach_write_undo(struct attachment *attachment);

/** How often a thread is waited for that is where nothing can begin; and a wait, a millisecond. */
enum { ATTACH_TRIES = 200 };
void attach_pause(void);

/** Returns a time in nanoseconds. */
uint64_t attach_now(void);

bool attach_read(const struct attachment *attachment, uint64_t address, void *bytes, size_t size);
bool attach_write(const struct attachment *attachment, uint64_t address, const void *bytes,
                  size_t size);

/**
 * Makes some thread execute a system call by the code of the library, or by the code in a cave.
 * Returns its result, or a negative errno: -EAGAIN if no thread could, and -EIO if one has not come
 * back in time; then `are_stopped` is false, no other call is made, and the code must stay.
 */
int64_t attach_call(struct threads *threads, const struct borrowed_code *code, uint64_t number,
                    const uint64_t arguments[6]);

/**
 * A cave: bytes behind the code of a module, up to the end of the page, that nothing uses. There
 * the code for calls stands while the library is not mapped.
 */
struct attach_cave {
    struct borrowed_code code;
};

/** Writes the code. Returns false if there is no room, or, with `is_to_wait`, if a thread is still
 * there that another recorder has borrowed. */
bool attach_cave_open(struct attachment *attachment, const struct threads *threads,
                      struct attach_cave *cave);
/** Removes it, unless a thread may still be there. */
void attach_cave_close(struct attachment *attachment, const struct threads *threads,
                       const struct attach_cave *cave);

/** The stacks of threads that are stopped. Frames are followed as the modules describe them that
 * are there by now, read when they are first asked for. */
struct attach_stacks {
    const struct attachment *attachment;
    uint32_t tid; /* of a living thread */
    struct maps maps;
    struct attach_modules modules;
    struct memory memory;
    struct snapshot_module *list;
    struct snapshot_subject subject;
    struct follower *follower;
    bool are_followed; /* the rest is set, as far as it could be */
    bool is_open;      /* the memory */
    uint64_t last;     /* where the last frame goes on that was followed */
};

/** Returns false if the process's mappings cannot be read. The threads must stay stopped until
 * attach_stacks_close(), which is to be called in any case. */
bool attach_stacks_open(struct attach_stacks *stacks, const struct attachment *attachment,
                        const struct threads *threads);
void attach_stacks_close(struct attach_stacks *stacks);

typedef bool attach_is_sought(const struct attachment *attachment, uint64_t address);

/** The traces of sought addresses on a stack. */
struct attach_stack {
    bool has_words; /* any word is one, or not all of the stack could be read */
    bool has_frame; /* a handler of a signal returns to one */
};
struct attach_stack attach_stack_look(const struct attach_stacks *stacks,
                                      const struct thread_state *thread,
                                      attach_is_sought *is_sought);

enum attach_frames {
    FRAMES_HAVE_NONE, /* they were followed to the outermost */
    FRAMES_HAVE_ONE,
    FRAMES_UNKNOWN, /* nothing says where the caller of a frame is */
};

/** Looks for a sought address among the frames of a thread: words on the stack may be older. */
enum attach_frames attach_stack_follow(struct attach_stacks *stacks,
                                       const struct thread_state *thread,
                                       attach_is_sought *is_sought);

/** Sets the program counter of a stopped thread. */
bool attach_move(struct thread_state *thread, uint64_t pc);

/** Returns a thread that has not ended. */
static inline uint32_t attach_living(const struct threads *threads)
{
    size_t i = 0;
    while (i + 1 < threads->count && threads->items[i].has_ended)
        i++;
    return threads->items[i].tid;
}

/** Returns the program counter of a stopped thread. */
static inline uint64_t attach_pc(const struct thread_state *thread)
{
    return thread->registers[THREAD_REGISTERS - 1];
}

/** Returns the struct attached of the image, and its code for calls, in the process. */
static inline uint64_t attach_own_address(const struct attachment *attachment)
{
    return attachment->base + attachment->own;
}

/* Facts about a process that rule out attaching. */

/** Writes the reason why the process cannot be attached to, as far as the system's files show it.
 * Returns false if there is one. `is_held`: this process traces it. `is_filtered` is set if seccomp
 * filters have to be suspended. */
bool attach_process_check(uint32_t pid, bool is_held, bool *is_filtered, char *reason, size_t size);

/** Returns the id of a thread in the PID namespace of its process. */
uint32_t attach_process_inner(uint32_t pid, uint32_t tid);

/** Whether a thread waits in vfork(), or a call such as posix_spawn(), until its child executes a
 * program or ends. */
bool attach_process_is_in_vfork(uint32_t pid, uint32_t tid);

/** Returns a living thread of the process: the first one, if it is not ending. 0 for none. */
uint32_t attach_process_thread(uint32_t pid);

#endif
