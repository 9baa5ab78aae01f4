/* SPDX-License-Identifier: MIT */
/* Notices the end of the process, in whatever way the C library ends it. */
#include "preload/end/exit_end.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "preload/end/fatal_signal.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/threads/island.h"
#include "preload/threads/levels.h"

/* The handler of exit() that runs after all others. */

typedef void last_function(void *unused, int status);

/*
 * Looks at the C library's list of handlers. It is made of arrays of entries, and ends in one that
 * is a variable of the library:
 *
 *     next array, number of entries, entries of {kind, function, argument, module}...
 *
 * exit() lowers the number before it runs an entry, and a new handler takes the next free entry. So
 * a handler is the last one if a new one raises the number of the last array from 0 to 1, and
 * takes the entry of the handler that runs.
 */

/* The C library's registration of handlers; it runs them in reverse order. It calls them with the
 * status as well, as on_exit() does. */
int libc_atexit(void (*function)(void *, int), void *argument,
                void *module) __asm__("__cxa_atexit");

enum { WORD_NEXT, WORD_COUNT, WORD_KIND, WORD_FUNCTION, WORD_ARGUMENT, WORD_MODULE };
enum { KIND_FREE = 0, KIND_WITH_MODULE = 4 };
enum { ENTRY_WORDS = WORD_MODULE + 1 - WORD_KIND, ENTRIES = 32 };

/* Addresses that nothing else has. */
static char handler_marks[2], probe_marks[2];

/* The part of the C library's data that is zero at first. */
struct zeroes {
    uintptr_t *begin, *end;
};

static struct zeroes exit_find_zeroes(void)
{
    struct dl_find_object object;
    struct zeroes found = {NULL, NULL};
    if (_dl_find_object((void *)(uintptr_t)gnu_get_libc_version, &object) != 0)
        return found;
    const ElfW(Ehdr) *header = object.dlfo_map_start;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = object.dlfo_link_map->l_addr + segment[i].p_vaddr;
        if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_W) != 0) {
            found.begin = (uintptr_t *)((begin + segment[i].p_filesz + 7) & -(uintptr_t)8);
            found.end = (uintptr_t *)((begin + segment[i].p_memsz) & -(uintptr_t)8);
        }
    }
    return found;
}

static bool exit_has_marks(const uintptr_t *words, const char marks[2])
{
    return words[WORD_ARGUMENT] == (uintptr_t)&marks[0] &&
           words[WORD_MODULE] == (uintptr_t)&marks[1];
}

/* Returns the array of handlers as it is if its first entry is this library's handler; else NULL.
 */
static const uintptr_t *exit_find_array(void)
{
    struct zeroes zeroes = exit_find_zeroes();
    for (const uintptr_t *words = zeroes.begin; words < zeroes.end - WORD_MODULE; words++)
        if (exit_has_marks(words, handler_marks))
            return words;
    return NULL;
}

/* Returns the array whose last entry is at `last`, and sets `index` to its place; the variable of
 * the library, or NULL if there is none such. */
static uintptr_t *exit_array_of(uintptr_t *last, const uintptr_t *begin, size_t *index)
{
    for (*index = 0; *index < ENTRIES; ++*index) {
        uintptr_t *array = last - *index * ENTRY_WORDS - WORD_KIND;
        if (array < begin)
            return NULL;
        if (array[WORD_NEXT] == 0 && array[WORD_COUNT] == *index + 1)
            return array;
        if (array[WORD_KIND] == KIND_FREE || array[WORD_KIND] > KIND_WITH_MODULE)
            return NULL;
    }
    return NULL;
}

/*
 * Moves this library's handler (just registered) before those that the constructors of other
 * libraries have registered, such as libstdc++: it then runs after them. No other thread runs yet.
 */
static void exit_move_to_front(void)
{
    struct zeroes zeroes = exit_find_zeroes();
    uintptr_t entry[ENTRY_WORDS];
    size_t index;
    for (uintptr_t *words = zeroes.begin; words < zeroes.end - WORD_MODULE; words++) {
        if (!exit_has_marks(words, handler_marks))
            continue;
        uintptr_t *last = words + WORD_KIND;
        uintptr_t *array = exit_array_of(last, zeroes.begin, &index);
        if (!array)
            return;
        memcpy(entry, last, sizeof entry);
        memmove(array + WORD_KIND + ENTRY_WORDS, array + WORD_KIND, index * sizeof entry);
        memcpy(array + WORD_KIND, entry, sizeof entry);
        return;
    }
}

static void exit_do_nothing(void *unused, int status)
{
    (void)unused;
    (void)status;
}

/*
 * Called by that handler. Returns whether exit() runs no other one after it: all that is left is
 * to flush the standard streams, and to end the process. Registers a handler that does nothing.
 */
static bool exit_last_is_running(void)
{
    const uintptr_t *array = exit_find_array();
    /* All handlers also run, without an end, when a program calls __cxa_finalize(). */
    if (!array || array[WORD_NEXT] != 0 || array[WORD_COUNT] != 0 ||
        array[WORD_KIND] != KIND_FREE ||
        libc_atexit(exit_do_nothing, &probe_marks[0], &probe_marks[1]) != 0)
        return false;
    return array[WORD_COUNT] == 1 && array[WORD_KIND] == KIND_WITH_MODULE &&
           exit_has_marks(array, probe_marks);
}

int libc_at_quick_exit(void (*function)(void *), void *module) __asm__("__cxa_at_quick_exit");

enum way {
    BY_CALL,    /* of _exit(): the process may end here */
    BY_HANDLER, /* of exit() */
    BY_QUICK_HANDLER,
};

/* Blocks all signals: a handler would change the memory of the snapshot, and in the copy none may
 * run.
 */
static void exit_block_signals(unsigned long *before)
{
    unsigned long all = ~0UL;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, sizeof all, 0, 0);
}

/* Only when the hook's level has been left: a signal that has waited comes at once, and its handler
 * would take the level for one that a jump has left. */
static void exit_restore_signals(const unsigned long *before)
{
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, sizeof *before, 0, 0);
}

/* Returns the calling thread, in PHASE_RECORD and with all signals blocked; NULL if it does not
 * record. */
static struct thread *exit_enter(unsigned long *before)
{
    struct thread *thread = target_enter(0);
    if (!thread)
        return NULL;
    target_phase(thread, PHASE_RECORD);
    exit_block_signals(before);
    return thread;
}

/* The C library's function that flushes the streams, no function of the program of the same name.
 * It is looked for at the start: each child of a fork would have to touch the library's symbols. */
static int (*exit_flush)(void);

/*
 * Does the work of exit() after its last handler, as far as the program can notice: the process may
 * then end here. Returns whether it may; if not, it is as it was, but for streams that are flushed.
 * Sets `*thread` to NULL if it does not record any more.
 */
static bool finish_exit(struct thread **thread, unsigned long *before)
{
    if (!exit_flush || !exit_last_is_running() || !runtime_has_process_alone())
        return false;
    target_leave(*thread);
    exit_restore_signals(before);
    exit_flush();
    *thread = exit_enter(before);
    return *thread != NULL;
}

/* Asks for a snapshot without a system call, after all handlers: without one, the child of a vfork,
 * which ends by _exit(), is not known from the process. The runtimes are not asked which blocks
 * they keep, since there is no copy of the process. */
static void end_confined(void)
{
    struct thread *thread = thread_id() != 0 ? target_enter(0) : NULL;
    if (!thread)
        return;
    target_phase(thread, PHASE_RECORD);
    snapshot_ask(thread, 0);
    target_leave(thread);
}

/* Does the rest of the work at the end. */
static void end_recording(enum way way, int status)
{
    unsigned long before = 0;
    if (process_asks_itself)
        runtime_end(status);
    /* Without a recorded call there are no blocks. The child of a vfork only ends itself. */
    bool has_blocks = target_on->on != 0 && target_on->has_records != 0;
    if (has_blocks && process_is_confined && way != BY_CALL)
        end_confined();
    if (!has_blocks || process_is_confined || !process_is_own())
        return;
    fatal_await_death();
    island_awake();
    struct thread *thread = exit_enter(&before);
    if (!thread)
        return;
    snapshot_ask(thread, before);
    if (way == BY_CALL || (way == BY_HANDLER && finish_exit(&thread, &before)))
        runtime_ask_and_end(thread, status);
    if (!thread)
        return;
    long copy = runtime_copy(thread);
    target_leave(thread);
    exit_restore_signals(&before);
    if (copy > 0)
        runtime_await(copy);
}

static void at_exit(void *unused, int status)
{
    (void)unused;
    end_recording(BY_HANDLER, status);
}

static void at_quick_exit(void *unused)
{
    (void)unused;
    end_recording(BY_QUICK_HANDLER, 0);
}

/*
 * The loader runs the constructor that calls this before the program starts. Only then does the C
 * library register the function that runs all destructors of modules, so `at_exit` comes after
 * these, after the program's handlers, and after the destructors of thread-local and static
 * objects.
 */
void end_register(void)
{
    *(void **)&exit_flush = real_find_beside((uintptr_t)gnu_get_libc_version, "fcloseall");
    runtime_find();
    /* Before the program can register any handler. Libraries may have done so. */
    if (libc_atexit(at_exit, &handler_marks[0], &handler_marks[1]) == 0)
        exit_move_to_front();
    libc_at_quick_exit(at_quick_exit, NULL);
}

EXPORT void _exit(int status)
{
    end_recording(BY_CALL, status);
    runtime_end(status);
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
