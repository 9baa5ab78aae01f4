/* SPDX-License-Identifier: MIT */
/* Looks for addresses on the stacks of threads that are stopped. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/stacks/follower.h"
#include "attach/parts.h"

/*
 * A frame that the system makes for a handler of a signal begins with the address of the code that
 * returns from it; the program counter that was interrupted stands at this distance from there.
 */
enum { FRAME_PC = 176 };

/* The part of a stack that is read: frames of signal handlers lie near its pointer. */
enum { STACK_MAX = 1 << 20, RED_ZONE = 128 };

/* Whether the code at an address returns from a handler: a system call, by its number. */
static bool is_restorer(const struct attachment *attachment, uint64_t address)
{
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    unsigned char bytes[sizeof code];
    return attach_read(attachment, address, bytes, sizeof bytes) &&
           memcmp(bytes, code, sizeof code) == 0;
}

/* Returns where the mapping ends that an address lies in; 0 if it is in none. */
static uint64_t end_of(const struct maps *maps, uint64_t address)
{
    for (size_t i = 0; i < maps->count; i++)
        if (address >= maps->items[i].begin && address < maps->items[i].end)
            return maps->items[i].end;
    return 0;
}

struct attach_stack attach_stack_look(const struct attachment *attachment, const struct maps *maps,
                                      const struct thread_state *thread,
                                      bool (*is_sought)(const struct attachment *attachment,
                                                        uint64_t address))
{
    struct attach_stack found = {.has_words = true};
    uint64_t begin = (thread->registers[THREAD_STACK_POINTER] - RED_ZONE) & -UINT64_C(8);
    uint64_t end = end_of(maps, begin), size = end - begin;
    bool is_whole = end != 0 && size <= STACK_MAX;
    size = is_whole ? size : STACK_MAX;
    uint64_t *words = end != 0 ? malloc(size) : NULL;
    if (words && attach_read(attachment, begin, words, size)) {
        found.has_words = !is_whole;
        for (size_t i = 0; i < size / sizeof *words; i++) {
            if (!is_sought(attachment, words[i]))
                continue;
            found.has_words = true;
            found.has_frame |= i >= FRAME_PC / sizeof *words &&
                               is_restorer(attachment, words[i - FRAME_PC / sizeof *words]);
        }
    }
    free(words);
    return found;
}

/* A look for an address among the frames of a thread. */
struct frames_search {
    const struct attachment *attachment;
    bool (*is_sought)(const struct attachment *attachment, uint64_t address);
    bool is_found;
};

static bool frames_visit(void *context, uint64_t pc)
{
    struct frames_search *search = context;
    search->is_found = search->is_sought(search->attachment, pc);
    return !search->is_found;
}

/* Follows a stack by the call frame information of the modules that are there by now. Returns
 * whether all frames were seen. */
static bool frames_follow(struct frames_search *search, const struct memory *memory,
                          const struct attach_modules *modules, const struct thread_state *thread)
{
    uint64_t begin = thread->registers[THREAD_STACK_POINTER];
    struct memory_span stack = {begin, end_of(&modules->maps, begin)};
    struct snapshot_module *list = calloc(modules->count + 1, sizeof *list);
    struct snapshot_subject subject = {.modules = list, .module_count = modules->count};
    for (size_t i = 0; list && i < modules->count; i++) {
        const struct attach_module *module = &modules->items[i];
        list[i] = (struct snapshot_module){
            .path = module->path, .bias = module->bias, .begin = module->begin, .end = module->end};
    }
    struct follower *follower = list && stack.end != 0 ? follower_new(memory, &subject) : NULL;
    bool is_whole =
        follower && follower_visit(follower, thread->registers, stack, frames_visit, search);
    follower_free(follower);
    free(list);
    return is_whole;
}

bool attach_stack_is_free(const struct attachment *attachment, const struct thread_state *thread,
                          bool (*is_sought)(const struct attachment *attachment, uint64_t address))
{
    struct frames_search search = {attachment, is_sought, false};
    struct attach_modules modules;
    struct memory memory;
    if (!memory_open(&memory, attachment->pid, thread->tid))
        return false;
    bool is_free =
        attach_modules_read(&modules, attachment->pid, thread->tid, attachment->memory) &&
        frames_follow(&search, &memory, &modules, thread) && !search.is_found;
    attach_modules_free(&modules);
    memory_close(&memory);
    return is_free;
}
