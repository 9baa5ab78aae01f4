/* SPDX-License-Identifier: MIT */
/**
 * Records by dense identifier. Identifiers that are missing, such as those of a damaged chunk, cost
 * nothing: memory grows with the records, never with the value of an identifier.
 */
#ifndef ANALYZER_BASE_IDTABLE_H
#define ANALYZER_BASE_IDTABLE_H

#include <stddef.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

/** Consecutive identifiers. */
struct idtable_run {
    ttd_id first;
    size_t count;
    size_t capacity;
    void *records;
};

struct idtable {
    size_t record_size;
    struct idtable_run *runs;
    size_t run_count;
    size_t run_capacity;
};

void idtable_init(struct idtable *table, size_t record_size);
void idtable_free(struct idtable *table);

/**
 * Adds the record of `id`, all zero, and sets `*record`. Identifiers come in increasing order; one
 * that does not is ignored, with `*record` NULL, since a definition never changes.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status idtable_add(struct idtable *table, ttd_id id, void **record);

/** The record of `id`, or NULL. Valid until the next addition. */
void *idtable_get(const struct idtable *table, ttd_id id);

/** How many records there are. */
size_t idtable_count(const struct idtable *table);

#endif
