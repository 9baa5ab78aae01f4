/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process that is attached to may have anything where its C library has its
 * allocator: the search for blocks ends, reads nothing but this memory, and gives each address
 * once. An input is a list of changes to the memory of a program with a few blocks: where, and an
 * address or a number that is written there.
 */
#include <string.h>

#include "../target.h"
#include "attach/known_blocks.h"
#include "snapshot/layout/maps.h"

enum {
    DATA_SIZE = 0x2000,
    PART_SIZE = 0x4000,
    PARTS = 3,
    CHANGE_SIZE = 5,
    BINS = 0x100 + 112, /* of the arena, in the data */
    READS_MAX = 200000,
};

static const uint64_t begins[PARTS] = {0x7f0040000000, 0x555500000000, 0x7f0000000000};
static const size_t sizes[PARTS] = {DATA_SIZE, PART_SIZE, PART_SIZE};
static uint64_t words[PARTS][PART_SIZE / 8];
static unsigned reads;

/* ---- Memory: replaces the functions that ask the system ---- */

bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size)
{
    (void)memory;
    for (size_t i = 0; i < PARTS && reads > 0; i++) {
        if (address < begins[i] || address - begins[i] > sizes[i] ||
            size > sizes[i] - (address - begins[i]))
            continue;
        reads--;
        memcpy(bytes, (const char *)words[i] + (address - begins[i]), size);
        return true;
    }
    return false;
}

size_t memory_touched(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS])
{
    (void)memory;
    spans[0] = (struct memory_span){*begin, end};
    *begin = end;
    return 1;
}

/* A program with two blocks, a free one and the last chunk; and a mapped block. */
static void make_program(void)
{
    uint64_t *data = words[0], *heap = words[1], *mapped = words[2];
    memset(words, 0, sizeof words);
    for (size_t i = 0; i < 127; i++) {
        uint64_t list = begins[0] + BINS + 16 * i;
        data[BINS / 8 + 2 * i] = data[BINS / 8 + 2 * i + 1] = list - 16;
    }
    data[BINS / 8 - 2] = begins[1] + 0x400;                /* the last chunk */
    data[BINS / 8 + 127 * 2 + 2] = begins[0] + BINS - 112; /* the next arena */
    uint64_t *parameters = &data[0x1800 / 8];
    parameters[-2] = parameters[-1] = 0x2000;
    parameters[0] = begins[1];
    parameters[1] = 64;
    parameters[2] = 1032;
    parameters[3] = 7;
    heap[1] = 0x291; /* a cache with one chunk */
    heap[2] = 1;
    heap[2 + 16] = begins[1] + 0x2a0;
    heap[0x290 / 8 + 1] = 0x21;
    heap[0x290 / 8 + 2] = (begins[1] + 0x2a0) >> 12;
    heap[0x2b0 / 8 + 1] = 0x101;
    heap[0x3b0 / 8 + 1] = 0x51;
    heap[0x400 / 8 + 1] = PART_SIZE - 0x400 + 1;
    mapped[1] = 0x2002;
}

/* A value by two bytes: an address in a part, or a number. */
static uint64_t value_of(unsigned kind, unsigned number)
{
    static const uint64_t others[] = {0, 0x10, 0x21, 0x291, 0x2002, 0x4001, UINT64_MAX, 0x800001};
    if (kind < PARTS)
        return begins[kind] + 16 * number;
    if (kind < 2 * PARTS) /* as it is in a list */
        return (begins[kind - PARTS] + 16 * number) ^ begins[1] >> 12;
    return others[number % (sizeof others / sizeof *others)] + number / 8 * 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mapping mappings[] = {
        {.begin = 0x555500000000,
         .end = 0x555500000000 + PART_SIZE,
         .is_readable = true,
         .is_writable = true,
         .name = "[heap]"},
        {.begin = 0x7f0000000000,
         .end = 0x7f0000000000 + PART_SIZE,
         .is_readable = true,
         .is_writable = true,
         .name = ""},
    };
    const struct maps maps = {.items = mappings, .count = 2};
    struct memory memory = {.pid = 0};
    const uint64_t pointers[] = {begins[0] + DATA_SIZE, begins[1] + sizes[1] / 2};
    struct known_blocks blocks;
    make_program();
    for (size_t at = 1; at + CHANGE_SIZE <= size; at += CHANGE_SIZE) {
        const uint8_t *change = data + at;
        size_t part = change[0] % PARTS, word = (change[1] | change[2] << 8) % (sizes[part] / 8);
        words[part][word] = value_of(change[3] % 8, change[4]);
    }
    reads = READS_MAX;
    unsigned version = size > 0 ? KNOWN_BLOCKS_OLDEST + data[0] % 12 : KNOWN_BLOCKS_NEWEST;
    target_require(known_blocks_find(&memory, &maps,
                                     (struct memory_span){begins[0], begins[0] + DATA_SIZE},
                                     version, (struct known_threads){pointers, 2}, &blocks),
                   "memory");
    for (size_t i = 1; i < blocks.count; i++)
        target_require(blocks.items[i - 1].address < blocks.items[i].address, "each address once");
    if (size <= 1 && version > KNOWN_BLOCKS_OLDEST && version <= KNOWN_BLOCKS_NEWEST)
        target_require(blocks.count == 3 && !blocks.reason && blocks.cached == 0x290 + 0x20,
                       "the blocks of the program");
    known_blocks_free(&blocks);
    return 0;
}
