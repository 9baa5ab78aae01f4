/* SPDX-License-Identifier: MIT */
/** Records of a command in memory: the rows of one table of a query. */
#ifndef ANALYZER_QUERY_QUERY_RECORDS_H
#define ANALYZER_QUERY_QUERY_RECORDS_H

#include <ttdtrace/status.h>

#include "report/writers/row.h"

/** The types of columns, as the schema declares them. */
enum query_type {
    QUERY_INTEGER,
    QUERY_REAL,
    /** A number in 64 bits, printed in hexadecimal. */
    QUERY_ADDRESS,
    /** Text of a fixed width, so that it is sorted as positions are; printed short. */
    QUERY_POSITION,
    QUERY_TEXT
};

struct query_column {
    const char *name;
    enum query_type type;
};

/** A value: of a position `number` and `low`, of a text `size` bytes at offset `number` of the
 * pool. */
struct query_cell {
    enum row_type type;
    uint32_t size;
    uint64_t number;
    union {
        uint64_t low;
        double real;
    };
};

/** Records of `column_count` cells each. The sink must be the first member. */
struct query_records {
    struct row_sink sink;
    /** Ended by a column without a name. */
    const struct query_column *columns;
    size_t column_count;
    struct query_cell *cells;
    size_t cell_capacity;
    /** Complete records; and the column that is expected next. */
    size_t count;
    size_t next;
    char *pool;
    size_t pool_size;
    size_t pool_capacity;
    /** A record has a member that is no column. */
    const char *unknown;
    /** The first failure, or TTD_OK. */
    enum ttd_status status;
};

/** Begins an empty list of records; its sink takes the records of `list`. */
void query_records_init(struct query_records *records, const struct query_column *columns,
                        const char *list);
void query_records_free(struct query_records *records);

/** Returns the number of columns. */
size_t query_columns_count(const struct query_column *columns);

#endif
