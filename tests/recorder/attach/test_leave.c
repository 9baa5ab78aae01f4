/* SPDX-License-Identifier: MIT */
/*
 * The code in which a thread is in a call of an allocator. The module is written here: a table of
 * call frame information that has only the begins of functions, and their code.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/parts.h"

enum { TABLE_AT = 64, CODE_AT = 1 << 16, FUNCTION_SIZE = 32, MODULE_SIZE = 1 << 19, JUMP_SIZE = 5 };

static unsigned char bytes[MODULE_SIZE];
static uint32_t table_count;
static struct attachment attachment;
static struct attach_function function;
static const struct attached_hook hook = {"malloc", 0, 1, ATTACHED_EVERYWHERE, 0};
static struct attach_module module;
static Elf64_Phdr segment;
static uint64_t interrupted; /* where a handler of a signal returns to; 0 for none */
static uint64_t caller;      /* where the only frame goes on; 0 if frames cannot be followed */
static uint64_t time_now;

/* The rest of the recorder. */

bool attach_read(const struct attachment *unused, uint64_t address, void *copy, size_t size)
{
    (void)unused;
    uint64_t begin = (uintptr_t)bytes;
    if (address < begin || address - begin > sizeof bytes ||
        size > sizeof bytes - (address - begin))
        return false;
    memcpy(copy, bytes + (address - begin), size);
    return true;
}

struct attach_module *attach_modules_named(struct attach_modules *modules, const char *name)
{
    return strcmp(name, "libc.so.6") == 0 ? modules->items : NULL;
}

bool attach_refuse(struct attachment *refused, const char *format, ...)
{
    (void)refused, (void)format;
    return false;
}

bool attach_stacks_open(struct attach_stacks *stacks, const struct attachment *attached,
                        const struct threads *threads)
{
    (void)threads;
    *stacks = (struct attach_stacks){.attachment = attached};
    return true;
}

void attach_stacks_close(struct attach_stacks *stacks)
{
    (void)stacks;
}

struct attach_stack attach_stack_look(const struct attach_stacks *stacks,
                                      const struct thread_state *thread,
                                      attach_is_sought *is_sought)
{
    bool has_frame = interrupted != 0 && is_sought(stacks->attachment, interrupted);
    (void)thread;
    return (struct attach_stack){has_frame, has_frame};
}

enum attach_frames attach_stack_follow(struct attach_stacks *stacks,
                                       const struct thread_state *thread,
                                       attach_is_sought *is_sought)
{
    (void)thread;
    if (caller == 0)
        return FRAMES_UNKNOWN;
    return is_sought(stacks->attachment, caller) ? FRAMES_HAVE_ONE : FRAMES_HAVE_NONE;
}

uint64_t attach_now(void)
{
    return time_now += 1000000;
}

void threads_let_on(struct thread_state *thread)
{
    (void)thread;
}

void threads_stop_again(struct threads *threads, long pause)
{
    (void)threads, (void)pause;
}

/* The module. */

static uint64_t at(uint32_t offset)
{
    return (uintptr_t)bytes + offset;
}

static void put32(uint32_t offset, uint32_t value)
{
    memcpy(bytes + offset, &value, sizeof value);
}

/* Adds a function to the table; in order. */
static void add_function(uint32_t offset)
{
    put32(TABLE_AT + 12 + 8 * table_count, offset - TABLE_AT);
    put32(TABLE_AT + 8, ++table_count);
}

/* Writes a jump or a call (0xe9, 0xe8). Returns where the next instruction begins. */
static uint32_t put_jump(uint32_t offset, unsigned char code, uint32_t target)
{
    bytes[offset] = code;
    put32(offset + 1, target - offset - JUMP_SIZE);
    return offset + JUMP_SIZE;
}

/* Writes a jump to a function by an address in a table. */
static void put_table_jump(uint32_t offset, uint32_t table, uint32_t target)
{
    uint64_t address = at(target);
    memcpy(bytes + table, &address, sizeof address);
    bytes[offset] = 0xff;
    bytes[offset + 1] = 0x25;
    put32(offset + 2, table - offset - 6);
}

static void begin(void)
{
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    memset(bytes, 0xcc, sizeof bytes);
    memcpy(bytes + TABLE_AT, usual, sizeof usual);
    table_count = 0;
    segment =
        (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_vaddr = TABLE_AT, .p_memsz = CODE_AT - TABLE_AT};
    module = (struct attach_module){.path = "libc.so.6",
                                    .begin = at(0),
                                    .end = at(MODULE_SIZE),
                                    .bias = at(0),
                                    .segments = &segment,
                                    .segment_count = 1};
    function = (struct attach_function){
        .module = &module, .hook = &hook, .entry = at(CODE_AT), .size = FUNCTION_SIZE};
    memset(&attachment, 0, sizeof attachment);
    attachment.modules.items = &module;
    attachment.modules.count = 1;
    attachment.functions = &function;
    attachment.function_count = 1;
}

static void end(void)
{
    free(attachment.bodies);
}

static bool has_body(uint32_t offset)
{
    for (size_t i = 0; i < attachment.body_count; i++)
        if (at(offset) >= attachment.bodies[i].begin && at(offset) <= attachment.bodies[i].end)
            return true;
    return false;
}

TestSuite(leave, .init = begin, .fini = end);

/* Each function jumps to the next one: a thread that is in any has no frame of the first. */
static void chain(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = CODE_AT + i * FUNCTION_SIZE;
        add_function(offset);
        put_jump(offset + 8, 0xe9, offset + FUNCTION_SIZE);
    }
    add_function(CODE_AT + count * FUNCTION_SIZE);
    add_function(CODE_AT + (count + 1) * FUNCTION_SIZE);
}

Test(leave, functions_that_are_jumped_to)
{
    chain(200);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(has_body(CODE_AT + 200 * FUNCTION_SIZE + 1));
    cr_assert_not(has_body(CODE_AT + 201 * FUNCTION_SIZE + 1));
    cr_assert_not(attachment.has_unknown_calls);
}

/* Assemblers make the shortest jump, and a compiler puts a part that is seldom run elsewhere: the
 * second jump leads into the middle of it. The third one goes by a table of functions. */
Test(leave, other_jumps)
{
    enum { CLOSE = CODE_AT + FUNCTION_SIZE, COLD = CODE_AT + 0x800, FAR = CODE_AT + 0x1000 };
    uint32_t functions[] = {CODE_AT,
                            CLOSE,
                            CLOSE + FUNCTION_SIZE,
                            COLD,
                            COLD + FUNCTION_SIZE,
                            FAR,
                            FAR + FUNCTION_SIZE};
    uint32_t table = CODE_AT + 0x2000;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        add_function(functions[i]);
    bytes[CODE_AT + 1] = 0x75;
    bytes[CODE_AT + 2] = CLOSE - CODE_AT - 3;
    put_jump(CODE_AT + 3, 0xe9, COLD + 7);
    put_table_jump(CODE_AT + 9, table, FAR);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(has_body(CLOSE + 1));
    cr_assert(has_body(COLD + 1));
    cr_assert(has_body(FAR + 1));
    cr_assert_not(has_body(CLOSE + FUNCTION_SIZE + 1));
    cr_assert_not(has_body(COLD + FUNCTION_SIZE + 1));
    cr_assert_not(has_body(FAR + FUNCTION_SIZE + 1));
    cr_assert_not(attachment.has_unknown_calls);
}

/* The linkage table leads to other modules, and to functions that wait for long. */
Test(leave, jump_to_the_linkage_table)
{
    uint32_t linkage = CODE_AT + 0x1000, other = CODE_AT + 0x2000;
    static const unsigned char mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    add_function(CODE_AT);
    add_function(CODE_AT + FUNCTION_SIZE);
    add_function(linkage);
    add_function(linkage + FUNCTION_SIZE);
    add_function(other);
    put_jump(CODE_AT + 3, 0xe9, linkage + 16);
    memcpy(bytes + linkage + 16, mark, sizeof mark);
    put_table_jump(linkage + 16 + sizeof mark, CODE_AT + 0x3000, other);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert_not(has_body(linkage + 17));
    cr_assert_not(has_body(other + 1));
}

Test(leave, more_functions_than_are_followed)
{
    chain(1200);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert_not(has_body(CODE_AT + 1200 * FUNCTION_SIZE + 1));
    cr_assert(attachment.has_unknown_calls);
}

/* A jump behind what is searched of a function. */
static void jump_at(uint32_t distance)
{
    uint32_t target = CODE_AT + distance + FUNCTION_SIZE;
    add_function(CODE_AT);
    add_function(target);
    add_function(target + FUNCTION_SIZE);
    put_jump(CODE_AT + distance, 0xe9, target);
    function.size = distance + FUNCTION_SIZE;
}

Test(leave, long_function)
{
    jump_at(60000);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(has_body(CODE_AT + 60000 + FUNCTION_SIZE + 1));
    cr_assert_not(attachment.has_unknown_calls);
}

Test(leave, function_that_is_longer_than_what_is_searched)
{
    jump_at(70000);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(attachment.has_unknown_calls);
}

Test(leave, function_without_a_table)
{
    jump_at(2000);
    segment.p_type = PT_NULL;
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(has_body(CODE_AT + 2000 + FUNCTION_SIZE + 1));
    cr_assert_not(attachment.has_unknown_calls);
}

Test(leave, long_function_without_a_table)
{
    jump_at(5000);
    segment.p_type = PT_NULL;
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(attachment.has_unknown_calls);
}

/* A function that releases blocks past the table of functions, and one that calls another one. */
Test(leave, functions_that_call)
{
    uint32_t frees = CODE_AT + 0x1000, calls = CODE_AT + 0x2000;
    add_function(CODE_AT);
    add_function(CODE_AT + FUNCTION_SIZE);
    add_function(frees);
    add_function(frees + FUNCTION_SIZE);
    add_function(calls);
    add_function(calls + FUNCTION_SIZE);
    attachment.internal[attachment.internal_count++] = at(put_jump(frees + 9, 0xe8, CODE_AT));
    attachment.internal[attachment.internal_count++] = at(put_jump(calls + 9, 0xe8, frees));
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(has_body(frees + 3));
    cr_assert(has_body(frees + FUNCTION_SIZE - 1));
    cr_assert_not(has_body(frees + FUNCTION_SIZE + 1));
    cr_assert_not(has_body(calls + 3));
    cr_assert_not(attachment.has_unknown_calls);
}

/* Stops a thread with one frame, which goes on at an offset. Returns whether it is in a call. */
static bool is_in_call_from(uint32_t offset)
{
    struct thread_state thread = {.tid = 1, .is_stopped = true};
    struct threads threads = {.items = &thread, .count = 1, .are_stopped = true};
    caller = at(offset);
    cr_assert(attach_leave_calls(&attachment, &threads));
    size_t count = attachment.in_call_count;
    free(attachment.in_call);
    attachment.in_call = NULL;
    attachment.in_call_capacity = attachment.in_call_count = 0;
    return count != 0;
}

/* A function that ends by a jump where a register says: the thread may be anywhere. Then the
 * callers of its frames are looked at, which call directly, by a table, or by the linkage table. */
Test(leave, hidden_jumps)
{
    enum { CALLER = CODE_AT + 0x1000, LINKAGE = CODE_AT + 0x2000, TABLE = CODE_AT + 0x3000 };
    add_function(CODE_AT);
    add_function(CODE_AT + FUNCTION_SIZE);
    add_function(CALLER);
    uint32_t direct = put_jump(CALLER, 0xe8, CODE_AT);
    put_table_jump(CALLER + 0x10, TABLE, CODE_AT);
    bytes[CALLER + 0x11] = 0x15; /* a call */
    put_table_jump(LINKAGE, TABLE, CODE_AT);
    uint32_t linked = put_jump(CALLER + 0x20, 0xe8, LINKAGE);
    uint32_t other = put_jump(CALLER + 0x30, 0xe8, CALLER);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert_not(attachment.has_hidden_calls);
    cr_assert_not(is_in_call_from(direct));
    bytes[CODE_AT + 9] = 0xff;
    bytes[CODE_AT + 10] = 0x60; /* jmp *24(%rax) */
    bytes[CODE_AT + 11] = 24;
    attachment.body_count = 0;
    cr_assert(attach_find_bodies(&attachment));
    cr_assert(attachment.has_hidden_calls);
    cr_assert_not(attachment.has_unknown_calls);
    cr_assert(is_in_call_from(direct));
    cr_assert(is_in_call_from(CALLER + 0x16));
    cr_assert(is_in_call_from(linked));
    cr_assert_not(is_in_call_from(other));
    cr_assert_not(is_in_call_from(CALLER + 0x3f));
}

/* Stops a thread in a handler whose frames cannot be followed. Returns whether it is waited for. */
static bool waits_for_handler_in(uint64_t code)
{
    struct thread_state thread = {.tid = 1, .is_stopped = true};
    struct threads threads = {.items = &thread, .count = 1, .are_stopped = true};
    interrupted = code;
    cr_assert(attach_leave_calls(&attachment, &threads));
    free(attachment.in_call);
    attachment.in_call = NULL;
    attachment.in_call_capacity = 0;
    return attachment.is_to_wait;
}

/* Only where bytes are to be replaced: elsewhere in a call, the thread is noted, and may stay. */
Test(leave, handlers_that_are_waited_for)
{
    add_function(CODE_AT);
    add_function(CODE_AT + FUNCTION_SIZE);
    cr_assert(attach_find_bodies(&attachment));
    cr_assert_not(waits_for_handler_in(0));
    cr_assert(waits_for_handler_in(at(CODE_AT + 2)));
    cr_assert_not(waits_for_handler_in(at(CODE_AT + 20)));
    cr_assert_eq(attachment.in_call_count, 1);
}
