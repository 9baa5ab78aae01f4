/* SPDX-License-Identifier: MIT */
/** Helpers of the fuzz targets. Each target is a file, named after the property that it checks. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "support/records/record_text.h"

/** The target: returns 0, and aborts when the property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Aborts with the name of the property, unless `holds`. */
void target_require(int holds, const char *what);

/** Copies the bytes into a block of exactly their size, so that sanitizers detect a read past the
 * end. */
uint8_t *target_copy(const uint8_t *data, size_t size);

/** The C library's allocator; aborts on a request larger than any trace justifies. */
extern const struct ttd_allocator target_allocator;

struct ttd_input target_input(const uint8_t *bytes, size_t size);

/** Opens a reader. Returns NULL if the library refuses; aborts unless the status is documented. */
struct ttd_reader *target_open(const uint8_t *bytes, size_t size, int tolerant);

/** Counts of the records read, and hashes of their texts in the order of the file. */
struct target_digest {
    uint64_t events;
    uint64_t records;
    uint64_t hash;
    /** Hash of the text of the events alone. */
    uint64_t events_hash;
};

/** Reads all records and every byte of them. Returns the last status. */
enum ttd_status target_read(struct ttd_reader *reader, struct target_digest *digest);

/**
 * Checks that looking up the stacks of each chunk by id, the last first, gives those that
 * sequential reading gives, also in a damaged chunk.
 */
void target_check_stacks(const uint8_t *bytes, size_t size);

/** Whether verify calls the trace intact. */
int target_is_intact(const uint8_t *bytes, size_t size);

#endif
