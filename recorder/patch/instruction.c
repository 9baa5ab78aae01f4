/* SPDX-License-Identifier: MIT */
#include "patch/instruction.h"

#include <string.h>

/*
 * The bytes that follow each opcode, in rows of 16:
 *   .  nothing                     M  ModRM
 *   B  1 byte                      b  ModRM and 1 byte
 *   Z  2 or 4 bytes                z  ModRM and 2 or 4 bytes
 *   V  2, 4 or 8 bytes             O  an address
 *   W  2 bytes                     E  3 bytes
 *   J  a target of 1 byte          L  a target of 4 bytes
 *   t  ModRM; 1 byte for test      T  ModRM; 2 or 4 bytes for test
 *   x  no instruction, or a prefix
 */
static const char one_byte[] = "MMMMBZxxMMMMBZxx" /* 00 */
                               "MMMMBZxxMMMMBZxx" /* 10 */
                               "MMMMBZxxMMMMBZxx" /* 20 */
                               "MMMMBZxxMMMMBZxx" /* 30 */
                               "xxxxxxxxxxxxxxxx" /* 40 */
                               "................" /* 50 */
                               "xxxMxxxxZzBb...." /* 60 */
                               "JJJJJJJJJJJJJJJJ" /* 70 */
                               "bzxbMMMMMMMMMMMM" /* 80 */
                               "..........x....." /* 90 */
                               "OOOO....BZ......" /* a0 */
                               "BBBBBBBBVVVVVVVV" /* b0 */
                               "bbW.xxbzE.W..Bx." /* c0 */
                               "MMMMxxx.MMMMMMMM" /* d0 */
                               "JJJJBBBBLLxJ...." /* e0 */
                               "x.xx..tT......MM" /* f0 */;

static const char after_0f[] = "MMMMx.....x.xM.b" /* 00 */
                               "MMMMMMMMMMMMMMMM" /* 10 */
                               "MMMMxxxxMMMMMMMM" /* 20 */
                               "......x.xxxxxxxx" /* 30 */
                               "MMMMMMMMMMMMMMMM" /* 40 */
                               "MMMMMMMMMMMMMMMM" /* 50 */
                               "MMMMMMMMMMMMMMMM" /* 60 */
                               "bbbbMMM.MMxxMMMM" /* 70 */
                               "LLLLLLLLLLLLLLLL" /* 80 */
                               "MMMMMMMMMMMMMMMM" /* 90 */
                               "...MbMxx...MbMMM" /* a0 */
                               "MMMMMMMMMMbMMMMM" /* b0 */
                               "MMbMbbbM........" /* c0 */
                               "MMMMMMMMMMMMMMMM" /* d0 */
                               "MMMMMMMMMMMMMMMM" /* e0 */
                               "MMMMMMMMMMMMMMMM" /* f0 */;

/* The bytes of an instruction before and with its opcode. */
struct heading {
    const char *map; /* one_byte, after_0f or NULL: all have ModRM */
    uint8_t opcode;  /* the last byte of it */
    uint8_t opcode_at;
    char follows; /* letter of a map */
    bool is_wide; /* REX.W */
    bool has_66;
    bool has_67;
    bool has_mandatory; /* 66, f2, f3 or f0: not before a vector prefix */
    bool has_vector;    /* VEX, EVEX or XOP */
};

/* Finds the bytes behind an opcode of one of the maps that VEX, EVEX and XOP have numbers for. */
static bool instruction_vector_follows(unsigned map, struct heading *heading)
{
    switch (map) {
    case 1:
        heading->map = after_0f;
        heading->follows = after_0f[heading->opcode];
        /* kmov and the like; 0f alone has none; 78 to 7b convert to unsigned numbers. */
        if (heading->opcode != 0x77 && strchr(".x", heading->follows))
            heading->follows = 'M';
        return heading->follows != 'L';
    case 2:
    case 5:
    case 6:
    case 9: /* 8 to 10 are XOP's */
        heading->follows = 'M';
        return true;
    case 3:
    case 8:
        heading->follows = 'b';
        return true;
    case 10:
        heading->follows = 'z';
        return true;
    default:
        return false;
    }
}

/* Reads the prefix VEX, EVEX or XOP at `at`, and the opcode behind it. */
static bool instruction_vector(const uint8_t *bytes, size_t size, size_t at,
                               struct heading *heading)
{
    size_t prefix = bytes[at] == 0xc5 ? 2 : bytes[at] == 0x62 ? 4 : 3;
    if (size - at <= prefix)
        return false;
    uint8_t selector = bytes[at + 1];
    unsigned map = prefix == 2 ? 1 : selector & 0x1f;
    /* In EVEX, only instructions of APX have bit 3. */
    if (prefix == 4)
        map = (selector & 0x08) == 0 ? selector & 0x07 : 0;
    if (bytes[at] != 0x8f && map > 6)
        return false;
    heading->opcode_at = (uint8_t)(at + prefix);
    heading->opcode = bytes[heading->opcode_at];
    heading->has_vector = true;
    return instruction_vector_follows(map, heading);
}

/* Whether a prefix for vectors begins here. XOP is pop with a number that pop does not have. */
static bool instruction_is_vector(const uint8_t *bytes, size_t size)
{
    return bytes[0] == 0xc4 || bytes[0] == 0xc5 || bytes[0] == 0x62 ||
           (bytes[0] == 0x8f && size > 1 && (bytes[1] & 0x1f) >= 8);
}

/* Reads an opcode of one, two or three bytes. */
static bool instruction_opcode(const uint8_t *bytes, size_t size, size_t at,
                               struct heading *heading)
{
    heading->map = one_byte;
    if (bytes[at] == 0x0f) {
        if (++at >= size)
            return false;
        heading->map = after_0f;
        if (bytes[at] == 0x38 || bytes[at] == 0x3a) {
            heading->map = NULL;
            heading->follows = bytes[at] == 0x3a ? 'b' : 'M';
            if (++at >= size)
                return false;
        }
    }
    heading->opcode = bytes[at];
    heading->opcode_at = (uint8_t)at;
    if (heading->map)
        heading->follows = heading->map[bytes[at]];
    /* extrq and insertq of SSE4a have this opcode. */
    bool is_sse4a = heading->map == after_0f && bytes[at] == 0x78 && heading->has_mandatory;
    return heading->follows != 'x' && !is_sse4a;
}

/* Reads prefixes and opcode. */
static bool instruction_heading(const uint8_t *bytes, size_t size, struct heading *heading)
{
    static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e,
                                       0x36, 0x3e, 0x26, 0x64, 0x65};
    static const uint8_t mandatory[] = {0x66, 0xf2, 0xf3, 0xf0};
    size_t at = 0;
    memset(heading, 0, sizeof *heading);
    for (; at < size && memchr(prefixes, bytes[at], sizeof prefixes); at++) {
        heading->has_66 |= bytes[at] == 0x66;
        heading->has_67 |= bytes[at] == 0x67;
        heading->has_mandatory |= memchr(mandatory, bytes[at], sizeof mandatory) != NULL;
    }
    if (at >= size)
        return false;
    if (instruction_is_vector(bytes + at, size - at))
        return !heading->has_mandatory && instruction_vector(bytes, size, at, heading);
    if ((bytes[at] & 0xf0) == 0x40) {
        heading->is_wide = (bytes[at] & 0x08) != 0;
        if (++at >= size)
            return false;
    }
    return instruction_opcode(bytes, size, at, heading);
}

/* Returns the bytes of ModRM, SIB and displacement; 0 if they are not all there. */
static size_t instruction_operand_size(const uint8_t *bytes, size_t size, size_t at)
{
    if (at >= size)
        return 0;
    unsigned mode = bytes[at] >> 6, base = bytes[at] & 7;
    size_t operand = 1;
    if (mode == 3)
        return operand;
    if (base == 4) {
        if (at + 1 >= size)
            return 0;
        base = bytes[at + 1] & 7;
        operand++;
        if (base == 5 && mode == 0)
            return operand + 4;
    }
    if (mode == 0)
        return operand + (base == 5 ? 4 : 0);
    return operand + (mode == 1 ? 1 : 4);
}

/* Returns the bytes behind opcode and operand. */
static size_t instruction_rest_size(const struct heading *heading, unsigned reg)
{
    size_t number = heading->has_66 && !heading->is_wide ? 2 : 4;
    switch (heading->follows) {
    case 'B':
    case 'b':
    case 'J':
        return 1;
    case 'L':
        return 4;
    case 'W':
        return 2;
    case 'E':
        return 3;
    case 'Z':
    case 'z':
        return number;
    case 'V':
        return heading->is_wide ? 8 : number;
    case 'O':
        return heading->has_67 ? 4 : 8;
    case 't':
        return reg < 2 ? 1 : 0;
    case 'T':
        return reg < 2 ? number : 0;
    default:
        return 0;
    }
}

static enum instruction_flow instruction_flow_one_byte(uint8_t opcode, uint8_t modrm)
{
    unsigned reg = modrm >> 3 & 7;
    if ((opcode & 0xf0) == 0x70)
        return FLOW_BRANCH;
    switch (opcode) {
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
        return FLOW_COUNTER;
    case 0xe8:
        return FLOW_CALL;
    case 0xe9:
    case 0xeb:
        return FLOW_JUMP;
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcf:
    case 0xf4:
        return FLOW_END;
    case 0xcc:
    case 0xcd:
    case 0xf1:
        return FLOW_FIXED;
    case 0xc7:
        return modrm == 0xf8 ? FLOW_FIXED : FLOW_NEXT; /* xbegin */
    case 0xff:
        return reg == 2               ? FLOW_CALL_INDIRECT
               : reg == 4 || reg == 5 ? FLOW_END
               : reg == 3             ? FLOW_FIXED
                                      : FLOW_NEXT;
    default:
        return FLOW_NEXT;
    }
}

static enum instruction_flow instruction_flow_of(const struct heading *heading, uint8_t modrm)
{
    if (heading->has_vector)
        return FLOW_NEXT;
    if (heading->map == one_byte)
        return instruction_flow_one_byte(heading->opcode, modrm);
    if (heading->map != after_0f)
        return FLOW_NEXT;
    if ((heading->opcode & 0xf0) == 0x80)
        return FLOW_BRANCH;
    switch (heading->opcode) {
    case 0x07: /* sysret */
    case 0x0b: /* ud2, ud1, ud0 */
    case 0x35: /* sysexit */
    case 0xb9:
    case 0xff:
        return FLOW_END;
    case 0x34: /* sysenter */
        return FLOW_FIXED;
    default:
        return FLOW_NEXT;
    }
}

bool instruction_decode(const uint8_t *bytes, size_t size, struct instruction *instruction)
{
    struct heading heading;
    struct instruction decoded = {0};
    uint8_t modrm = 0;
    size = size < INSTRUCTION_MAX ? size : INSTRUCTION_MAX;
    if (!instruction_heading(bytes, size, &heading) || heading.follows == 'x')
        return false;
    size_t at = heading.opcode_at + 1u;
    decoded.opcode_at = heading.opcode_at;
    if (strchr("MbztT", heading.follows)) {
        size_t operand = instruction_operand_size(bytes, size, at);
        if (operand == 0)
            return false;
        decoded.modrm_at = (uint8_t)at;
        modrm = bytes[at];
        /* Control registers have no memory operand, whatever the mode is. */
        if (heading.map == after_0f && !heading.has_vector && (heading.opcode & 0xfc) == 0x20)
            operand = 1;
        else if ((modrm & 0xc7) == 0x05)
            decoded.relative_at = (uint8_t)(at + 1);
        at += operand;
    }
    decoded.flow = instruction_flow_of(&heading, modrm);
    if (heading.follows == 'J' || heading.follows == 'L') {
        /* Processors disagree about the size of the target behind this prefix. */
        if (heading.has_66 && !heading.is_wide)
            return false;
        decoded.relative_at = (uint8_t)at;
    } else if (decoded.relative_at != 0 && heading.has_67) {
        decoded.flow = FLOW_FIXED; /* from eip */
    }
    decoded.relative_size = decoded.relative_at == 0 ? 0 : heading.follows == 'J' ? 1 : 4;
    at += instruction_rest_size(&heading, modrm >> 3 & 7);
    if (at > size)
        return false;
    decoded.size = (uint8_t)at;
    *instruction = decoded;
    return true;
}

uint64_t instruction_target(const struct instruction *instruction, const uint8_t *bytes,
                            uint64_t address)
{
    int32_t distance = 0;
    if (instruction->relative_size == 1)
        distance = (bytes[instruction->relative_at] ^ 0x80) - 0x80; /* signed */
    else
        memcpy(&distance, bytes + instruction->relative_at, sizeof distance);
    return address + instruction->size + (uint64_t)(int64_t)distance;
}

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
