/* SPDX-License-Identifier: MIT */
#include "patch/patch.h"

#include <string.h>

#include "patch/instruction.h"

enum {
    MOVED_COUNT_MAX = PATCH_JUMP_SIZE, /* of one byte each */
    JUMP_SHORT = 0xeb,
    JUMP_NEAR = 0xe9,
    JUMP_SHORT_SIZE = 2,
    BRANCH_NEAR_SIZE = 6,
    PUSH_SIZE = 6,
    RETURN_ADDRESS_SIZE = 8,
};

/* An instruction that is moved. */
struct moved {
    struct instruction instruction;
    uint8_t old_at; /* offset in the function */
    uint8_t new_at; /* offset in the trampoline */
};

/* A patch while it is made. */
struct making {
    struct patch *patch;
    const uint8_t *bytes;
    size_t size;
    struct moved moved[MOVED_COUNT_MAX];
    size_t count;
    uint8_t end;       /* offset behind the instructions that are moved */
    uint8_t return_at; /* offset in the trampoline of a return address; 0 for none */
    bool is_at_end;    /* the function does not go on behind them */
    enum patch_status status;
};

static void patch_fail(struct making *making, enum patch_status status)
{
    if (making->status == PATCH_OK)
        making->status = status;
}

/* ---- The instructions that are moved ---- */

/* Whether all instructions up to the size of a jump do nothing and can be reached from nowhere. */
static bool patch_is_padding(const struct making *making, size_t at)
{
    struct instruction instruction;
    while (at < PATCH_JUMP_SIZE) {
        const uint8_t *bytes = making->bytes + at;
        if (!instruction_decode(bytes, making->size - at, &instruction))
            return false;
        uint8_t opcode = bytes[instruction.opcode_at];
        bool is_long_nop =
            opcode == 0x1f && instruction.opcode_at > 0 && bytes[instruction.opcode_at - 1] == 0x0f;
        if (opcode != 0x90 && opcode != 0xcc && !is_long_nop)
            return false;
        at += instruction.size;
    }
    return true;
}

/* Finds the instructions that are moved. */
static void patch_find_moved(struct making *making)
{
    size_t at = 0;
    while (at < PATCH_JUMP_SIZE) {
        struct moved *moved = &making->moved[making->count++];
        moved->old_at = (uint8_t)at;
        if (at >= making->size) {
            patch_fail(making, PATCH_SHORT);
            return;
        }
        if (!instruction_decode(making->bytes + at, making->size - at, &moved->instruction)) {
            patch_fail(making, PATCH_UNKNOWN);
            return;
        }
        at += moved->instruction.size;
        enum instruction_flow flow = moved->instruction.flow;
        /* The return address of a call must not be replaced. */
        if (flow == FLOW_FIXED || (flow == FLOW_CALL_INDIRECT && at < PATCH_JUMP_SIZE)) {
            patch_fail(making, PATCH_FIXED);
            return;
        }
        if (flow == FLOW_JUMP || flow == FLOW_END) {
            making->is_at_end = true;
            if (at < PATCH_JUMP_SIZE && !patch_is_padding(making, at))
                patch_fail(making, PATCH_SHORT);
            break;
        }
    }
    making->end = (uint8_t)at;
}

/* Refuses a function that jumps into the replaced bytes, or to its entry: each round of such a loop
 * would be a call. */
static void patch_check_jumps(struct making *making)
{
    size_t size = making->size < PATCH_SCAN_MAX ? making->size : PATCH_SCAN_MAX;
    struct instruction instruction;
    for (size_t at = making->end; at < size; at += instruction.size) {
        const uint8_t *bytes = making->bytes + at;
        if (!instruction_decode(bytes, size - at, &instruction))
            return;
        bool is_jump = instruction.flow == FLOW_JUMP || instruction.flow == FLOW_BRANCH ||
                       instruction.flow == FLOW_COUNTER;
        uint64_t entry = making->patch->entry;
        if (is_jump && instruction_target(&instruction, bytes, entry + at) - entry < making->end) {
            patch_fail(making, PATCH_JUMPED_TO);
            return;
        }
    }
}

/* ---- The trampoline ---- */

/* Returns the bytes that an instruction takes in the trampoline. */
static size_t patch_new_size(const struct instruction *instruction)
{
    switch (instruction->flow) {
    case FLOW_JUMP:
        return PATCH_JUMP_SIZE;
    case FLOW_BRANCH:
        return BRANCH_NEAR_SIZE;
    case FLOW_COUNTER:
        return instruction->size + JUMP_SHORT_SIZE + PATCH_JUMP_SIZE;
    case FLOW_CALL:
        return PUSH_SIZE + PATCH_JUMP_SIZE;
    case FLOW_CALL_INDIRECT:
        return PUSH_SIZE + instruction->size;
    default:
        return instruction->size;
    }
}

static void patch_add_point(struct making *making, size_t offset, uint64_t pc, bool is_instruction)
{
    struct patch *patch = making->patch;
    patch->points[patch->point_count++] =
        (struct patch_point){.pc = pc, .offset = (uint8_t)offset, .is_instruction = is_instruction};
}

/* Writes the distance from the end of an instruction to a target. */
static void patch_write_distance(struct making *making, uint8_t *bytes, uint64_t end,
                                 uint64_t target)
{
    int64_t distance = (int64_t)(target - end);
    int32_t written = (int32_t)distance;
    if (distance != written)
        patch_fail(making, PATCH_FAR);
    memcpy(bytes, &written, sizeof written);
}

/* Writes the distance to the target of an instruction in the trampoline that ends at `end`.
 */
static void patch_write_target(struct making *making, size_t at, size_t end, uint64_t target)
{
    patch_write_distance(making, making->patch->code + at, making->patch->trampoline + end, target);
}

static void patch_write_jump(struct making *making, size_t at, uint64_t target)
{
    making->patch->code[at] = JUMP_NEAR;
    patch_write_target(making, at + 1, at + PATCH_JUMP_SIZE, target);
}

/* Returns where a jump among the moved instructions leads now. */
static uint64_t patch_new_target(struct making *making, uint64_t target)
{
    uint64_t old_at = target - making->patch->entry;
    if (old_at >= making->end)
        return target;
    for (size_t i = 0; i < making->count; i++)
        if (making->moved[i].old_at == old_at)
            return making->patch->trampoline + making->moved[i].new_at;
    patch_fail(making, PATCH_JUMPED_TO);
    return target;
}

/* A call to the entry is one more call; other targets and operands must not be replaced bytes. */
static void patch_check_operand(struct making *making, const struct moved *moved, uint64_t target)
{
    uint64_t old_at = target - making->patch->entry;
    if (old_at < PATCH_JUMP_SIZE && !(moved->instruction.flow == FLOW_CALL && old_at == 0))
        patch_fail(making, PATCH_JUMPED_TO);
}

static void patch_move_branch(struct making *making, const struct moved *moved, uint64_t target)
{
    const uint8_t *old = making->bytes + moved->old_at;
    uint8_t *new = making->patch->code + moved->new_at;
    new[0] = 0x0f;
    new[1] = (uint8_t)(0x80 | (old[moved->instruction.opcode_at] & 0x0f));
    patch_write_target(making, moved->new_at + 2u, moved->new_at + (size_t)BRANCH_NEAR_SIZE,
                       patch_new_target(making, target));
}

/* Such a jump cannot go far: it skips one that goes behind it. */
static void patch_move_counter(struct making *making, const struct moved *moved, uint64_t target)
{
    size_t size = moved->instruction.size, at = moved->new_at;
    uint8_t *new = making->patch->code + at;
    memcpy(new, making->bytes + moved->old_at, size);
    new[size - 1] = JUMP_SHORT_SIZE;
    new[size] = JUMP_SHORT;
    new[size + 1] = PATCH_JUMP_SIZE;
    patch_add_point(making, at + size, making->patch->entry + moved->old_at + size, false);
    patch_add_point(making, at + size + JUMP_SHORT_SIZE, target, false);
    patch_write_jump(making, at + size + JUMP_SHORT_SIZE, patch_new_target(making, target));
}

/* Writes push *return_at(%rip). */
static void patch_write_push(struct making *making, size_t at)
{
    making->patch->code[at] = 0xff;
    making->patch->code[at + 1] = 0x35;
    patch_write_target(making, at + 2, at + PUSH_SIZE,
                       making->patch->trampoline + making->return_at);
}

static void patch_move_call(struct making *making, const struct moved *moved, uint64_t target)
{
    size_t at = moved->new_at;
    patch_check_operand(making, moved, target);
    patch_write_push(making, at);
    patch_add_point(making, at + PUSH_SIZE, target, false);
    patch_write_jump(making, at + PUSH_SIZE, target);
}

/* Copies an instruction to an offset in the trampoline, from where it reads the same memory. */
static void patch_copy(struct making *making, const struct moved *moved, size_t at)
{
    const struct instruction *instruction = &moved->instruction;
    const uint8_t *old = making->bytes + moved->old_at;
    memcpy(making->patch->code + at, old, instruction->size);
    if (instruction->relative_at == 0)
        return;
    uint64_t target = instruction_target(instruction, old, making->patch->entry + moved->old_at);
    patch_check_operand(making, moved, target);
    patch_write_target(making, at + instruction->relative_at, at + instruction->size, target);
}

/* The call becomes a jump; its operand must not depend on rsp: the return address moves that. */
static void patch_move_indirect_call(struct making *making, const struct moved *moved)
{
    const uint8_t *operand = making->bytes + moved->old_at + moved->instruction.modrm_at;
    size_t at = moved->new_at + (size_t)PUSH_SIZE;
    bool is_memory = operand[0] < 0xc0;
    bool is_of_stack =
        is_memory ? (operand[0] & 7) == 4 && (operand[1] & 7) == 4 : (operand[0] & 7) == 4;
    if (is_of_stack) /* or of r12 (rare) */
        patch_fail(making, PATCH_FIXED);
    patch_write_push(making, moved->new_at);
    patch_copy(making, moved, at);
    making->patch->code[at + moved->instruction.modrm_at] ^= 0x10 ^ 0x20; /* /2 becomes /4 */
}

static void patch_move(struct making *making, const struct moved *moved)
{
    const struct instruction *instruction = &moved->instruction;
    uint64_t address = making->patch->entry + moved->old_at;
    const uint8_t *old = making->bytes + moved->old_at;
    uint64_t target =
        instruction->relative_at != 0 ? instruction_target(instruction, old, address) : 0;
    patch_add_point(making, moved->new_at, address, true);
    switch (instruction->flow) {
    case FLOW_JUMP:
        patch_write_jump(making, moved->new_at, patch_new_target(making, target));
        return;
    case FLOW_BRANCH:
        patch_move_branch(making, moved, target);
        return;
    case FLOW_COUNTER:
        patch_move_counter(making, moved, target);
        return;
    case FLOW_CALL:
        patch_move_call(making, moved, target);
        return;
    case FLOW_CALL_INDIRECT:
        patch_move_indirect_call(making, moved);
        return;
    default:
        patch_copy(making, moved, moved->new_at);
    }
}

/* Writes the trampoline: the instructions, a jump to those behind them, the return address. */
static void patch_write_trampoline(struct making *making)
{
    struct patch *patch = making->patch;
    size_t size = 0;
    bool has_call = false;
    for (size_t i = 0; i < making->count; i++) {
        enum instruction_flow flow = making->moved[i].instruction.flow;
        making->moved[i].new_at = (uint8_t)size;
        size += patch_new_size(&making->moved[i].instruction);
        has_call |= flow == FLOW_CALL || flow == FLOW_CALL_INDIRECT;
    }
    size_t back_at = size;
    uint64_t back = patch->entry + making->end;
    size += making->is_at_end ? 0 : PATCH_JUMP_SIZE;
    making->return_at = (uint8_t)(has_call ? size : 0);
    size += has_call ? RETURN_ADDRESS_SIZE : 0;
    patch->code_size = (uint8_t)size;
    for (size_t i = 0; i < making->count; i++)
        patch_move(making, &making->moved[i]);
    if (!making->is_at_end) {
        patch_add_point(making, back_at, back, false);
        patch_write_jump(making, back_at, back);
    }
    if (has_call) /* the last instruction */
        memcpy(patch->code + making->return_at, &back, sizeof back);
}

enum patch_status patch_make(struct patch *patch, uint64_t entry, const uint8_t *bytes, size_t size,
                             uint64_t destination, uint64_t trampoline)
{
    struct making making = {.patch = patch, .bytes = bytes, .size = size};
    memset(patch, 0, sizeof *patch);
    patch->entry = entry;
    patch->trampoline = trampoline;
    patch_find_moved(&making);
    if (making.status != PATCH_OK)
        return making.status;
    patch_check_jumps(&making);
    patch_write_trampoline(&making);
    memcpy(patch->original, bytes, PATCH_JUMP_SIZE);
    patch->jump[0] = JUMP_NEAR;
    patch_write_distance(&making, patch->jump + 1, entry + PATCH_JUMP_SIZE, destination);
    return making.status;
}

const char *patch_reason(enum patch_status status)
{
    static const char *const reasons[] = {
        [PATCH_OK] = "it can be patched",
        [PATCH_UNKNOWN] = "its first instructions cannot be decoded",
        [PATCH_SHORT] = "it is shorter than a jump",
        [PATCH_JUMPED_TO] = "it jumps back to its first bytes",
        [PATCH_FIXED] = "its first instructions cannot be moved",
        [PATCH_FAR] = "it is too far away",
    };
    return reasons[status];
}

/* ---- Program counters ---- */

enum patch_place patch_pc_forward(const struct patch *patch, uint64_t *pc)
{
    uint64_t old_at = *pc - patch->entry;
    if (old_at == 0 || old_at >= PATCH_JUMP_SIZE)
        return PATCH_ELSEWHERE;
    for (size_t i = 0; i < patch->point_count; i++) {
        const struct patch_point *point = &patch->points[i];
        if (point->is_instruction && point->pc == *pc) {
            *pc = patch->trampoline + point->offset;
            return PATCH_MOVED;
        }
    }
    return PATCH_BETWEEN;
}

enum patch_place patch_pc_back(const struct patch *patch, uint64_t *pc)
{
    uint64_t new_at = *pc - patch->trampoline;
    if (new_at >= patch->code_size)
        return PATCH_ELSEWHERE;
    for (size_t i = 0; i < patch->point_count; i++)
        if (patch->points[i].offset == new_at) {
            *pc = patch->points[i].pc;
            return PATCH_MOVED;
        }
    return PATCH_BETWEEN;
}

void patch_stub(uint8_t stub[PATCH_STUB_SIZE], uint64_t address)
{
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    memcpy(stub, jump, sizeof jump);
    memcpy(stub + sizeof jump, &address, sizeof address);
}

void patch_gate(uint8_t gate[PATCH_GATE_SIZE], unsigned count, uint64_t argument, uint64_t address)
{
    static const uint8_t moves[PATCH_GATE_ARGUMENTS + 1][2] = {
        {0x48, 0xbf}, /* movabs to rdi */
        {0x48, 0xbe}, {0x48, 0xba}, {0x48, 0xb9}, {0x49, 0xb8}, {0x49, 0xb9},
    };
    memcpy(gate, moves[count], sizeof moves[count]);
    memcpy(gate + sizeof moves[count], &argument, sizeof argument);
    patch_stub(gate + sizeof moves[count] + sizeof argument, address);
}
