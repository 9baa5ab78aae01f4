/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_DWARF_H
#define RECORDER_DWARF_DWARF_H

/* Constants of DWARF and .eh_frame that the unwinder understands, and bounds-safe reading. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Pointer encodings: the low half is the format, the high half its base. */
enum {
    PE_ABSPTR = 0x00,
    PE_ULEB = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_OMIT = 0xff,
};

/** Call frame instructions. */
enum {
    CFA_OPERAND = 0x3f, /* the operand in the low bits of the next three */
    CFA_ADVANCE_LOC = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/** Operations of expressions. Where only the first and the last of a range are named, it is whole.
 */
enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

/*
 * Bounds-safe reading of call frame information. The first error empties the cursor and sticks:
 * callers check `is_bad` once. Reads after an error give 0.
 */

struct cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool is_bad;
    uintptr_t
        shift; /* from where the bytes are to where the process has them; 0 if it is this one */
};

/** Returns the address, in the process, of the next byte. */
static inline uintptr_t cursor_address(const struct cursor *cursor)
{
    return (uintptr_t)cursor->next + cursor->shift;
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

static inline void cursor_fail(struct cursor *cursor)
{
    cursor->next = cursor->end;
    cursor->is_bad = true;
}

static inline void cursor_skip(struct cursor *cursor, uint64_t size)
{
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return;
    }
    cursor->next += size;
}

/** Reads a little-endian number of `size` bytes, 1 to 8. */
static inline uint64_t cursor_uint(struct cursor *cursor, size_t size)
{
    uint64_t value = 0;
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return 0;
    }
    memcpy(&value, cursor->next, size);
    cursor->next += size;
    return value;
}

static inline int64_t cursor_int(struct cursor *cursor, size_t size)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(cursor_uint(cursor, size) << shift) >> shift;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    if (cursor->next == cursor->end) {
        cursor->is_bad = true;
        return 0;
    }
    return *cursor->next++;
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    cursor_fail(cursor);
    return 0;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            if ((byte & 0x40) != 0 && shift + 7 < 64)
                value |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)value;
        }
    }
    cursor_fail(cursor);
    return 0;
}

/** Reads an encoded pointer; `data` is the base of DATAREL. Fails for indirect pointers. */
static inline uintptr_t cursor_pointer(struct cursor *cursor, uint8_t encoding, uintptr_t data)
{
    uintptr_t base = 0;
    uintptr_t value;
    switch (encoding & 0xf0) {
    case PE_ABSPTR:
        break;
    case PE_PCREL:
        base = cursor_address(cursor);
        break;
    case PE_DATAREL:
        base = data;
        break;
    default:
        cursor_fail(cursor);
        return 0;
    }
    switch (encoding & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        value = cursor_uint(cursor, 8);
        break;
    case PE_ULEB:
        value = cursor_uleb(cursor);
        break;
    case PE_SLEB:
        value = (uintptr_t)cursor_sleb(cursor);
        break;
    case PE_UDATA2:
        value = cursor_uint(cursor, 2);
        break;
    case PE_SDATA2:
        value = (uintptr_t)cursor_int(cursor, 2);
        break;
    case PE_UDATA4:
        value = cursor_uint(cursor, 4);
        break;
    case PE_SDATA4:
        value = (uintptr_t)cursor_int(cursor, 4);
        break;
    default:
        cursor_fail(cursor);
        return 0;
    }
    return base + value;
}

#endif
