/* SPDX-License-Identifier: MIT */
/*
 * Ends with a large heap: entries BLOCKS. Four blocks are an entry, as those that bench/heap
 * writes: a record, which points at a key, a value, a list and another entry, and these, which
 * point back and at others. Nobody holds one entry in a hundred.
 */
#include <stdint.h>
#include <stdlib.h>

enum { PARTS = 4, WORDS = 5 };

/* Holds the entries that none other holds, but for those that are lost. */
static void **held;

static uint64_t draw(uint64_t count)
{
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % count;
}

static void make(void ***entry)
{
    *entry = calloc(WORDS, sizeof **entry);
    for (int part = 1; part < PARTS; part++)
        (*entry)[part - 1] = calloc(WORDS, sizeof **entry);
}

static void connect(void ***entries, uint64_t count, uint64_t number)
{
    void **record = entries[number];
    uint64_t next = (number + 1) * 7919 % count;
    record[3] = next % 100 ? entries[next] : NULL;
    for (int part = 1; part < PARTS; part++) {
        void **words = record[part - 1];
        words[0] = record;
        words[1] = entries[draw(count / 100 + 1)];
        words[2] = part + 1 < PARTS ? record[part] : NULL;
    }
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) / PARTS : 0;
    void ***entries = calloc(count, sizeof *entries);
    held = calloc(count / 100 + 1, sizeof *held);
    for (uint64_t i = 0; i < count; i++)
        make(&entries[i]);
    for (uint64_t i = 0; i < count; i++)
        connect(entries, count, i);
    for (uint64_t i = 1; i < count; i += 100)
        held[i / 100] = entries[i];
    free(entries);
    return count == 0;
}
