/* SPDX-License-Identifier: MIT */
#include "patch/clobbers.h"

#include "patch/instruction.h"

enum {
    PATHS_MAX = 256,
    INSTRUCTIONS_MAX = 1 << 14, /* of all paths */
    MOVSLQ = 0x63,
};

/* A search. A path begins at the entry or where a jump or a call leads. */
struct clobbers_search {
    clobbers_code *code;
    void *context;
    uint64_t paths[PATHS_MAX];
    size_t count;
    unsigned left; /* instructions */
};

static void clobbers_add(struct clobbers_search *search, uint64_t address)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->paths[i] == address)
            return;
    if (search->count < PATHS_MAX)
        search->paths[search->count++] = address;
}

/* Whether an instruction that ends a path is a jump to a function that is not known, and not
 * through a table of the places in its own: such a table is indexed, or has distances that are
 * widened. */
static bool clobbers_leaves(const struct instruction *instruction, const uint8_t *code,
                            bool has_widened)
{
    enum { JUMP = 4, WITH_INDEX = 4, REGISTER = 3 };
    uint8_t modrm = instruction->modrm_at != 0 ? code[instruction->modrm_at] : 0;
    if (code[instruction->opcode_at] != 0xff || (modrm >> 3 & 7) != JUMP)
        return false;
    return modrm >> 6 == REGISTER ? !has_widened : (modrm & 7) != WITH_INDEX;
}

/* Follows a path to its end. Returns whether it has such a call. */
static bool clobbers_follow(struct clobbers_search *search, uint64_t address)
{
    struct instruction instruction;
    const uint8_t *code;
    size_t size;
    bool has_widened = false;
    for (; search->left > 0; search->left--, address += instruction.size) {
        if ((size = search->code(search->context, address, &code)) == 0 ||
            !instruction_decode(code, size, &instruction))
            return false;
        switch (instruction.flow) {
        case FLOW_CALL_INDIRECT:
            return true;
        case FLOW_END:
            return clobbers_leaves(&instruction, code, has_widened);
        case FLOW_JUMP:
            clobbers_add(search, instruction_target(&instruction, code, address));
            return false;
        case FLOW_BRANCH:
        case FLOW_COUNTER:
        case FLOW_CALL:
            clobbers_add(search, instruction_target(&instruction, code, address));
            break;
        default:
            has_widened |= code[instruction.opcode_at] == MOVSLQ;
            break;
        }
    }
    return false;
}

bool clobbers_all(uint64_t entry, clobbers_code *code, void *context)
{
    struct clobbers_search search = {
        .code = code, .context = context, .paths = {entry}, .count = 1, .left = INSTRUCTIONS_MAX};
    for (size_t i = 0; i < search.count; i++)
        if (clobbers_follow(&search, search.paths[i]))
            return true;
    return false;
}
