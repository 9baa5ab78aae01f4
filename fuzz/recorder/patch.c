/* SPDX-License-Identifier: MIT */
/*
 * Whatever bytes a function begins with: they are refused, or the trampoline leads where they lead.
 * The instructions in it have the targets and operands of those that were moved, and each place in
 * the one has its place in the other. The first byte of an input says how far the trampoline is.
 */
#include <stdlib.h>
#include <string.h>

#include "../target.h"
#include "patch/instruction.h"
#include "patch/patch.h"

static const uint64_t entry = 0x7f0000000000;

/* An instruction in the trampoline; a jump to `pc` where it goes on in the function. */
static struct instruction decode(const struct patch *patch, size_t offset)
{
    struct instruction instruction;
    target_require(
        instruction_decode(patch->code + offset, patch->code_size - offset, &instruction),
        "the trampoline has instructions");
    return instruction;
}

/* Returns where an address in the trampoline leads to; others are as they are. */
static uint64_t in_function(const struct patch *patch, uint64_t address)
{
    uint64_t pc = address;
    target_require(patch_pc_back(patch, &pc) != PATCH_BETWEEN, "jumps lead to instructions");
    return pc;
}

/* A call became a push of the address behind it, and a jump. */
static size_t check_call(const struct patch *patch, size_t offset, uint64_t end)
{
    struct instruction push = decode(patch, offset);
    uint64_t pushed;
    uint64_t place = instruction_target(&push, patch->code + offset, offset);
    target_require(place <= patch->code_size - sizeof pushed, "an address is there");
    memcpy(&pushed, patch->code + place, sizeof pushed);
    target_require(pushed == end && end >= entry + PATCH_JUMP_SIZE, "calls return behind them");
    return offset + push.size;
}

static void check_moved(const struct patch *patch, const uint8_t *bytes, size_t size,
                        const struct patch_point *point)
{
    struct instruction old;
    size_t old_at = point->pc - entry, offset = point->offset;
    target_require(old_at < size && instruction_decode(bytes + old_at, size - old_at, &old),
                   "only instructions are moved");
    if (old.flow == FLOW_CALL || old.flow == FLOW_CALL_INDIRECT)
        offset = check_call(patch, offset, point->pc + old.size);
    struct instruction new = decode(patch, offset);
    if (old.flow == FLOW_COUNTER) { /* the second jump has the target */
        uint64_t next = instruction_target(&new, patch->code + offset, patch->trampoline + offset);
        target_require(in_function(patch, patch->trampoline + offset + new.size) ==
                           point->pc + old.size,
                       "no jump goes on behind it");
        offset = next - patch->trampoline;
        new = decode(patch, offset);
    }
    target_require((old.relative_at != 0) == (new.relative_at != 0), "operands stay");
    if (old.relative_at == 0) {
        target_require(old.flow == FLOW_CALL_INDIRECT ||
                           memcmp(bytes + old_at, patch->code + offset, old.size) == 0,
                       "others are copied");
        return;
    }
    uint64_t old_target = instruction_target(&old, bytes + old_at, point->pc);
    if (old_target - patch->trampoline < patch->code_size)
        return; /* no function leads to where nothing was before */
    uint64_t new_target =
        instruction_target(&new, patch->code + offset, patch->trampoline + offset);
    target_require(in_function(patch, new_target) == old_target, "the same target");
}

static void check(const struct patch *patch, const uint8_t *bytes, size_t size)
{
    target_require(patch->code_size <= PATCH_TRAMPOLINE_MAX, "it has room");
    target_require(patch->point_count <= PATCH_POINTS_MAX, "as many points as there may be");
    for (size_t i = 0; i < patch->point_count; i++) {
        const struct patch_point *point = &patch->points[i];
        uint64_t back = patch->trampoline + point->offset;
        target_require(patch_pc_back(patch, &back) == PATCH_MOVED && back == point->pc,
                       "a point leads back");
        if (!point->is_instruction)
            continue;
        uint64_t pc = point->pc;
        enum patch_place place = patch_pc_forward(patch, &pc);
        target_require(point->pc == entry
                           ? place == PATCH_ELSEWHERE
                           : place == PATCH_MOVED && pc == patch->trampoline + point->offset,
                       "and forward");
        check_moved(patch, bytes, size, point);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct patch patch;
    uint8_t *bytes = target_copy(data + 1, size - 1);
    uint64_t trampoline = entry + (uint64_t)((int64_t)(int8_t)data[0] * (1 << 24));
    if (data[0] == 0)
        trampoline -= PATCH_TRAMPOLINE_MAX;
    enum patch_status status = patch_make(&patch, entry, bytes, size - 1, trampoline, trampoline);
    if (status == PATCH_OK)
        check(&patch, bytes, size - 1);
    target_require(patch_reason(status) != NULL, "a reason");
    free(bytes);
    return 0;
}
