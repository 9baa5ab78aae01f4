/* SPDX-License-Identifier: MIT */
/** What the fuzz targets have in common. Each target is one file, named after its property. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "support/record_text.h"

/** The target: returns 0, and aborts when the property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Aborts, saying what does not hold, unless `holds`. */
void target_require(int holds, const char *what);

/** The bytes in a block of exactly their size, so that reading past the end is found out. */
uint8_t *target_copy(const uint8_t *data, size_t size);

/** The C library's memory; a request that no file of the format justifies is a finding. */
extern const struct ttd_allocator target_allocator;

struct ttd_input target_input(const uint8_t *bytes, size_t size);

/** Opens a reader; NULL when the library refuses, for a reason that it documents. */
struct ttd_reader *target_open(const uint8_t *bytes, size_t size, int tolerant);

/** The records read, by count and by a hash of their texts, in the order of the file. */
struct target_digest {
    uint64_t events;
    uint64_t records;
    uint64_t hash;
    /** Hash of the text of the events alone. */
    uint64_t events_hash;
};

/** Reads all, down to the last byte of the last record. Returns how it ended. */
enum ttd_status target_read(struct ttd_reader *reader, struct target_digest *digest);

/**
 * Looks up all stacks of all chunks, the last first: there are those that are read one after the
 * other, no matter how the reading ends.
 */
void target_check_stacks(const uint8_t *bytes, size_t size);

/** Whether verify finds nothing wrong. */
int target_is_intact(const uint8_t *bytes, size_t size);

#endif
