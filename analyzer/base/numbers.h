/* SPDX-License-Identifier: MIT */
/** Numbers and ranges of numbers as text. */
#ifndef ANALYZER_BASE_NUMBERS_H
#define ANALYZER_BASE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/** Parses a decimal number, or a hexadecimal one with 0x; false unless it is the whole text. */
bool number_parse(const char *text, uint64_t *number);

/** Parses a number of bytes; a suffix K, M, G or T stands for a power of 1024. */
bool number_parse_size(const char *text, uint64_t *number);

/** A range of numbers from `first` to `last`, both included. */
struct number_range {
    uint64_t first;
    uint64_t last;
};

/** Parses a range N, N-M, N- or N+LENGTH, whose numbers may have suffixes. */
bool number_parse_range(const char *text, struct number_range *range);

static inline bool number_in_range(uint64_t number, struct number_range range)
{
    return number >= range.first && number <= range.last;
}

#endif
