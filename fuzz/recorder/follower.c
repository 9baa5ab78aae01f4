/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process that is held may contain anything: following a stack in it reads nothing
 * but the thread's stack and the module's segments, and ends. An input is a byte for each of three
 * registers, a byte for each word of the stack, then a module from its ELF header on.
 */
#include <string.h>

#include "../target.h"
#include "snapshot/process_reader.h"
#include "snapshot/stacks/follower.h"

enum {
    HEAD = 3,
    STACK_SIZE = 4096,
    STACK_TAKEN = 64,
    MODULE_SIZE = 4 * MEMORY_PAGE,
};

/* Addresses at which the process has them. */
static const uint64_t module_begin = 0x555500000000, stack_begin = 0x7ffd00000000;

static uint8_t module[MODULE_SIZE];
static uint64_t stack[STACK_SIZE / 8];
static unsigned reads; /* until the deadline passes */

/* ---- Memory: replaces the functions that ask the system ---- */

bool memory_is_late(const struct memory *memory)
{
    (void)memory;
    return reads == 0;
}

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
    bool is_stack = address >= stack_begin && address < stack_begin + STACK_SIZE;
    uint64_t begin = is_stack ? stack_begin : module_begin;
    size_t there = is_stack ? STACK_SIZE : MODULE_SIZE;
    if (memory_is_late(memory))
        return false;
    reads--;
    target_require(address >= begin && address - begin < there, "memory that may be read");
    if (size > there - (address - begin)) /* program headers may seem to lie anywhere */
        return false;
    memcpy(bytes, (is_stack ? (uint8_t *)stack : module) + (address - begin), size);
    return true;
}

/* The module has no file. */
void reader_enter(void)
{
}

void reader_leave(void)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct snapshot_module loaded = {.path = "module",
                                           .bias = module_begin,
                                           .begin = module_begin,
                                           .end = module_begin + MODULE_SIZE};
    const struct snapshot_subject subject = {.modules = &loaded, .module_count = 1};
    const struct memory memory = {.pid = 0};
    uint64_t registers[FOLLOWER_REGISTERS];
    uint8_t head[HEAD + STACK_TAKEN] = {0};
    static struct stack_frames frames;
    size_t taken = size < sizeof head ? size : sizeof head;
    size_t rest = size - taken < MODULE_SIZE ? size - taken : MODULE_SIZE;
    memcpy(head, data, taken);
    memset(module, 0, sizeof module);
    memcpy(module, data + taken, rest);
    for (size_t i = 0; i < STACK_SIZE / 8; i++) {
        uint8_t value = head[HEAD + i % STACK_TAKEN];
        stack[i] = value < 128 ? stack_begin + 8u * value : module_begin + 4u * value;
    }
    for (size_t i = 0; i < FOLLOWER_REGISTERS; i++)
        registers[i] = stack_begin + 8 * i;
    registers[7] = stack_begin + 8u * head[0];
    registers[6] = stack_begin + 8u * head[1];
    registers[16] = module_begin + 4u * head[2];
    reads = 1000;
    struct follower *follower = follower_new(&memory, &subject);
    target_require(follower != NULL, "memory");
    follower_list(follower, registers, (struct memory_span){stack_begin, stack_begin + STACK_SIZE},
                  &frames);
    target_require(frames.count > 0 && frames.count <= STACK_FRAMES, "as many frames as there are");
    for (size_t i = 0; i + 1 < frames.count; i++)
        target_require(frames.cfas[i] != 0, "only the last one's is not known");
    follower_free(follower);
    return 0;
}
