/* SPDX-License-Identifier: MIT */
/**
 * Everything for reading and writing traces but <ttdtrace/advanced.h>. The headers of the live API,
 * for programs that are recorded, are <ttdtrace/live.h>, <ttdtrace/live_heap.h> and
 * <ttdtrace/live_dump.h>. All headers refer to sections of the format's description as (spec,
 * "Section"): this is format.md, which is installed in share/doc/ttdtrace.
 *
 * A trace is a file with all calls that allocate and release memory in one process. This library
 * reads and writes such files; a program links it with `pkg-config --cflags --libs ttdtrace`.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     printf("process %llu\n", (unsigned long long)ttd_reader_trace(reader)->process_id);
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         printf("%zu %s\n", batch.count, ttd_kind_name(batch.kind));
 *     ttd_reader_close(reader);
 */
#ifndef TTDTRACE_TTDTRACE_H
#define TTDTRACE_TTDTRACE_H

#include <ttdtrace/allocator.h>
#include <ttdtrace/amend.h>
#include <ttdtrace/batch.h>
#include <ttdtrace/io.h>
#include <ttdtrace/model.h>
#include <ttdtrace/names.h>
#include <ttdtrace/position.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/redact.h>
#include <ttdtrace/status.h>
#include <ttdtrace/verify.h>
#include <ttdtrace/version.h>
#include <ttdtrace/writer.h>

#endif
