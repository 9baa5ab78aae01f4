/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/page/page_compress.h"

/* Some browsers take a longer text of a script element for an empty one. */
#define TEXT_MAX ((size_t)480 << 20)

/* Two digits of so many characters stand for so many bits. */
#define RADIX 91
#define BITS  13

/* The first digit. One of them would begin a tag, and is replaced by the character that no other
 * digit is. */
#define FIRST  '#'
#define TAG    '<'
#define NO_TAG '!'

size_t page_packed_size(size_t text_size)
{
    return text_size / 16 * BITS;
}

bool page_fits(size_t size)
{
    return size <= page_packed_size(TEXT_MAX);
}

static char digit(unsigned value)
{
    char character = (char)(FIRST + value);
    return character == TAG ? NO_TAG : character;
}

static void write_pair(struct text_output *output, uint32_t value)
{
    const char pair[] = {digit(value % RADIX), digit(value / RADIX)};
    out_write(output, pair, sizeof pair);
}

void page_write_packed(struct text_output *output, const struct page_packed *packed)
{
    char size[32];
    out_write(output, size, (size_t)snprintf(size, sizeof size, "%zu ", packed->size));
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < packed->size; i++) {
        bits |= (uint32_t)packed->data[i] << count;
        count += 8;
        if (count < BITS)
            continue;
        write_pair(output, bits & ((1u << BITS) - 1));
        bits >>= BITS;
        count -= BITS;
    }
    if (count)
        write_pair(output, bits);
}
