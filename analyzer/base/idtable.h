/* SPDX-License-Identifier: MIT */
/** A table of records by dense identifier. Missing identifiers, such as the ones of a damaged
 * chunk, cost nothing: memory grows with the records, never with the value of an identifier. */
#ifndef ANALYZER_BASE_IDTABLE_H
#define ANALYZER_BASE_IDTABLE_H

#include <stddef.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

/** A run of consecutive identifiers, and their records. */
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
 * Adds the record of `id`, all zero, and sets `*record` to it. Identifiers come in increasing
 * order; an earlier one is ignored and sets `*record` to NULL, since a definition never changes.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status idtable_add(struct idtable *table, ttd_id id, void **record);

/** Looks up the record of `id`; NULL if there is none. Valid until the next addition. */
void *idtable_get(const struct idtable *table, ttd_id id);

/** Counts the records. */
size_t idtable_count(const struct idtable *table);

#endif
