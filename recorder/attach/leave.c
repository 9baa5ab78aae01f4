/* SPDX-License-Identifier: MIT */
/*
 * Lets threads leave the allocators' functions before these are patched. A call that has begun is
 * not recorded: a block that it releases would be listed among those from before, and one that it
 * acquires would be missing.
 */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "attach/parts.h"
#include "patch/instruction.h"

/* How long threads are waited for, the first pause, how often it doubles, and where and how long a
 * function may be that another one jumps to. Of an allocator with more or longer functions than the
 * other two say, not all calls are known: see has_unknown_calls. */
#define LEAVE_NS UINT64_C(20000000)
enum {
    LEAVE_PAUSE_NS = 20000,
    LEAVE_PAUSES = 5,
    LEAVE_TAIL_MAX = 4096,
    LEAVE_SCAN_MAX = 1 << 16,
    LEAVE_BODIES_MAX = 1000,
    LEAVE_DISTANCE_MAX = 1 << 15
};

static bool leave_add(struct attachment *attachment, uint64_t begin, uint64_t end)
{
    struct memory_span *bodies = array_grow(attachment->bodies, attachment->body_count,
                                            &attachment->body_capacity, sizeof *bodies);
    if (!bodies)
        return false;
    attachment->bodies = bodies;
    bodies[attachment->body_count++] = (struct memory_span){begin, end};
    return true;
}

/* Returns where the next function that is to be patched begins behind an address. */
static uint64_t leave_next_entry(const struct attachment *attachment, uint64_t address)
{
    size_t before = array_count_up_to(attachment->functions, attachment->function_count,
                                      sizeof *attachment->functions,
                                      offsetof(struct attach_function, entry), address);
    return before < attachment->function_count ? attachment->functions[before].entry : UINT64_MAX;
}

/* Adds the functions that a function of a module without a table ends by jumping to, as memalign()
 * does: where they end is not known. */
static bool leave_add_tails(struct attachment *attachment, const struct attach_function *function)
{
    enum { JUMP = 0xe9, JUMP_SIZE = 5 };
    unsigned char code[LEAVE_TAIL_MAX];
    size_t size = function->size < sizeof code ? function->size : sizeof code;
    if (!attach_read(attachment, function->entry, code, size))
        return false;
    for (size_t i = 0; i + JUMP_SIZE <= size; i++) {
        int32_t offset;
        memcpy(&offset, code + i + 1, sizeof offset);
        uint64_t target = function->entry + i + JUMP_SIZE + (uint64_t)(int64_t)offset;
        uint64_t next = leave_next_entry(attachment, target);
        bool is_far = target - (function->entry - LEAVE_DISTANCE_MAX) > 2 * LEAVE_DISTANCE_MAX;
        if (code[i] != JUMP || is_far || target - function->entry < function->size)
            continue;
        uint64_t end = next - target < LEAVE_TAIL_MAX ? next : target + LEAVE_TAIL_MAX;
        if (!leave_add(attachment, target, end))
            return false;
    }
    return true;
}

/* Whether a function of an allocator that is to be patched begins at an address. */
static bool leave_is_entry(const struct attachment *attachment, uint64_t address)
{
    for (size_t i = 0; i < attachment->function_count; i++)
        if (attachment->functions[i].entry == address)
            return attachment->functions[i].hook->place <= ATTACHED_IN_ALLOCATOR;
    return false;
}

/* The begins of all functions of a module, in order, by its table of call frame information. */
struct leave_begins {
    const struct attach_module *module;
    uint64_t *items; /* NULL if it has no table */
    size_t count;
};

static void leave_read_begins(const struct attachment *attachment, const Elf64_Phdr *segment,
                              struct leave_begins *begins)
{
    /* Version, and how values are encoded: relative to their place, numbers, relative to the table;
     * each of 4 bytes. */
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    enum { COUNT_AT = 8, HEADER_SIZE = 12, ENTRY_SIZE = 8 };
    unsigned char header[HEADER_SIZE];
    uint64_t address = begins->module->bias + segment->p_vaddr;
    uint32_t count;
    if (segment->p_memsz < HEADER_SIZE || !attach_read(attachment, address, header, HEADER_SIZE) ||
        memcmp(header, usual, sizeof usual) != 0)
        return;
    memcpy(&count, header + COUNT_AT, sizeof count);
    if (count > (segment->p_memsz - HEADER_SIZE) / ENTRY_SIZE)
        return;
    int32_t(*entries)[2] = malloc(count * sizeof *entries + 1);
    uint64_t *items = malloc(count * sizeof *items + 1);
    if (entries && items &&
        attach_read(attachment, address + HEADER_SIZE, entries, count * sizeof *entries)) {
        for (size_t i = 0; i < count; i++)
            items[i] = address + (uint64_t)(int64_t)entries[i][0];
        begins->items = items;
        begins->count = count;
        items = NULL;
    }
    free(items);
    free(entries);
}

/* Has the begins of the functions of the module that an address lies in. */
static void leave_find_begins(const struct attachment *attachment, uint64_t address,
                              struct leave_begins *begins)
{
    const struct attach_modules *modules = &attachment->modules;
    if (begins->module &&
        address - begins->module->begin < begins->module->end - begins->module->begin)
        return;
    free(begins->items);
    *begins = (struct leave_begins){0};
    for (size_t i = 0; i < modules->count && !begins->module; i++)
        if (address - modules->items[i].begin < modules->items[i].end - modules->items[i].begin)
            begins->module = &modules->items[i];
    for (size_t i = 0; begins->module && i < begins->module->segment_count; i++)
        if (begins->module->segments[i].p_type == PT_GNU_EH_FRAME && !begins->items)
            leave_read_begins(attachment, &begins->module->segments[i], begins);
}

/* Adds the function that an address lies in, unless it is known. */
static bool leave_add_function(struct attachment *attachment, const struct leave_begins *begins,
                               uint64_t address)
{
    size_t up_to =
        array_count_up_to(begins->items, begins->count, sizeof *begins->items, 0, address);
    if (up_to == 0)
        return true;
    uint64_t begin = begins->items[up_to - 1];
    for (size_t i = 0; i < attachment->body_count; i++)
        if (attachment->bodies[i].begin == begin)
            return true;
    uint64_t end = up_to < begins->count ? begins->items[up_to] : begins->module->end;
    return leave_add(attachment, begin, end - 1);
}

/* Whether an instruction jumps to an address that is in memory, and has no register: a part of a
 * table of functions, as the linkage table's. */
static bool leave_is_table_jump(const struct instruction *instruction, const unsigned char *code)
{
    enum { GROUP = 0xff, JUMP_BY_RIP = 0x25 };
    return instruction->flow == FLOW_END && instruction->relative_at != 0 &&
           code[instruction->opcode_at] == GROUP && code[instruction->modrm_at] == JUMP_BY_RIP;
}

/* Whether an instruction jumps to where a register says: as a function that ends by calling a
 * virtual one does. */
static bool leave_is_hidden_jump(const struct instruction *instruction, const unsigned char *code)
{
    enum { GROUP = 0xff, JUMP = 4 };
    return instruction->flow == FLOW_END && instruction->relative_at == 0 &&
           instruction->modrm_at != 0 && code[instruction->opcode_at] == GROUP &&
           (code[instruction->modrm_at] >> 3 & 7) == JUMP;
}

/* Returns the function that the entry of the linkage table at an address leads to; the address
 * itself if there is none. */
static uint64_t leave_past_linkage(const struct attachment *attachment, uint64_t address)
{
    static const unsigned char mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    unsigned char code[sizeof mark + INSTRUCTION_MAX];
    struct instruction instruction;
    uint64_t function;
    if (!attach_read(attachment, address, code, sizeof code))
        return address;
    size_t skipped = memcmp(code, mark, sizeof mark) == 0 ? sizeof mark : 0;
    if (!instruction_decode(code + skipped, INSTRUCTION_MAX, &instruction) ||
        !leave_is_table_jump(&instruction, code + skipped))
        return address;
    uint64_t place = instruction_target(&instruction, code + skipped, address + skipped);
    return attach_read(attachment, place, &function, sizeof function) ? function : address;
}

/* Whether an address is in the linkage table: functions of other modules are no part of an
 * allocator. */
static bool leave_is_linkage(const struct attachment *attachment, uint64_t address)
{
    return leave_past_linkage(attachment, address) != address;
}

/* Returns where an instruction jumps to; 0 if it does not jump, or if that is not known. */
static uint64_t leave_target_of(const struct attachment *attachment,
                                const struct instruction *instruction, const unsigned char *code,
                                uint64_t address)
{
    uint64_t target = 0;
    if (instruction->flow == FLOW_JUMP || instruction->flow == FLOW_BRANCH)
        target = instruction_target(instruction, code, address);
    else if (leave_is_table_jump(instruction, code) &&
             !attach_read(attachment, instruction_target(instruction, code, address), &target,
                          sizeof target))
        target = 0;
    return target;
}

/* Adds the functions of its module that a function jumps to, and parts of it that are elsewhere. */
static bool leave_follow_jumps(struct attachment *attachment, const struct leave_begins *begins,
                               struct memory_span body)
{
    const struct attach_module *module = begins->module;
    size_t size = body.end - body.begin < LEAVE_SCAN_MAX ? body.end - body.begin : LEAVE_SCAN_MAX;
    attachment->has_unknown_calls |= size < body.end - body.begin;
    unsigned char *code = malloc(size + 1);
    bool is_done = code && attach_read(attachment, body.begin, code, size);
    struct instruction instruction;
    for (size_t i = 0; is_done && i < size; i += instruction.size) {
        if (!instruction_decode(code + i, size - i, &instruction)) {
            instruction.size = 1; /* data, or the rest of one */
            continue;
        }
        uint64_t target = leave_target_of(attachment, &instruction, code + i, body.begin + i);
        attachment->has_hidden_calls |= leave_is_hidden_jump(&instruction, code + i);
        if (target - module->begin < module->end - module->begin &&
            target - body.begin >= body.end - body.begin && !leave_is_linkage(attachment, target))
            is_done = leave_add_function(attachment, begins, target);
    }
    free(code);
    return is_done;
}

/* Adds the functions that the allocators' functions end by jumping to, and so on: such a function
 * has no frame of the allocator behind it. */
static bool leave_follow_all(struct attachment *attachment, struct leave_begins *begins)
{
    bool is_done = true;
    for (size_t i = 0; i < attachment->body_count && i < LEAVE_BODIES_MAX && is_done; i++) {
        leave_find_begins(attachment, attachment->bodies[i].begin, begins);
        if (begins->items)
            is_done = leave_follow_jumps(attachment, begins, attachment->bodies[i]);
        else
            attachment->has_unknown_calls |=
                attachment->bodies[i].end - attachment->bodies[i].begin > LEAVE_TAIL_MAX;
    }
    attachment->has_unknown_calls |= attachment->body_count > LEAVE_BODIES_MAX;
    attachment->has_hidden_calls |= attachment->has_unknown_calls;
    return is_done;
}

/* Adds the functions of the C library that release blocks by calls past all tables: its allocator
 * ends a thread's cache in one. Between two such calls the thread is in no function that is
 * patched, and the blocks that are left in the cache look like the program's. */
static bool leave_add_callers(struct attachment *attachment, struct leave_begins *begins)
{
    enum { OPERAND = 4 };
    const struct attach_module *libc = attach_modules_named(&attachment->modules, "libc.so.6");
    bool is_done = true;
    for (size_t i = 0; libc && i < attachment->internal_count && is_done; i++) {
        uint64_t site = attachment->internal[i];
        int32_t offset;
        if (site - libc->begin >= libc->end - libc->begin)
            continue;
        is_done = attach_read(attachment, site - OPERAND, &offset, sizeof offset);
        if (!is_done || !leave_is_entry(attachment, site + (uint64_t)(int64_t)offset))
            continue;
        leave_find_begins(attachment, site, begins);
        is_done = leave_add_function(attachment, begins, site - 1);
    }
    return is_done;
}

static int leave_compare_bodies(const void *left, const void *right)
{
    const struct memory_span *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Joins those that overlap. */
static void leave_join_bodies(struct attachment *attachment)
{
    struct memory_span *bodies = attachment->bodies;
    size_t count = 0;
    qsort(bodies, attachment->body_count, sizeof *bodies, leave_compare_bodies);
    for (size_t i = 0; i < attachment->body_count; i++) {
        if (count == 0 || bodies[i].begin > bodies[count - 1].end)
            bodies[count++] = bodies[i];
        else if (bodies[i].end > bodies[count - 1].end)
            bodies[count - 1].end = bodies[i].end;
    }
    attachment->body_count = count;
}

bool attach_find_bodies(struct attachment *attachment)
{
    struct leave_begins begins = {0};
    bool is_done = true;
    for (size_t i = 0; i < attachment->function_count && is_done; i++) {
        const struct attach_function *function = &attachment->functions[i];
        if (function->hook->place <= ATTACHED_IN_ALLOCATOR)
            is_done = leave_add(attachment, function->entry, function->entry + function->size);
    }
    is_done =
        is_done && leave_add_callers(attachment, &begins) && leave_follow_all(attachment, &begins);
    for (size_t i = 0; i < attachment->function_count && is_done; i++) {
        const struct attach_function *function = &attachment->functions[i];
        if (function->hook->place > ATTACHED_IN_ALLOCATOR)
            continue;
        leave_find_begins(attachment, function->entry, &begins);
        if (!begins.items)
            is_done = leave_add_tails(attachment, function);
    }
    free(begins.items);
    if (!is_done)
        return attach_refuse(attachment, "its functions cannot be read");
    if (attachment->body_count != 0)
        leave_join_bodies(attachment);
    return true;
}

/* Whether a thread that goes on at an address is in a call of an allocator's function. At the entry
 * it has not begun: the call will be recorded. */
static bool leave_is_in_body(const struct attachment *attachment, uint64_t address)
{
    const struct memory_span *bodies = attachment->bodies;
    size_t count = attachment->body_count;
    if (count == 0 || address <= bodies[0].begin || address > bodies[count - 1].end)
        return false; /* as nearly all words are */
    size_t before = array_count_below(bodies, count, sizeof *bodies,
                                      offsetof(struct memory_span, begin), address);
    return address <= bodies[before - 1].end;
}

/* Returns where a call leads that returns to an address: to a function, past the linkage table; 0
 * if that is not in the code. */
static uint64_t leave_callee_of(const struct attachment *attachment, uint64_t address)
{
    enum { CALL = 0xe8, CALL_SIZE = 5, GROUP = 0xff, CALL_BY_RIP = 0x15, CALL_BY_RIP_SIZE = 6 };
    unsigned char code[CALL_BY_RIP_SIZE];
    int32_t offset;
    uint64_t callee;
    if (!attach_read(attachment, address - sizeof code, code, sizeof code))
        return 0;
    memcpy(&offset, code + sizeof code - sizeof offset, sizeof offset);
    callee = address + (uint64_t)(int64_t)offset;
    if (code[sizeof code - CALL_SIZE] == CALL)
        return leave_past_linkage(attachment, callee);
    bool is_by_table = code[0] == GROUP && code[1] == CALL_BY_RIP;
    return is_by_table && attach_read(attachment, callee, &callee, sizeof callee) ? callee : 0;
}

/* Whether a frame goes on at an address behind a call of an allocator's function. */
static bool leave_has_called(const struct attachment *attachment, uint64_t address)
{
    return leave_is_entry(attachment, leave_callee_of(attachment, address));
}

/* Whether frames could not be followed in the allocator's own module: there is none of its call
 * frame information, neither in memory nor in a file that can be opened here. */
static bool leave_is_undescribed(const struct attach_stacks *stacks)
{
    const struct attachment *attachment = stacks->attachment;
    const struct attach_modules *modules = &stacks->modules;
    size_t i = 0;
    while (i < modules->count && stacks->last - modules->items[i].begin >=
                                     modules->items[i].end - modules->items[i].begin)
        i++;
    for (size_t k = 0; i < modules->count && k < attachment->body_count; k++)
        if (attachment->bodies[k].begin >= modules->items[i].begin &&
            attachment->bodies[k].begin < modules->items[i].end)
            return true;
    return false;
}

/* Whether an address lies in bytes that are to be replaced, behind the first. Functions are sorted
 * by their entries. */
static bool leave_is_replaced(const struct attachment *attachment, uint64_t address)
{
    const struct attach_function *functions = attachment->functions;
    size_t count = attachment->function_count;
    if (count == 0 || address <= functions[0].entry ||
        address >= functions[count - 1].entry + PATCH_JUMP_SIZE)
        return false; /* as nearly all words are */
    size_t before = array_count_up_to(functions, count, sizeof *functions,
                                      offsetof(struct attach_function, entry), address - 1);
    return address - functions[before - 1].entry < PATCH_JUMP_SIZE;
}

static bool leave_is_sought(const struct attachment *attachment, uint64_t address)
{
    return leave_is_in_body(attachment, address) || leave_is_replaced(attachment, address);
}

struct leave_thread {
    bool is_in_call;
    bool returns_there; /* a handler of a signal returns into bytes that are to be replaced */
};

/* Looks at a thread; its stack is read once, unless a handler of a signal has interrupted a
 * function that is sought. */
static struct leave_thread leave_look_at(struct attach_stacks *stacks,
                                         const struct thread_state *thread)
{
    struct leave_thread found = {.is_in_call =
                                     leave_is_in_body(stacks->attachment, attach_pc(thread))};
    struct attach_stack stack = attach_stack_look(stacks, thread, leave_is_sought);
    if (stack.has_words && !found.is_in_call) {
        /* All frames of such a call are described, if any of the allocator's module are, and mostly
         * the frames of a handler. */
        enum attach_frames frames = attach_stack_follow(stacks, thread, leave_is_in_body);
        found.is_in_call =
            frames == FRAMES_HAVE_ONE ||
            (frames == FRAMES_UNKNOWN && (stack.has_frame || leave_is_undescribed(stacks)));
    }
    if (stacks->attachment->has_hidden_calls && !found.is_in_call)
        found.is_in_call = attach_stack_follow(stacks, thread, leave_has_called) == FRAMES_HAVE_ONE;
    /* Frames that cannot be followed are no reason to wait for a handler of other code. */
    found.returns_there =
        stack.has_frame && attach_stack_look(stacks, thread, leave_is_replaced).has_frame &&
        attach_stack_follow(stacks, thread, leave_is_replaced) != FRAMES_HAVE_NONE;
    return found;
}

/* Notes that a thread is in a call. False if memory ran out. */
static bool leave_note(struct attachment *attachment, uint32_t tid)
{
    uint32_t *in_call = array_grow(attachment->in_call, attachment->in_call_count,
                                   &attachment->in_call_capacity, sizeof *in_call);
    if (!in_call)
        return false;
    attachment->in_call = in_call;
    in_call[attachment->in_call_count++] = tid;
    return true;
}

/* Lets threads go on that are in a call, and notes them. Others are looked at once. Sets
 * `is_to_wait` if another one returns into bytes that are to be replaced. False if that cannot be
 * seen. */
static bool leave_let_on(struct attachment *attachment, struct threads *threads, bool is_late)
{
    struct attach_stacks stacks;
    bool is_done = attach_stacks_open(&stacks, attachment, threads);
    attachment->in_call_count = 0;
    for (size_t i = 0; i < threads->count && is_done; i++) {
        struct thread_state *thread = &threads->items[i];
        if (!thread->is_stopped || thread->is_looked_at)
            continue;
        struct leave_thread found = leave_look_at(&stacks, thread);
        if (found.is_in_call)
            is_done = leave_note(attachment, thread->tid);
        thread->is_looked_at = !found.is_in_call;
        if (found.is_in_call && !is_late)
            threads_let_on(thread);
        else
            attachment->is_to_wait |= found.returns_there;
    }
    attach_stacks_close(&stacks);
    return is_done;
}

bool attach_leave_calls(struct attachment *attachment, struct threads *threads)
{
    uint64_t begin = attach_now();
    attachment->is_to_wait = false;
    /* Short pauses for many tries, longer ones as a thread may have to wait for a processor. */
    for (unsigned tries = 0;; tries++) {
        bool is_late = attach_now() - begin > LEAVE_NS;
        if (!leave_let_on(attachment, threads, is_late))
            return attach_refuse(attachment, "its mappings cannot be read");
        if (attachment->in_call_count == 0 || is_late)
            return true;
        threads_stop_again(threads, LEAVE_PAUSE_NS << tries % LEAVE_PAUSES);
        if (!threads->are_stopped)
            return attach_refuse(attachment, "its threads could not be stopped; try again");
    }
}
